// Ratio of two estimates with its interval, from the values of their replicates, on logarithms: as harness/rank does.
import type { Estimate, Ratio } from "./documents";

/**
 * a / b with its interval. Paired by block where both have a value in every block (the paired t is valid whether or not
 * blocks differ); else Welch's t. ``blocks`` is how many values a complete estimate has. Without two values of each
 * there is no interval.
 */
export function ratio(a: Estimate, b: Estimate, blocks: number, confidence = 0.95): Ratio | null {
  const first = logs(a.values);
  const second = logs(b.values);
  if (first.length === 0 || second.length === 0) {
    return a.median > 0 && b.median > 0 ? { value: a.median / b.median, low: null, high: null } : null;
  }
  if (first.length === blocks && second.length === blocks && a.values.length === blocks && b.values.length === blocks) {
    return paired(first, second, confidence);
  }
  return welch(first, second, confidence);
}

/** Ratio of two estimates that share no blocks, as those of different runs: Welch's t on logarithms. */
export function unpairedRatio(a: Estimate, b: Estimate, confidence = 0.95): Ratio | null {
  const first = logs(a.values);
  const second = logs(b.values);
  if (first.length === 0 || second.length === 0) return ratio(a, b, -1, confidence);
  return welch(first, second, confidence);
}

function paired(first: number[], second: number[], confidence: number): Ratio {
  const differences = first.map((value, index) => value - (second[index] as number));
  const { mean, variance, count } = moments(differences);
  return around(mean, variance / count, count - 1, confidence);
}

function welch(first: number[], second: number[], confidence: number): Ratio {
  const one = moments(first);
  const two = moments(second);
  const difference = one.mean - two.mean;
  if (one.count < 2 || two.count < 2) return { value: Math.exp(difference), low: null, high: null };
  const partOne = one.variance / one.count;
  const partTwo = two.variance / two.count;
  const error = partOne + partTwo;
  const inner = partOne ** 2 / (one.count - 1) + partTwo ** 2 / (two.count - 1);
  const freedom = inner > 0 ? error ** 2 / inner : Math.min(one.count, two.count) - 1;
  return around(difference, error, freedom, confidence);
}

function around(mean: number, squaredError: number, freedom: number, confidence: number): Ratio {
  if (freedom < 1 || !Number.isFinite(squaredError)) return { value: Math.exp(mean), low: null, high: null };
  const half = studentQuantile(0.5 + confidence / 2, freedom) * Math.sqrt(squaredError);
  return { value: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) };
}

function logs(values: readonly number[]): number[] {
  return values.filter((value) => Number.isFinite(value) && value > 0).map(Math.log);
}

function moments(values: readonly number[]): { mean: number; variance: number; count: number } {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, variance: squares / (count - 1), count };
}

/** Quantile of Student's t for a probability above one half, by bisection of its distribution function. */
export function studentQuantile(probability: number, freedom: number): number {
  let low = 0;
  let high = 1;
  while (studentCdf(high, freedom) < probability && high < 1e8) high *= 2;
  for (let step = 0; step < 100; step++) {
    const middle = (low + high) / 2;
    if (studentCdf(middle, freedom) < probability) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Distribution function of Student's t at t >= 0, by the regularised incomplete beta function. */
function studentCdf(t: number, freedom: number): number {
  return 1 - 0.5 * incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

// Continued fraction of Lentz as in Numerical Recipes, 3rd edition, 6.4.
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return (front * fraction(x, a, b)) / a;
  return 1 - (front * fraction(1 - x, b, a)) / b;
}

function fraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const guard = (value: number): number => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m <= 300; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    const change = d * c;
    result *= change;
    if (Math.abs(change - 1) < 1e-14) break;
  }
  return result;
}

const LANCZOS = [
  76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2,
  -0.5395239384953e-5,
];

function logGamma(x: number): number {
  const base = x + 5.5;
  let series = 1.000000000190015;
  LANCZOS.forEach((coefficient, index) => {
    series += coefficient / (x + 1 + index);
  });
  return (x + 0.5) * Math.log(base) - base + Math.log((2.5066282746310005 * series) / x);
}
