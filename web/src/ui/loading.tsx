import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorBox } from "./error-box";

// Shows the answer of a query, or why there is none.
export function Answer<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorBox error={query.error} />;
  return <p role="status" className="flex items-center gap-2 py-6 text-sm text-muted"><span className="spinner" aria-hidden="true" />Loading…</p>;
}
