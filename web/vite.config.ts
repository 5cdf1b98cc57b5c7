import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, transformWithEsbuild, type Plugin } from "vite";

const server = process.env.BERTH_URL ?? "http://127.0.0.1:3100";
const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

// Puts src/first/ask.ts and the style into the page itself, so that the first answers are on their way before any file
// is. embed.mjs computes the hashes by which the content policy allows them.
function inlineFirst(): Plugin {
  const rest = "__REST_FILE__";
  return {
    name: "inline-first",
    transformIndexHtml: {
      order: "post",
      async handler(html, { bundle }) {
        const source = readFileSync(pathOf("src/first/ask.ts"), "utf8");
        const { code } = await transformWithEsbuild(source, "ask.ts", { define: { __REST__: JSON.stringify(rest) }, minify: true, format: "iife", sourcemap: false });
        const files = Object.values(bundle ?? {});
        const restFile = files.find((file) => file.type === "chunk" && file.isDynamicEntry && file.name === "rest");
        const script = code.trim().replace(rest, restFile ? `/${restFile.fileName}` : "");
        let page = html.replace("<!-- first -->", () => `<script>${script}</script>`);
        for (const file of files) {
          if (file.type !== "asset" || !file.fileName.endsWith(".css")) continue;
          page = page.replace(new RegExp(`<link rel="stylesheet"[^>]*${file.fileName}">`), () => `<style>${String(file.source).trim()}</style>`);
          delete bundle![file.fileName];
        }
        return page;
      },
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), inlineFirst()],
  resolve: {
    alias: {
      // Radix locks scrolling with a style element that the page's content policy forbids; ours uses a class.
      "react-remove-scroll": pathOf("src/ui/remove-scroll.tsx"),
    },
  },
  build: {
    target: "es2022",
    // The first view is one script; the rest of the pages, forms and the terminal come when they are wanted.
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
    rollupOptions: { output: { experimentalMinChunkSize: 2000 } },
  },
  server: { proxy: { "/api": { target: server, ws: true, changeOrigin: true } } },
});
