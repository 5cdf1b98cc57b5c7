import type { Session } from "../api/types";

// Stands in the page itself, before everything else: while the script of the page is still on its way, it asks for what
// the first view will ask for. asked.ts hands the answers over. Nothing here is imported but types.
declare const __REST__: string;

const views: Record<string, (company: string) => string> = {
  "/environments": (company) => `${company}/environments/overview`,
  "/runs": (company) => `${company}/heartbeat-runs?limit=60`,
  "/leases": (company) => `${company}/environment-leases?held=true&limit=500`,
  "/agents": (company) => `${company}/agents?limit=1000`,
  "/secrets": (company) => `${company}/secrets?limit=1000`,
  "/plugins": () => "/api/plugins",
  "/": () => "/api/instance/findings",
};
const objects: Record<string, string> = {
  environments: "/api/environments/",
  runs: "/api/heartbeat-runs/",
  leases: "/api/environment-leases/",
};
// What only operators may read is not asked for others.
const operatorsOnly = ["/", "/leases", "/secrets"];
const inTheScript = ["/", "/environments", "/runs", "/leases"];

function ask(url: string, accept: string): Promise<Response> | undefined {
  if (window.berthAsked?.has(url)) return undefined; // the page was faster
  const end = new AbortController();
  const answer = fetch(url, { headers: { accept }, signal: end.signal });
  answer.catch(() => undefined); // whoever takes it is told
  window.berthAsked?.set(url, { answer, end });
  return answer;
}

async function askForTheView(path: string, search: string): Promise<void> {
  const chosen = localStorage.getItem("berth.company");
  const answer = ask(chosen ? `/api/session?company=${encodeURIComponent(chosen)}` : "/api/session", "application/json");
  const [, kind = "", id = ""] = path.match(/^\/(\w+)\/([\w-]+)$/) ?? [];
  if (id !== "new" && objects[kind]) ask(objects[kind] + id, "application/json");
  const session = (await (await answer)?.clone().json()) as Session | undefined;
  if (!session?.company) return;
  const company = `/api/companies/${session.company.id}`;
  const mayRead = !operatorsOnly.includes(path) || session.permissions.includes("company_operate");
  // Before the stream, which keeps its connection for itself.
  if (views[path] && !search && mayRead) ask(views[path](company), "application/json");
  ask(`${company}/changes/stream`, "text/event-stream");
}

window.berthAsked = new Map();
askForTheView(location.pathname, location.search).catch(() => undefined);
if (__REST__ && !inTheScript.includes(location.pathname)) {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = __REST__;
  document.head.append(link);
}
