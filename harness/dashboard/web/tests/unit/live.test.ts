import { expect, test } from "vitest";
import type { RunProgress } from "../../src/documents";
import { elapsedShare } from "../../src/parts/live";

const progress = (elapsed: number, remaining: number | null): RunProgress =>
  ({ elapsed, remaining, preparation: 40 }) as RunProgress;

test("the bar begins with the first process", () => {
  expect(elapsedShare(progress(40, 60))).toBe(0);
  expect(elapsedShare(progress(70, 30))).toBe(0.5);
  expect(elapsedShare(progress(100, 0))).toBe(1);
});

test("there is no share without an expected end", () => {
  expect(elapsedShare(progress(70, null))).toBeNull();
  expect(elapsedShare(null)).toBeNull();
});
