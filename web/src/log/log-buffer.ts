import { GrowingIndex } from "./growing-index";

export type Stream = 1 | 2; // stdout, stderr
export type Shown = "all" | "stdout" | "stderr";

const lineBytesMax = 16 * 1024;
const newline = 10;

// The output of a run as bytes with an index of its lines. Text is made only of the lines that somebody looks at.
export class LogBuffer {
  private blocks: Uint8Array[] = [];
  private blockOf = new GrowingIndex();
  private startOf = new GrowingIndex();
  private endOf = new GrowingIndex();
  private streams = new GrowingIndex();
  private order: Record<Shown, GrowingIndex> = {
    all: new GrowingIndex(),
    stdout: new GrowingIndex(),
    stderr: new GrowingIndex(),
  };
  // A line that has not ended yet, of each stream.
  private open: Partial<Record<Stream, Uint8Array>> = {};
  private decoder = new TextDecoder();
  bytes = 0;

  append(stream: Stream, bytes: Uint8Array): void {
    this.bytes += bytes.length;
    let rest = bytes;
    const begun = this.open[stream];
    if (begun) {
      const end = rest.indexOf(newline);
      const head = end < 0 ? rest : rest.subarray(0, end + 1);
      rest = rest.subarray(head.length);
      const joined = new Uint8Array(begun.length + head.length);
      joined.set(begun);
      joined.set(head, begun.length);
      delete this.open[stream];
      if (end < 0 && joined.length < lineBytesMax) {
        this.open[stream] = joined;
        return;
      }
      this.index(stream, joined);
    }
    this.index(stream, rest);
  }

  private index(stream: Stream, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const block = this.blocks.push(bytes) - 1;
    let start = 0;
    while (start < bytes.length) {
      const found = bytes.indexOf(newline, start);
      const whole = found >= 0 ? found : bytes.length;
      if (found < 0 && whole - start < lineBytesMax) {
        this.open[stream] = bytes.slice(start);
        return;
      }
      const end = Math.min(whole, start + lineBytesMax);
      this.add(stream, block, start, end);
      start = end === found ? end + 1 : end;
    }
  }

  private add(stream: Stream, block: number, start: number, end: number): void {
    const line = this.blockOf.length;
    this.blockOf.push(block);
    this.startOf.push(start);
    this.endOf.push(end);
    this.streams.push(stream);
    this.order.all.push(line);
    this.order[stream === 1 ? "stdout" : "stderr"].push(line);
  }

  private openLines(shown: Shown): Stream[] {
    const wanted: Stream[] = shown === "all" ? [1, 2] : shown === "stdout" ? [1] : [2];
    return wanted.filter((stream) => this.open[stream]);
  }

  lineCount(shown: Shown): number {
    return this.order[shown].length + this.openLines(shown).length;
  }

  line(shown: Shown, at: number): { text: string; stream: Stream } {
    const ended = this.order[shown];
    if (at >= ended.length) {
      const stream = this.openLines(shown)[at - ended.length] ?? 1;
      return { text: this.decoder.decode(this.open[stream] ?? new Uint8Array()), stream };
    }
    const line = ended.at(at);
    const block = this.blocks[this.blockOf.at(line)] ?? new Uint8Array();
    const text = this.decoder.decode(block.subarray(this.startOf.at(line), this.endOf.at(line)));
    return { text, stream: this.streams.at(line) as Stream };
  }

  // The lines that have the text in them, a slice at a time, so that the page stays alive.
  async search(shown: Shown, wanted: string, signal: AbortSignal, limit = 10_000): Promise<number[]> {
    const found: number[] = [];
    const needle = wanted.toLowerCase();
    const slice = 20_000;
    for (let at = 0; at < this.lineCount(shown) && found.length < limit; at += 1) {
      if (this.line(shown, at).text.toLowerCase().includes(needle)) found.push(at);
      if (at % slice === slice - 1) {
        await new Promise((resume) => setTimeout(resume));
        if (signal.aborted) return [];
      }
    }
    return found;
  }

  whole(): Blob {
    const parts = [...this.blocks] as BlobPart[];
    for (const stream of [1, 2] as const) if (this.open[stream]) parts.push(this.open[stream] as BlobPart);
    return new Blob(parts, { type: "text/plain" });
  }
}
