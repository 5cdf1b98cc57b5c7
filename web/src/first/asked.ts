interface Asked {
  answer: Promise<Response>;
  end: AbortController;
}

declare global {
  interface Window {
    berthAsked?: Map<string, Asked>;
  }
}

// Answers that nobody has taken by then are old.
const keptMs = 15_000;

// What ask.ts has asked for before this script was there. Each answer is given once.
export function takeAsked(url: string, signal: AbortSignal | null | undefined): Promise<Response> | undefined {
  const asked = window.berthAsked?.get(url);
  if (!asked) return undefined;
  window.berthAsked?.delete(url);
  if (performance.now() > keptMs || signal?.aborted) {
    asked.end.abort();
    return undefined;
  }
  signal?.addEventListener("abort", () => asked.end.abort(signal.reason), { once: true });
  return asked.answer;
}
