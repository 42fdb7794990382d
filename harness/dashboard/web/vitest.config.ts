// Unit tests run in Node; end-to-end tests start the real server and a real Chromium, two files at a time. The one that
// measures a real run comes after them, by itself (npm run e2e).
import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    maxWorkers: 2,
    expect: { poll: { timeout: 30_000 } },
  },
});
