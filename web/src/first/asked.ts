interface Asked {
  answer: Promise<Response>;
  end: AbortController;
}

declare global {
  interface Window {
    berthAsked?: Map<string, Asked | "taken">;
  }
}

// Answers that nobody has taken by then are old.
const keptMs = 15_000;

// What ask.ts has asked for before this script was there. Each answer is given once.
export function takeAsked(url: string, signal: AbortSignal | null | undefined): Promise<Response> | undefined {
  const all = window.berthAsked;
  if (!all) return undefined;
  if (performance.now() > keptMs) {
    for (const each of all.values()) if (each !== "taken") each.end.abort();
    delete window.berthAsked;
    return undefined;
  }
  const asked = all.get(url);
  all.set(url, "taken");
  if (!asked || asked === "taken" || signal?.aborted) return undefined;
  signal?.addEventListener("abort", () => asked.end.abort(signal.reason), { once: true });
  return asked.answer;
}
