import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import type { Run, RunState } from "../api/types";
import { useLive } from "../live/live";
import type { RunSearch } from "../router";

// The first page is what one sees; who scrolls on wants many.
const firstRows = 200;
const moreRows = 500;

interface Listed {
  rows: Run[];
  next: string | undefined;
  state: "loading" | "ready";
  error: unknown;
}

const nothing: Listed = { rows: [], next: undefined, state: "loading", error: undefined };

// New rows come first, known ones are renewed in place; what has scrolled past stays.
function merged(old: Listed, fresh: Run[], next: string | undefined): Listed {
  const known = new Set(old.rows.map((row) => row.id));
  const meets = fresh.some((row) => known.has(row.id)) || old.rows.length === 0;
  if (!meets || old.rows.length === 0) return { rows: fresh, next, state: "ready", error: undefined };
  const renewed = new Map(fresh.map((row) => [row.id, row]));
  const added = fresh.filter((row) => !known.has(row.id));
  const oldest = fresh.at(-1)?.createdAt ?? "";
  // A row that the answer should hold and does not, no longer fits the filter.
  const kept = old.rows.filter((row) => renewed.has(row.id) || (next !== undefined && row.createdAt <= oldest));
  return { ...old, rows: [...added, ...kept.map((row) => renewed.get(row.id) ?? row)], state: "ready", error: undefined };
}

// The runs of a company, newest first, a page at a time, and kept up to date at their newest end.
export function useRunList(company: string, filter: RunSearch) {
  const live = useLive();
  const [listed, setListed] = useState<Listed>(nothing);
  const loading = useRef(false);
  const key = JSON.stringify(filter);

  const load = useCallback(
    (after: string | undefined, signal: AbortSignal | undefined) =>
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
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [company, key],
  );

  useEffect(() => {
    const end = new AbortController();
    setListed(nothing);
    const refresh = () =>
      load(undefined, end.signal).then(
        (page) => setListed((old) => merged(old, page.rows, page.next)),
        (error: unknown) => !end.signal.aborted && setListed((old) => ({ ...old, error })),
      );
    void refresh();
    const stop = live.onChange(() => void refresh());
    return () => {
      end.abort();
      stop();
    };
  }, [load, live.onChange]);

  const more = useCallback(async () => {
    if (loading.current || !listed.next) return;
    loading.current = true;
    try {
      const page = await load(listed.next, undefined);
      setListed((old) => {
        const known = new Set(old.rows.map((row) => row.id));
        return { ...old, rows: [...old.rows, ...page.rows.filter((row) => !known.has(row.id))], next: page.next };
      });
    } catch (error) {
      setListed((old) => ({ ...old, error }));
    } finally {
      loading.current = false;
    }
  }, [load, listed.next]);

  return { ...listed, more };
}
