import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { Transcript, TranscriptEntry } from "../api/types";

export interface TranscriptFollowing {
  facts: Transcript | undefined;
  entries: TranscriptEntry[];
  error: unknown;
}

const entriesMax = 5000;
const pauseMs = 2000;
const nothing: TranscriptFollowing = { facts: undefined, entries: [], error: undefined };

// The work of an agent, page by page, and on as it happens until the run is over.
export function useTranscript(run: string): TranscriptFollowing {
  const [state, setState] = useState(nothing);
  useEffect(() => {
    const end = new AbortController();
    const follow = async () => {
      let afterSeq = 0;
      while (!end.signal.aborted) {
        try {
          const page = await api.get("/api/heartbeat-runs/{run}/transcript", { path: { run }, query: { afterSeq, wait: afterSeq ? 20 : 0 }, signal: end.signal });
          afterSeq = page.nextSeq;
          setState((old) => ({ facts: page, entries: [...old.entries, ...page.entries].slice(-entriesMax), error: undefined }));
          if (page.complete) return;
          if (page.entries.length === 0 && afterSeq === 0) await new Promise((done) => setTimeout(done, pauseMs));
        } catch (error) {
          if (end.signal.aborted) return;
          setState((old) => ({ ...old, error }));
          await new Promise((done) => setTimeout(done, pauseMs));
        }
      }
    };
    setState(nothing);
    void follow();
    return () => end.abort();
  }, [run]);
  return state;
}
