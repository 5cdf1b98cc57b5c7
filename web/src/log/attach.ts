import type { RunView } from "../api/types";
import type { Stream } from "./log-buffer";

interface Listener {
  output: (stream: Stream, bytes: Uint8Array) => void;
  state: (run: RunView) => void;
  ended: () => void;
  // The socket is gone and will be made anew.
  lost: () => void;
  problem: (message: string) => void;
}

export interface Attachment {
  send: (request: object) => void;
  close: () => void;
}

const pauses = [250, 1000, 2000, 4000];

// Follows the output of a run from a place in it. After a loss it goes on where it was: every frame names the place.
export function attach(run: string, listener: Listener): Attachment {
  let socket: WebSocket | undefined;
  let offset = 0;
  let over = false;
  let attempt = 0;
  let timer = 0;

  const told = (text: string) => {
    const news = JSON.parse(text) as { type: string; run?: RunView; error?: string };
    if (news.run) listener.state(news.run);
    if (news.type === "error") listener.problem(news.error ?? "");
    if (news.type !== "ended") return;
    over = true;
    listener.ended();
  };

  const connect = () => {
    const origin = location.origin.replace(/^http/, "ws");
    socket = new WebSocket(`${origin}/api/heartbeat-runs/${encodeURIComponent(run)}/attach?offset=${offset}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      attempt = 0;
      if (typeof data === "string") return told(data);
      const frame = new DataView(data);
      offset = Number(frame.getBigUint64(1));
      listener.output(frame.getUint8(0) === 2 ? 2 : 1, new Uint8Array(data, 9));
    };
    socket.onclose = () => {
      if (over) return;
      listener.lost();
      timer = window.setTimeout(connect, pauses[Math.min(attempt, pauses.length - 1)]);
      attempt += 1;
    };
  };
  connect();

  return {
    send: (request) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request));
    },
    close: () => {
      over = true;
      window.clearTimeout(timer);
      socket?.close();
    },
  };
}
