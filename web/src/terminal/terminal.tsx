import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef } from "react";
import { styledDocument } from "./styled-document";

export interface Wire {
  input: (bytes: Uint8Array) => void;
  resize: (columns: number, rows: number) => void;
  close: () => void;
}

interface Props {
  label: string;
  // Connects, and calls back with what is to be shown.
  connect: (show: (output: Uint8Array | string) => void, size: { columns: number; rows: number }) => Wire;
}

// A screen and a keyboard. What comes over the wire is shown, and can do nothing else: no links, no clipboard, no
// titles, no answers of the terminal to the program that the page would have to trust.
export function Terminal({ label, connect }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!box.current) return;
    const screen = new Xterm({
      documentOverride: styledDocument(),
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--font-mono") || "monospace",
      fontSize: 13,
      scrollback: 5000,
      screenReaderMode: true,
      theme: { background: "#0e1116", foreground: "#d7dce5" },
      // A program can write a link (OSC 8) whose text is not where it leads.
      linkHandler: { activate: () => {} },
    });
    const fit = new FitAddon();
    screen.loadAddon(fit);
    screen.open(box.current);
    fit.fit();
    const wire = connect((output) => screen.write(output), { columns: screen.cols, rows: screen.rows });
    const encoder = new TextEncoder();
    screen.onData((text) => wire.input(encoder.encode(text)));
    screen.onBinary((text) => wire.input(Uint8Array.from(text, (each) => each.charCodeAt(0))));
    screen.onResize(({ cols, rows }) => wire.resize(cols, rows));
    const watcher = new ResizeObserver(() => fit.fit());
    watcher.observe(box.current);
    screen.focus();
    return () => {
      watcher.disconnect();
      wire.close();
      screen.dispose();
    };
    // One connection for the life of the screen.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return <div ref={box} role="group" aria-label={label} className="h-[60dvh] overflow-hidden rounded-lg border border-line bg-[#0e1116] p-2" />;
}
