// Builds the page into dist/: one script and one style sheet, so that the offline report can inline both.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // the first with light-dark()
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
});
