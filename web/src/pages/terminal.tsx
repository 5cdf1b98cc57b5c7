import { Link, getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { RunView } from "../api/types";
import { shortId } from "../format";
import { attach } from "../log/attach";
import { base64 } from "../terminal/base64";
import { Terminal, type Wire } from "../terminal/terminal";
import { StateBadge } from "../ui/badge";
import { buttonClass } from "../ui/button";
import { Page } from "../ui/page";

const route = getRouteApi("/runs/$run/terminal");

// The terminal of a run that was started with one.
export function TerminalPage() {
  const { run } = route.useParams();
  const [seen, setSeen] = useState<RunView>();
  const [notice, setNotice] = useState("");
  const connect = (show: (output: Uint8Array | string) => void, size: { columns: number; rows: number }): Wire => {
    let sized = false;
    const attachment = attach(run, {
      output: (_stream, bytes) => show(bytes),
      state: (view) => {
        setSeen(view);
        if (view.status !== "running" || sized) return;
        sized = true;
        attachment.send({ type: "resize", ...size });
      },
      ended: () => setNotice("The run is over."),
      lost: () => setNotice("The connection is lost; it comes back by itself."),
      problem: setNotice,
    });
    return {
      input: (bytes) => attachment.send({ type: "stdin", data: base64(bytes) }),
      resize: (columns, rows) => {
        size = { columns, rows };
        if (sized) attachment.send({ type: "resize", columns, rows });
      },
      close: attachment.close,
    };
  };
  return (
    <Page title={`Terminal of run ${shortId(run)}`} about={<span className="flex gap-2">{seen && <StateBadge state={seen.status} />}<span role="status">{notice}</span></span>}
      actions={<Link to="/runs/$run" params={{ run }} className={buttonClass()}>Show the run</Link>}>
      <Terminal key={run} label="Terminal" connect={connect} />
    </Page>
  );
}
