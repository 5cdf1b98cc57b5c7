import { memo } from "react";
import { ansiPieces } from "./ansi";
import type { Stream } from "./log-buffer";

interface Props {
  number: number;
  text: string;
  stream: Stream;
  wrap: boolean;
  marked: boolean;
}

export const LogLine = memo(function LogLine({ number, text, stream, wrap, marked }: Props) {
  return (
    <div className={`flex ${marked ? "bg-warn/30" : ""}`} data-stream={stream === 2 ? "stderr" : "stdout"}>
      <span className="w-14 shrink-0 pr-3 text-right text-[#8b94a3] select-none" aria-hidden="true">{number + 1}</span>
      <span className={`w-1 shrink-0 ${stream === 2 ? "bg-[#e07a7a]" : ""}`} title={stream === 2 ? "stderr" : undefined} />
      <span className={`pl-2 ${wrap ? "min-w-0 break-all whitespace-pre-wrap" : "whitespace-pre"}`}>
        {stream === 2 && <span className="sr-only">stderr: </span>}
        {ansiPieces(text).map((piece, at) =>
          piece.classes || piece.colour || piece.ground ? (
            <span key={at} className={piece.classes} style={{ color: piece.colour, backgroundColor: piece.ground }}>{piece.text}</span>
          ) : (
            piece.text
          ),
        )}
      </span>
    </div>
  );
});
