import { expect, test } from "vitest";
import type { Estimate } from "../../src/documents";
import { ratio, studentQuantile, unpairedRatio } from "../../src/ratio";

const estimate = (values: number[]): Estimate => ({
  median: [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0,
  low: null,
  high: null,
  replicates: values.length,
  values,
});

// scipy.stats.t.ppf(p, df)
test.each([
  [0.975, 1, 12.706204736174707],
  [0.975, 4, 2.7764451051977987],
  [0.975, 7.3, 2.345066736547703],
  [0.995, 9, 3.2498355415921254],
  [0.95, 2, 2.919985580355516],
  [0.975, 1000, 1.9623390808264078],
])("the quantile of Student's t at %s with %s degrees of freedom is that of scipy", (probability, freedom, value) => {
  expect(studentQuantile(probability, freedom)).toBeCloseTo(value, 5);
});

// By numpy and scipy, on logarithms.
const PAIRED = { value: 1.1049425298723787, low: 1.087594946069225, high: 1.1225668147257675 };
const WELCH = { value: 1.1049425298723783, low: 1.062296968386947, high: 1.149300083360544 };
const A = [100, 104, 98, 103, 101];
const B = [90, 95, 88, 92, 93];

test("complete estimates are compared within blocks", () => {
  const found = ratio(estimate(A), estimate(B), 5);
  // numpy: d = log(A/B); exp(mean), exp(mean ± t.ppf(.975, 4) * std(ddof=1)/sqrt(5))
  expect(found?.value).toBeCloseTo(PAIRED.value, 6);
  expect(found?.low).toBeCloseTo(PAIRED.low, 6);
  expect(found?.high).toBeCloseTo(PAIRED.high, 6);
});

test("estimates of different runs are compared by Welch's t", () => {
  const found = unpairedRatio(estimate(A), estimate(B));
  expect(found?.value).toBeCloseTo(WELCH.value, 6);
  expect(found?.low).toBeCloseTo(WELCH.low, 6);
  expect(found?.high).toBeCloseTo(WELCH.high, 6);
});

test("an estimate that lacks a block is not paired by its place in the list", () => {
  const lacking = ratio(estimate(A), estimate(B.slice(1)), 5);
  const welch = unpairedRatio(estimate(A), estimate(B.slice(1)));
  expect(lacking).toEqual(welch);
});

test("one replicate gives a ratio without an interval", () => {
  const found = ratio(estimate([100]), estimate([50]), 1);
  expect(found?.value).toBeCloseTo(2);
  expect(found?.low).toBeNull();
});

test("values that have no logarithm are left out", () => {
  expect(ratio(estimate([0, Number.NaN]), estimate([50]), 1)).toBeNull();
});
