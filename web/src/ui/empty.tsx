import type { ReactNode } from "react";

// A list with nothing in it says what would be here, and how to get it here.
export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="rounded-lg border border-dashed border-line px-6 py-10 text-center">
      <p className="font-medium">{title}</p>
      <div className="mx-auto mt-1 max-w-prose text-sm text-muted">{children}</div>
    </div>
  );
}
