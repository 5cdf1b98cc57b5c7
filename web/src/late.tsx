import { lazy, Suspense, type ComponentType, type ReactNode } from "react";

type Rest = typeof import("./rest");
export type LatePage = Extract<keyof Rest, `${string}Page`>;

const againMs = 1000;

// A server that was replaced has other files: then the page is loaded anew. One that is lost comes back.
async function reloadIfReplaced(): Promise<void> {
  const script = document.querySelector<HTMLScriptElement>("script[type=module]");
  const page = await fetch("/", { headers: { accept: "text/html" } }).then((response) => (response.ok ? response.text() : undefined), () => undefined);
  if (script && page !== undefined && !page.includes(new URL(script.src).pathname)) location.reload();
}

async function load(): Promise<Rest> {
  for (;;) {
    try {
      return await import("./rest");
    } catch {
      await reloadIfReplaced();
      await new Promise((resume) => window.setTimeout(resume, againMs));
    }
  }
}

let loading: Promise<Rest> | undefined;

export const rest = (): Promise<Rest> => (loading ??= load());

// A component of rest.ts, to be shown inside of <Late>.
export function late<Props>(choose: (rest: Rest) => ComponentType<Props>) {
  return lazy(async () => ({ default: choose(await rest()) }));
}

export function Late({ children, until = null }: { children: ReactNode; until?: ReactNode }) {
  return <Suspense fallback={until}>{children}</Suspense>;
}
