import { useQueryClient, type Query } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import type { Activity } from "../api/types";
import { takeAsked } from "../first/asked";
import { readEvents } from "./event-stream";

export type Connection = "connecting" | "live" | "lost";
// Something went its way, something was made, renamed or deleted, or the stream was lost for a while.
export type News = "some" | "names" | "lost";

interface Live {
  connection: Connection;
  // Called whenever something of the company may have changed; the returned function ends it.
  onChange: (listener: (news: News) => void) => () => void;
  onActivity: (listener: (entry: Activity) => void) => () => void;
}

const LiveContext = createContext<Live | null>(null);
const pauses = [250, 500, 1000, 2000, 4000];
const gatherMs = 120;

// The life of a run, its lease and its sandbox changes nothing that has a name.
const inPassing = ["heartbeat_run", "environment_lease", "sandbox"];
const changesNames = (entry: Activity) => !inPassing.includes(entry.entityType) || entry.action.endsWith("deleted");

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error("useLive is used outside of LiveProvider");
  return live;
}

// Follows one company over one stream. The stream says that something has changed, and whatever is on the screen is
// read again; after a loss everything is, so nothing that happened meanwhile is missed.
export function LiveProvider({ company, children }: { company: string; children: ReactNode }) {
  const queries = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  const changes = useRef(new Set<(news: News) => void>());
  const entries = useRef(new Set<(entry: Activity) => void>());

  useEffect(() => {
    const end = new AbortController();
    let last = "";
    let timer: number | undefined;
    let news: News = "some";
    const refresh = () => {
      const told = news;
      timer = undefined;
      news = "some";
      const isAsked = (query: Query) => query.meta?.still !== true && (told !== "some" || query.meta?.names !== true);
      void queries.invalidateQueries({ predicate: isAsked });
      for (const listener of changes.current) listener(told);
    };
    const changed = (more: News) => {
      if (news === "some") news = more;
      timer ??= window.setTimeout(refresh, gatherMs);
    };

    const connect = async () => {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last) headers["last-event-id"] = last;
      const url = `/api/companies/${company}/changes/stream`;
      const response = await (takeAsked(url, end.signal) ?? fetch(url, { headers, signal: end.signal }));
      if (response.status === 401) void queries.invalidateQueries({ queryKey: ["session"] });
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      await readEvents(response, (event) => {
        if (event.id) last = event.id;
        if (event.name === "ready") {
          setConnection("live");
          if (attempt > 0) changed("lost");
          attempt = 0;
        } else if (event.name === "activity") {
          const entry = JSON.parse(event.data) as Activity;
          for (const listener of entries.current) listener(entry);
          changed(changesNames(entry) ? "names" : "some");
        } else if (event.name === "changed") {
          changed("some");
        }
      });
    };

    let attempt = 0;
    const follow = async () => {
      while (!end.signal.aborted) {
        try {
          await connect();
        } catch {
          // Whatever the reason, the answer is to say so and to try again.
        }
        if (end.signal.aborted) return;
        setConnection("lost");
        const pause = pauses[Math.min(attempt, pauses.length - 1)];
        attempt += 1;
        await new Promise((resume) => window.setTimeout(resume, pause));
      }
    };
    void follow();
    return () => {
      end.abort();
      window.clearTimeout(timer);
    };
  }, [company, queries]);

  const [live] = useState(() => ({
    onChange: (listener: (news: News) => void) => {
      changes.current.add(listener);
      return () => void changes.current.delete(listener);
    },
    onActivity: (listener: (entry: Activity) => void) => {
      entries.current.add(listener);
      return () => void entries.current.delete(listener);
    },
  }));
  return <LiveContext value={{ ...live, connection }}>{children}</LiveContext>;
}
