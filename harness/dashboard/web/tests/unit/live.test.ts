import { expect, test } from "vitest";
import type { RunProgress } from "../../src/documents";
import { elapsedShare } from "../../src/parts/live";

const progress = (elapsed: number, remaining: number | null): RunProgress =>
  ({ elapsed, remaining, preparation: 40 }) as RunProgress;

test("the progress bar excludes preparation", () => {
  expect(elapsedShare(progress(40, 60))).toBe(0);
  expect(elapsedShare(progress(70, 30))).toBe(0.5);
  expect(elapsedShare(progress(100, 0))).toBe(1);
});

test("without an expected end, the elapsed share is unknown", () => {
  expect(elapsedShare(progress(70, null))).toBeNull();
  expect(elapsedShare(null)).toBeNull();
});
