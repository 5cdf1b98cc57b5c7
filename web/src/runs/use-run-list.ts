import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import type { RunState, RunSummary } from "../api/types";
import { useLive } from "../live/live";
import type { RunSearch } from "../router";

// The first page is what one sees; who scrolls on wants many.
const firstRows = 60;
const moreRows = 500;
// How many changes are read at once: where there are more, the list is read anew.
const changedRows = 50;
// A change is told before it is committed, or by another server whose clock goes otherwise.
const overlapMs = 250;

interface Listed {
  // The company and the filter that the rows belong to.
  list: string;
  rows: RunSummary[];
  next: string | undefined;
  state: "loading" | "ready";
  error: unknown;
}

const nothing = (list: string): Listed => ({ list, rows: [], next: undefined, state: "loading", error: undefined });

// New rows come first, known ones are renewed in place; what has scrolled past stays.
function merged(old: Listed, fresh: RunSummary[], next: string | undefined): Listed {
  const known = new Set(old.rows.map((row) => row.id));
  const meets = fresh.some((row) => known.has(row.id));
  if (!meets) return { ...old, rows: fresh, next, state: "ready", error: undefined };
  const renewed = new Map(fresh.map((row) => [row.id, row]));
  const added = fresh.filter((row) => !known.has(row.id));
  const oldest = fresh.at(-1)?.createdAt ?? "";
  // A row that the answer should hold and does not, no longer fits the filter.
  const kept = old.rows.filter((row) => renewed.has(row.id) || (next !== undefined && row.createdAt <= oldest));
  return { ...old, rows: [...added, ...kept.map((row) => renewed.get(row.id) ?? row)], state: "ready", error: undefined };
}

// What has changed since the list was read: rows that fit no longer go, the others stand where their age puts them.
function amended(old: Listed, changed: RunSummary[], fits: (run: RunSummary) => boolean): Listed {
  if (changed.length === 0) return old;
  const ids = new Set(changed.map((row) => row.id));
  const oldest = old.next === undefined ? "" : (old.rows.at(-1)?.createdAt ?? "");
  const fresh = changed.filter((row) => fits(row) && row.createdAt >= oldest);
  const rows = [...fresh, ...old.rows.filter((row) => !ids.has(row.id))];
  rows.sort((a, b) => (a.createdAt === b.createdAt ? (a.id < b.id ? 1 : -1) : a.createdAt < b.createdAt ? 1 : -1));
  return { ...old, rows, error: undefined };
}

// A page goes on where the list ends. One that was asked for at another end, before the list began anew, does not.
function appended(old: Listed, after: string, fresh: RunSummary[], next: string | undefined): Listed {
  if (old.next !== after) return old;
  const known = new Set(old.rows.map((row) => row.id));
  return { ...old, rows: [...old.rows, ...fresh.filter((row) => !known.has(row.id))], next };
}

// The runs of a company, newest first, a page at a time, and kept up to date at their newest end. What is listed
// carries the list that it belongs to, so that nothing of one filter is ever shown, continued or answered in another.
export function useRunList(company: string, filter: RunSearch) {
  const live = useLive();
  const list = JSON.stringify([company, filter]);
  const [kept, setKept] = useState<Listed>(() => nothing(list));
  const listed = kept.list === list ? kept : nothing(list);
  const paging = useRef<{ after: string; end: AbortController } | undefined>(undefined);

  const load = useCallback(
    (after: string | undefined, signal: AbortSignal) =>
      api.page("/api/companies/{company}/heartbeat-runs", {
        path: { company },
        query: {
          limit: after ? moreRows : firstRows,
          after,
          status: filter.status as RunState | undefined,
          environmentId: filter.environment,
          agentId: filter.agent,
          search: filter.search,
        },
        signal,
      }),
    // The list stands for the filter, which is another object each time.
    [list],
  );
  const change = useCallback((by: (old: Listed) => Listed) => setKept((old) => (old.list === list ? by(old) : old)), [list]);

  useEffect(() => {
    const end = new AbortController();
    setKept(nothing(list));
    let newest = "";
    const note = (rows: RunSummary[]) => {
      for (const row of rows) if (row.updatedAt > newest) newest = row.updatedAt;
    };
    const readAll = async () => {
      const page = await load(undefined, end.signal);
      note(page.rows);
      change((old) => merged(old, page.rows, page.next));
    };
    const readChanges = async () => {
      const since = new Date(Date.parse(newest) - overlapMs).toISOString();
      const page = await api.page("/api/companies/{company}/heartbeat-runs", {
        path: { company },
        query: { limit: changedRows, changedSince: since, environmentId: filter.environment, agentId: filter.agent },
        signal: end.signal,
      });
      if (page.rows.length >= changedRows) return readAll();
      note(page.rows);
      change((old) => amended(old, page.rows, (run) => !filter.status || run.status === filter.status));
    };
    // A search is the server's to answer, and what was deleted is in no answer.
    const refresh = (whole: boolean) =>
      (whole || !newest || filter.search ? readAll() : readChanges()).catch(
        (error: unknown) => !end.signal.aborted && change((old) => ({ ...old, error })),
      );
    void refresh(true);
    const stop = live.onChange((news) => void refresh(news !== "some"));
    return () => {
      end.abort();
      paging.current?.end.abort();
      paging.current = undefined;
      stop();
    };
  }, [list, load, change, live.onChange]);

  const { next, error } = listed;
  // After an error nothing more is asked for until the newest end could be read again.
  const more = useCallback(async () => {
    if (!next || error !== undefined || paging.current?.after === next) return;
    paging.current?.end.abort();
    const mine = { after: next, end: new AbortController() };
    paging.current = mine;
    try {
      const page = await load(next, mine.end.signal);
      if (!mine.end.signal.aborted) change((old) => appended(old, next, page.rows, page.next));
    } catch (error) {
      if (!mine.end.signal.aborted) change((old) => ({ ...old, error }));
    } finally {
      if (paging.current === mine) paging.current = undefined;
    }
  }, [load, change, next, error]);

  return { ...listed, more };
}
