// node embed.mjs DIST OUTPUT: writes the files of the built page as one block of bytes (page.bin), the assembly that
// takes it into the program (page.S), and the table that http/server/assets.hpp promises (page.cpp).
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [dist, output] = process.argv.slice(2);

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const blocks = [];
let size = 0;

// A view of bytes that are now part of the block.
function keep(bytes) {
  const view = `{berth_web_page + ${size}, ${bytes.length}}`;
  blocks.push(bytes);
  size += bytes.length;
  return view;
}

// What stands inline in a page, as its content policy allows it.
function hashesOf(tag, page) {
  const texts = [...page.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))].map((found) => found[1]);
  return texts.map((text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`).join(" ");
}

const rows = filesBelow(dist).sort().map((path) => {
  const type = types[extname(path)];
  if (!type) throw new Error(`${path}: no type is known for files of this kind`);
  const name = relative(dist, path);
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  const gzip = gzipSync(bytes, { level: 9 });
  const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const url = name === "index.html" ? "/" : `/${name}`;
  const inline = url === "/" ? ["script", "style"].map((tag) => `,\n       "${hashesOf(tag, bytes.toString())}"`).join("") : "";
  return `      {"${url}", "${type}", "\\"${etag}\\"",\n       ${[bytes, gzip, brotli].map(keep).join(",\n       ")}${inline}},`;
});

writeFileSync(join(output, "page.bin"), Buffer.concat(blocks));
writeFileSync(join(output, "page.S"), `  .section .rodata
  .global berth_web_page
berth_web_page:
  .incbin "${join(output, "page.bin")}"
  .section .note.GNU-stack, "", @progbits
`);
writeFileSync(join(output, "page.cpp"), `#include "http/server/assets.hpp"

#include <array>

extern "C" const char berth_web_page[];

std::span<const berth::http::Asset> berth::http::embedded_page() {
  static const std::array<Asset, ${rows.length}> files{{
${rows.join("\n")}
  }};
  return files;
}
`);
