import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const server = process.env.BERTH_URL ?? "http://127.0.0.1:3100";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      // Radix locks scrolling with a style element that the page's content policy forbids; ours uses a class.
      "react-remove-scroll": fileURLToPath(new URL("src/ui/remove-scroll.tsx", import.meta.url)),
    },
  },
  build: {
    target: "es2022",
    // The whole first view in one script and one style; forms and the terminal come when they are opened.
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
  server: { proxy: { "/api": { target: server, ws: true, changeOrigin: true } } },
});
