import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { runQuery } from "../api/queries";
import { attach } from "./attach";
import { LogBuffer } from "./log-buffer";

export interface LogFollowing {
  buffer: LogBuffer;
  // Changes whenever the buffer has more.
  version: number;
  ended: boolean;
  lost: boolean;
  problem: string;
}

// The output of a run, live while it runs, whole when it is over.
export function useLog(run: string): LogFollowing {
  const queries = useQueryClient();
  const buffer = useRef(new LogBuffer());
  const [state, setState] = useState({ version: 0, ended: false, lost: false, problem: "" });

  useEffect(() => {
    buffer.current = new LogBuffer();
    setState({ version: 0, ended: false, lost: false, problem: "" });
    let frame = 0;
    const grown = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setState((old) => ({ ...old, version: old.version + 1, lost: false }));
      });
    };
    const attachment = attach(run, {
      output: (stream, bytes) => {
        buffer.current.append(stream, bytes);
        grown();
      },
      state: (view) => queries.setQueryData(runQuery(run).queryKey, view),
      ended: () => setState((old) => ({ ...old, ended: true, lost: false, version: old.version + 1 })),
      lost: () => setState((old) => ({ ...old, lost: true })),
      problem: (message) => setState((old) => ({ ...old, problem: message })),
    });
    return () => {
      cancelAnimationFrame(frame);
      attachment.close();
    };
  }, [run, queries]);

  return { buffer: buffer.current, ...state };
}
