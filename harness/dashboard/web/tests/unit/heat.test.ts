import { expect, test } from "vitest";
import { ratioHeat, ratioScale, STEPS } from "../../src/parts/heat";

test("equal ratios have equal colours and 1 is neutral", () => {
  const scale = ratioScale([0.2, 1, 3]);
  expect(scale).toEqual({ warmest: 3, coldest: 0.2 });
  expect(ratioHeat(1, scale)).toBe(4);
  expect([ratioHeat(3, scale), ratioHeat(0.2, scale)]).toEqual([0, STEPS - 1]);
});

test("a larger ratio never has a colder colour", () => {
  const scale = ratioScale([0.01, 50]);
  const steps = Array.from({ length: 80 }, (_, index) => ratioHeat(0.01 * 1.12 ** index, scale));
  expect(steps).toEqual([...steps].sort((a, b) => b - a));
  expect(new Set([...steps, ratioHeat(1, scale)]).size).toBe(STEPS);
});

test("small differences do not have extreme colours", () => {
  const scale = ratioScale([0.97, 1.02]);
  expect(ratioHeat(1.02, scale)).toBe(3);
  expect(ratioHeat(0.97, scale)).toBe(5);
});
