import { queryOptions } from "@tanstack/react-query";
import { api } from "./client";

// Every question that a page asks, by one name each. All of them are asked again when the server says that something
// has changed, so none of them asks by the clock.
export const companyKey = "berth.company";

export const sessionQuery = () =>
  queryOptions({
    queryKey: ["session"],
    queryFn: ({ signal }) =>
      api.get("/api/session", { query: { company: localStorage.getItem(companyKey) ?? undefined }, signal }),
    retry: true,
    retryDelay: 1000,
    meta: { names: true },
  });

export const environmentsQuery = (company: string) =>
  queryOptions({
    queryKey: ["environments", company],
    queryFn: ({ signal }) => api.get("/api/companies/{company}/environments/overview", { path: { company }, signal }),
  });

export const environmentQuery = (environment: string) =>
  queryOptions({
    queryKey: ["environment", environment],
    queryFn: ({ signal }) => api.get("/api/environments/{environment}", { path: { environment }, signal }),
  });

export const capabilitiesQuery = (company: string) =>
  queryOptions({
    queryKey: ["capabilities", company],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/environments/capabilities", { path: { company }, signal }),
  });

export const blastRadiusQuery = (environment: string) =>
  queryOptions({
    queryKey: ["blast-radius", environment],
    queryFn: ({ signal }) =>
      api.get("/api/environments/{environment}/delete-blast-radius", { path: { environment }, signal }),
  });

export const runQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run],
    queryFn: ({ signal }) => api.get("/api/heartbeat-runs/{run}", { path: { run }, signal }),
  });

export type WhichLeases = "held" | "parked" | "all";

export const leasesQuery = (company: string, which: WhichLeases) =>
  queryOptions({
    queryKey: ["leases", company, which],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/environment-leases", {
        path: { company },
        query: which === "all" ? { limit: 100 } : { [which]: true, limit: 500 },
        signal,
      }),
  });

export const environmentLeasesQuery = (company: string, environmentId: string) =>
  queryOptions({
    queryKey: ["leases", company, environmentId],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/environment-leases", {
        path: { company },
        query: { environmentId, limit: 50 },
        signal,
      }),
  });

export const leaseQuery = (lease: string) =>
  queryOptions({
    queryKey: ["lease", lease],
    queryFn: ({ signal }) => api.get("/api/environment-leases/{lease}", { path: { lease }, signal }),
  });

// What a sandbox may reach; its log has a reader of its own, which follows it.
export const egressQuery = (lease: string) =>
  queryOptions({
    queryKey: ["egress", lease],
    queryFn: ({ signal }) => api.get("/api/environment-leases/{lease}/egress", { path: { lease }, signal }),
  });

export const templatesQuery = (company: string) =>
  queryOptions({
    queryKey: ["templates", company],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/templates", { path: { company }, query: { limit: 1000 }, signal }),
  });

export const customImageQuery = (environment: string) =>
  queryOptions({
    queryKey: ["custom-image", environment],
    queryFn: ({ signal }) =>
      api.get("/api/environments/{environment}/custom-image-template", { path: { environment }, signal }),
  });

export const secretsQuery = (company: string) =>
  queryOptions({
    queryKey: ["secrets", company],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/secrets", { path: { company }, query: { limit: 1000 }, signal }),
  });

export const secretUsageQuery = (secret: string) =>
  queryOptions({
    queryKey: ["secret-usage", secret],
    queryFn: ({ signal }) => api.get("/api/secrets/{secret}/usage", { path: { secret }, signal }),
  });

export const secretAccessQuery = (secret: string) =>
  queryOptions({
    queryKey: ["secret-access", secret],
    queryFn: ({ signal }) => api.get("/api/secrets/{secret}/access-events", { path: { secret }, signal }),
  });

// What each adapter takes: it changes with the server only.
export const adaptersQuery = () =>
  queryOptions({
    queryKey: ["adapters"],
    queryFn: ({ signal }) => api.get("/api/adapters", { signal }),
    staleTime: Infinity,
    meta: { still: true },
  });

export const agentsQuery = (company: string) =>
  queryOptions({
    queryKey: ["agents", company],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/agents", { path: { company }, query: { limit: 1000 }, signal }),
  });

export const tokensQuery = (company: string) =>
  queryOptions({
    queryKey: ["tokens", company],
    queryFn: ({ signal }) =>
      api.get("/api/companies/{company}/tokens", { path: { company }, query: { limit: 1000 }, signal }),
  });

export const pluginsQuery = () =>
  queryOptions({
    queryKey: ["plugins"],
    queryFn: ({ signal }) => api.get("/api/plugins", { signal }),
  });

export const pluginQuery = (plugin: string) =>
  queryOptions({
    queryKey: ["plugin", plugin],
    queryFn: ({ signal }) => api.get("/api/plugins/{plugin}", { path: { plugin }, signal }),
  });

export const pluginHealthQuery = (plugin: string) =>
  queryOptions({
    queryKey: ["plugin-health", plugin],
    queryFn: ({ signal }) => api.get("/api/plugins/{plugin}/health", { path: { plugin }, signal }),
  });

export const pluginEgressQuery = (plugin: string) =>
  queryOptions({
    queryKey: ["plugin-egress", plugin],
    queryFn: ({ signal }) => api.get("/api/plugins/{plugin}/egress", { path: { plugin }, query: { limit: 200 }, signal }),
  });

export const pluginLogsQuery = (plugin: string) =>
  queryOptions({
    queryKey: ["plugin-logs", plugin],
    queryFn: ({ signal }) => api.get("/api/plugins/{plugin}/logs", { path: { plugin }, query: { limit: 200 }, signal }),
  });

// What keeps attackers out on the machine of the server; only instance administrators may ask.
export const usageQuery = (company: string) =>
  queryOptions({
    queryKey: ["usage", company],
    queryFn: ({ signal }) => api.get("/api/companies/{company}/usage", { path: { company }, signal }),
  });

export const wallsQuery = () =>
  queryOptions({
    queryKey: ["walls"],
    queryFn: ({ signal }) => api.get("/api/instance/walls", { signal }),
    staleTime: Infinity,
    meta: { still: true },
  });

// Looked at once: the machine does not change while somebody reads the page.
export const findingsQuery = () =>
  queryOptions({
    queryKey: ["findings"],
    queryFn: ({ signal }) => api.get("/api/instance/findings", { signal }),
    staleTime: Infinity,
    meta: { still: true },
  });
