import { useState } from "react";
import { base64 } from "../terminal/base64";
import { Terminal, type Wire } from "../terminal/terminal";

// A shell of its own in a place that is held; it ends with the page that shows it.
export default function LeaseTerminal({ lease }: { lease: string }) {
  const [notice, setNotice] = useState("");
  const connect = (show: (output: Uint8Array | string) => void, size: { columns: number; rows: number }): Wire => {
    const origin = location.origin.replace(/^http/, "ws");
    const query = `columns=${size.columns}&rows=${size.rows}`;
    const socket = new WebSocket(`${origin}/api/environment-leases/${encodeURIComponent(lease)}/terminal?${query}`);
    socket.binaryType = "arraybuffer";
    const send = (request: object) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(request));
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data !== "string") return show(new Uint8Array(data, 9));
      const news = JSON.parse(data) as { type: string; error?: string };
      if (news.type === "error") setNotice(news.error ?? "");
      if (news.type === "ended") setNotice("The shell has ended.");
    };
    socket.onclose = () => setNotice((old) => old || "The shell has ended.");
    return {
      input: (bytes) => void send({ type: "stdin", data: base64(bytes) }),
      resize: (columns, rows) => void send({ type: "resize", columns, rows }),
      close: () => {
        send({ type: "cancel" });
        socket.close();
      },
    };
  };
  return (
    <div className="flex flex-col gap-2">
      <Terminal label="Terminal" connect={connect} />
      <p role="status" className="text-sm text-muted">{notice}</p>
    </div>
  );
}
