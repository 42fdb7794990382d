// Levels of a sweep: their short label, as in the URL and the Python side, and their name for people.
import type { Level } from "./documents";

/** ``c64``, ``c64 q20``, ``c256 p16``, ``x8``: the same as Level.label in harness/records/models.py. */
export function label(level: Level): string {
  if (level.factor !== null && level.factor !== undefined) return `x${level.factor}`;
  const parts = [`c${level.concurrency}`];
  if (level.queries !== null && level.queries !== undefined) parts.push(`q${level.queries}`);
  if ((level.pipeline ?? 1) > 1) parts.push(`p${level.pipeline}`);
  return parts.join(" ");
}

/** ``64 connections``, ``20 queries``. */
export function name(level: Level): string {
  if (level.queries !== null && level.queries !== undefined)
    return level.queries === 1 ? "1 query" : `${level.queries} queries`;
  if (level.factor !== null && level.factor !== undefined) return `×${level.factor} arrivals`;
  return `${level.concurrency} connections`;
}

/** What a test type's sweep varies. */
export function axis(levels: readonly Level[]): "queries" | "concurrency" {
  return levels.some((level) => level.queries !== null && level.queries !== undefined) ? "queries" : "concurrency";
}

/** The level's place on that axis. */
export function position(level: Level, along: "queries" | "concurrency"): number {
  return along === "queries" ? (level.queries ?? 0) : level.concurrency;
}

const TEST_NAMES: Record<string, string> = {
  json: "JSON",
  plaintext: "Plaintext",
  db: "Single query",
  query: "Multiple queries",
  fortune: "Fortunes",
  update: "Updates",
  "cached-query": "Cached queries",
  hello: "Hello",
  delay: "Delay",
  "fan-out": "Fan-out",
  order: "Order service",
};

/** A test type's name for people. */
export function testName(testType: string): string {
  return (Object.hasOwn(TEST_NAMES, testType) ? TEST_NAMES[testType] : undefined) ?? testType;
}
