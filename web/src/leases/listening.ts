import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client";

// The ports on which something in the sandbox listens. Looked at when somebody asks, and not with every event: a program
// that begins to listen says so to nobody.
export const listeningQuery = (lease: string) =>
  queryOptions({
    queryKey: ["listening", lease],
    queryFn: async ({ signal }) => (await api.get("/api/environment-leases/{lease}/listening", { path: { lease }, signal })).ports,
    staleTime: Infinity,
    retry: false,
    meta: { still: true },
  });
