// Unit tests run in Node. End-to-end tests run the server and Chromium on generated runs, with two test files at a
// time. The test that measures a real run is a separate project.
import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    testTimeout: 120_000,
    hookTimeout: 180_000,
    maxWorkers: 2,
    expect: { poll: { timeout: 30_000 } },
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/unit/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "page",
          include: ["tests/e2e/*.test.ts"],
          exclude: ["tests/e2e/run.test.ts"],
          globalSetup: ["tests/e2e/generated.ts"],
        },
      },
      { extends: true, test: { name: "run", include: ["tests/e2e/run.test.ts"] } },
    ],
  },
});
