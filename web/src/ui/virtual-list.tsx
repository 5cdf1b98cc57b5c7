import { useEffect, useRef, useState, type ReactNode } from "react";

interface Props {
  label: string;
  count: number;
  rowHeight: number;
  row: (at: number) => ReactNode;
  // Called when the end comes near, and again whenever it is another function there.
  onEnd?: () => void;
}

const spare = 8;

// A list of rows of one height, of which only the visible ones are in the page. Another list has another key, and so
// begins at its top.
export function VirtualList({ label, count, rowHeight, row, onEnd }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watcher = new ResizeObserver(() => setHeight(element.clientHeight));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare);
  useEffect(() => {
    if (last >= count - 2 * spare) onEnd?.();
  }, [last, count, onEnd]);
  return (
    <div ref={box} role="list" aria-label={label} tabIndex={0} onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      style={{ height: `min(max(20rem, 100dvh - 13rem), ${count * rowHeight + 2}px)` }}
      className="relative overflow-auto rounded-lg border border-line bg-raised">
      <div style={{ height: count * rowHeight }} role="presentation">
        {Array.from({ length: Math.max(0, last - first) }, (_, at) => (
          <div key={first + at} role="listitem" aria-setsize={count} aria-posinset={first + at + 1}
            className="absolute inset-x-0 border-b border-line hover:bg-hover" style={{ top: (first + at) * rowHeight, height: rowHeight }}>
            {row(first + at)}
          </div>
        ))}
      </div>
    </div>
  );
}
