import type { ReactNode } from "react";

// A dense table that a phone may scroll sideways; a shadow shows where there is more.
export function Table({ label, head, children }: { label: string; head: ReactNode[]; children: ReactNode }) {
  return (
    <div className="sideways overflow-x-auto rounded-lg border border-line" tabIndex={0} role="region" aria-label={label}>
      <table className="w-full border-collapse text-sm">
        <thead>
          <tr className="border-b border-line text-left text-xs text-muted">
            {head.map((cell, at) => <th key={at} scope="col" className="px-3 py-2 font-medium whitespace-nowrap">{cell}</th>)}
          </tr>
        </thead>
        <tbody className="[&_td]:px-3 [&_td]:py-2 [&_tr]:border-b [&_tr]:border-line [&_tr:last-child]:border-0 [&_tr:hover]:bg-hover">
          {children}
        </tbody>
      </table>
    </div>
  );
}
