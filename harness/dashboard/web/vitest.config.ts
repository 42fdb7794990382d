// Unit tests run in Node; end-to-end tests start the real server and a real Chromium, one file at a time.
import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    fileParallelism: false,
    expect: { poll: { timeout: 30_000 } },
  },
});
