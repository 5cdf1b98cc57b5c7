import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client";

const listen = "0A";
const timeoutMs = 10_000;

// Where Berth itself listens in a sandbox of this machine: the way out, and the way to its own API.
const ownDoors = [3128, 3129];

// The ports that something listens on, from the tables of the kernel: "sl local_address rem_address st …", the address in
// hexadecimal digits, ":" and the port.
export function listeningIn(tables: string): number[] {
  const ports = tables.split("\n").flatMap((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === listen ? [parseInt(local.slice(local.lastIndexOf(":") + 1), 16)] : [];
  });
  return [...new Set(ports)].sort((a, b) => a - b);
}

// Looked at when somebody asks: each look is a command in the sandbox, so events do not repeat it.
export const listeningQuery = (lease: string, provider: string | null | undefined) =>
  queryOptions({
    queryKey: ["listening", lease],
    queryFn: async ({ signal }) => {
      const body = { argv: ["cat", "/proc/net/tcp", "/proc/net/tcp6"], timeoutMs };
      const told = await api.post("/api/environment-leases/{lease}/exec", { path: { lease }, body, signal });
      const doors = provider === "linux" ? ownDoors : [];
      return listeningIn(told.stdoutText).filter((port) => !doors.includes(port));
    },
    staleTime: Infinity,
    retry: false,
    meta: { still: true },
  });
