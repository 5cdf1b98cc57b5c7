import { useEffect, useRef, useState } from "react";
import { bytes, count } from "../format";
import { Button } from "../ui/button";
import { input } from "../ui/field";
import { LogLine } from "./log-line";
import type { Shown } from "./log-buffer";
import type { LogFollowing } from "./use-log";
import { useLogSearch } from "./use-log-search";

const rowHeight = 18;
// Browsers lose precision, then the scroll bar, beyond this: longer logs are scrolled in larger steps.
const heightMax = 8_000_000;

interface Props {
  log: LogFollowing;
  name: string;
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Only the lines that are visible are in the page, whatever the length of the log.
export function LogView({ log, name }: Props) {
  const { buffer } = log;
  const [shown, setShown] = useState<Shown>("all");
  const [wrap, setWrap] = useState(false);
  const [follow, setFollow] = useState(true);
  const [first, setFirst] = useState(0);
  const [rows, setRows] = useState(30);
  const box = useRef<HTMLDivElement>(null);
  // Where following has put the scroll bar.
  const followed = useRef(0);
  const search = useLogSearch(buffer, shown, log.version);

  const lines = buffer.lineCount(shown);
  const lastFirst = Math.max(0, lines - rows + 1);
  const height = Math.min(heightMax, lines * rowHeight + 8);
  const room = () => Math.max(1, (box.current?.scrollHeight ?? 1) - (box.current?.clientHeight ?? 0));

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setRows(Math.ceil(element.clientHeight / rowHeight) + 1);
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);

  const goTo = (line: number) => {
    if (!box.current) return;
    box.current.scrollTop = lastFirst === 0 ? 0 : (Math.min(line, lastFirst) / lastFirst) * room();
    setFirst(Math.min(line, lastFirst));
  };

  useEffect(() => {
    if (!follow || !box.current) return;
    box.current.scrollTop = box.current.scrollHeight;
    followed.current = box.current.scrollTop;
    setFirst(lastFirst);
  }, [follow, lastFirst, log.version]);

  useEffect(() => {
    if (search.line === undefined) return;
    setFollow(false);
    goTo(Math.max(0, search.line - Math.floor(rows / 3)));
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [search.line]);

  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 4;
    // The output may have grown since it was followed: only a reader who scrolls up wants to leave its end.
    if (follow && (isAtEnd || element.scrollTop >= followed.current)) return;
    const at = element.scrollTop / room();
    setFirst(Math.round(at * lastFirst));
    if (!isAtEnd) setFollow(false);
  };

  const atEnd = first >= lastFirst && follow;
  const visible = Array.from({ length: Math.max(0, Math.min(rows, lines - first)) }, (_, at) => first + at);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <label className="sr-only" htmlFor="log-search">Search the output</label>
        <input id="log-search" className={`${input} !w-52`} placeholder="Search the output" type="search" value={search.text}
          onChange={(event) => search.setText(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && search.go(event.shiftKey ? -1 : 1)} />
        {search.text && <span role="status" className="text-muted">{search.busy ? "Searching…" : count(search.found.length, "line")}</span>}
        <Button onClick={() => search.go(-1)} disabled={search.found.length === 0}>Previous</Button>
        <Button onClick={() => search.go(1)} disabled={search.found.length === 0}>Next</Button>
        <label className="sr-only" htmlFor="log-stream">Streams</label>
        <select id="log-stream" className={`${input} !w-auto`} value={shown} onChange={(event) => setShown(event.target.value as Shown)}>
          <option value="all">stdout and stderr</option>
          <option value="stdout">stdout</option>
          <option value="stderr">stderr</option>
        </select>
        <label className="flex items-center gap-1.5"><input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.target.checked)} />Wrap</label>
        <Button onClick={() => setFollow(true)} aria-pressed={follow}>Jump to the end</Button>
        <Button onClick={() => save(buffer.whole(), `${name}.log`)} disabled={buffer.bytes === 0}>Download</Button>
      </div>
      {log.lost && <p role="status" className="text-sm text-warn-text">The connection is lost; the output goes on as soon as it is back.</p>}
      {log.problem && <p role="alert" className="text-sm text-danger-text">{log.problem}</p>}
      <div ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="Output" aria-live="off"
        style={{ height: `min(60dvh, ${height + 24}px)` }}
        className="log relative min-h-24 overflow-auto rounded-lg border border-line font-mono text-xs leading-[18px]">
        <div style={{ height, position: "relative" }}>
          <div className={`sticky top-0 w-max min-w-full py-1 ${wrap ? "!w-full" : ""} ${atEnd && wrap ? "flex max-h-[60dvh] flex-col justify-end overflow-hidden" : ""}`}>
            {visible.map((at) => {
              const line = buffer.line(shown, at);
              return <LogLine key={at} number={at} text={line.text} stream={line.stream} wrap={wrap} marked={at === search.line} />;
            })}
            {lines === 0 && <p className="px-4 py-2 text-[#aab2c0]">{log.ended ? "No output." : "No output yet."}</p>}
          </div>
        </div>
      </div>
      <p className="text-xs text-muted">{count(lines, "line")}, {bytes(buffer.bytes)}{log.ended ? "" : ", live"}</p>
    </div>
  );
}
