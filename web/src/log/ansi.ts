// Text with the colours of a terminal, as pieces. Every other escape sequence is dropped, so output can show something
// but never do anything.
export interface Piece {
  text: string;
  classes: string;
  colour?: string;
  ground?: string;
}

interface Look {
  flags: Set<string>;
  colour: string;
  ground: string;
}

// eslint-disable-next-line no-control-regex
const escapes = /\x1b(?:\[([0-9;:?<=>]*)([ -/]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])?/g;
// eslint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

const cube = [0, 95, 135, 175, 215, 255];

function indexed(index: number): string {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const at = index - 16;
  return `rgb(${cube[Math.floor(at / 36)] ?? 0} ${cube[Math.floor(at / 6) % 6] ?? 0} ${cube[at % 6] ?? 0})`;
}

const flagNames: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse" };

// 38;5;N and 38;2;R;G;B: the colour, and how many numbers it took.
function extended(codes: number[]): [string, number] {
  if (codes[1] === 5) {
    const index = Math.min(255, Math.max(0, codes[2] ?? 0));
    return [index < 16 ? `ansi:${index % 8}` : indexed(index), 2];
  }
  if (codes[1] === 2) {
    const part = (at: number) => Math.min(255, Math.max(0, codes[at] ?? 0));
    return [`rgb(${part(2)} ${part(3)} ${part(4)})`, 4];
  }
  return ["", 1];
}

function apply(look: Look, codes: number[]): void {
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) {
      look.flags.clear();
      look.colour = look.ground = "";
    } else if (flagNames[code]) look.flags.add(flagNames[code]);
    else if (code === 22) { look.flags.delete("bold"); look.flags.delete("dim"); }
    else if (code === 23) look.flags.delete("italic");
    else if (code === 24) look.flags.delete("underline");
    else if (code === 27) look.flags.delete("inverse");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) look.colour = `ansi:${code % 10}`;
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) look.ground = `ansi:${code % 10}`;
    else if (code === 39) look.colour = "";
    else if (code === 49) look.ground = "";
    else if (code === 38 || code === 48) {
      const [colour, taken] = extended(codes.slice(at));
      if (code === 38) look.colour = colour;
      else look.ground = colour;
      at += taken;
    }
  }
}

function pieceOf(text: string, look: Look): Piece {
  const classes = [...look.flags].map((flag) => `ansi-${flag}`);
  const piece: Piece = { text: text.replace(controls, "\u2423"), classes: "" };
  if (look.colour.startsWith("ansi:")) classes.push(`ansi-f${look.colour.slice(5)}`);
  else if (look.colour) piece.colour = look.colour;
  if (look.ground.startsWith("ansi:")) classes.push(`ansi-b${look.ground.slice(5)}`);
  else if (look.ground) piece.ground = look.ground;
  piece.classes = classes.join(" ");
  return piece;
}

export function ansiPieces(line: string): Piece[] {
  // What a progress bar has painted over is gone.
  const trimmed = line.endsWith("\r") ? line.slice(0, -1) : line;
  const text = trimmed.slice(trimmed.lastIndexOf("\r") + 1);
  if (!text.includes("\x1b")) return [{ text: text.replace(controls, "\u2423"), classes: "" }];
  const look: Look = { flags: new Set(), colour: "", ground: "" };
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(escapes)) {
    if (match.index > from) pieces.push(pieceOf(text.slice(from, match.index), look));
    from = match.index + match[0].length;
    if (match[3] === "m") apply(look, (match[1] ?? "").split(/[;:]/).map((code) => Number(code) || 0));
  }
  if (from < text.length) pieces.push(pieceOf(text.slice(from), look));
  return pieces;
}
