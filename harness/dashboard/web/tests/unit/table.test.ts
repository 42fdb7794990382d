import { expect, test } from "vitest";
import type { ImplementationInfo, Row, Standing, Table } from "../../src/documents";
import { emptyRoute } from "../../src/route";
import { commonWords, facets, type Line, lines, shown, ties } from "../../src/table";

const info = (name: string, facts: Partial<ImplementationInfo> = {}): ImplementationInfo => ({
  name,
  framework: name,
  language: "Java",
  folder: "",
  display_name: name,
  approach: "",
  classification: "",
  platform: "",
  webserver: "",
  database: "",
  orm: "",
  os: "",
  database_os: "",
  flavor: "",
  notes: "",
  versus: "",
  tags: [],
  maintainers: [],
  test_types: [],
  build: null,
  ...facts,
});

const standing = (median: number, position: number, group: number): Standing => ({
  estimate: {
    median,
    low: median * 0.99,
    high: median * 1.01,
    replicates: 3,
    values: [median, median * 0.99, median * 1.01],
  },
  position,
  rank: { low: position, high: position },
  tie_group: group,
  to_reference: null,
  to_best: null,
});

const row = (implementation: string, throughput: Standing | null, more: Partial<Row> = {}): Row => ({
  implementation,
  level: null,
  throughput,
  cpu_per_request: null,
  rss_peak: null,
  first_answer: null,
  errors: 0,
  words: [],
  ranked: throughput !== null,
  reason: "",
  samples: 3,
  dropped: 0,
  ...more,
});

const TABLE: Table = {
  test_type: "json",
  level: null,
  comparisons: 6,
  rows: [
    row("alpha", standing(400, 1, 1), { rss_peak: 50 }),
    row("beta", standing(390, 2, 1), { rss_peak: 10 }),
    row("gamma", standing(200, 3, 2)),
    row("delta", standing(100, 4, 3), { rss_peak: 30 }),
    row("broken", null, { reason: "verification failed" }),
  ],
};
const INFOS = new Map([
  ["alpha", info("alpha", { language: "Go" })],
  ["beta", info("beta", { database: "None", tags: ["fast"] })],
  ["gamma", info("gamma", { database: "Postgres" })],
  ["delta", info("delta", { language: "Go", database: "Postgres" })],
]);

const all = lines(TABLE, INFOS, "throughput", "gamma", "alpha");
const names = (list: Line[]): string[] => list.map((line) => line.name);

test("filtering changes neither ranks nor ratios", () => {
  const kept = shown(all, { ...emptyRoute(), facets: { ...emptyRoute().facets, language: ["Go"] } });
  expect(names(kept)).toEqual(["alpha", "delta"]);
  expect(kept.map((line) => line.standing?.rank)).toEqual([
    { low: 1, high: 1 },
    { low: 4, high: 4 },
  ]);
  expect(kept[1]?.ratio?.value).toBeCloseTo(0.5, 6);
});

test("a blank fact and TechEmpower's None are the same value of a facet", () => {
  const database = facets(INFOS.values()).find(({ facet }) => facet === "database");
  expect(database?.values).toEqual([
    { value: "none", count: 2 },
    { value: "Postgres", count: 2 },
  ]);
});

test("facets are joined by and, their values by or", () => {
  const route = emptyRoute();
  route.facets.language = ["Go", "Java"];
  route.facets.database = ["Postgres"];
  expect(names(shown(all, route))).toEqual(["gamma", "delta"]);
});

test("any of the words may match a name or a tag", () => {
  expect(names(shown(all, { ...emptyRoute(), text: "GAM, fast" }))).toEqual(["beta", "gamma"]);
});

test("unknown values sort last in both directions, and so do unranked rows", () => {
  expect(names(shown(all, { ...emptyRoute(), sort: "memory" }))).toEqual(["beta", "delta", "alpha", "gamma", "broken"]);
  expect(names(shown(all, { ...emptyRoute(), sort: "memory", descending: true }))).toEqual([
    "alpha",
    "delta",
    "beta",
    "gamma",
    "broken",
  ]);
});

test("pinned rows come first and stay when a filter would drop them", () => {
  expect(names(shown(all, { ...emptyRoute(), pinned: ["delta"], text: "alpha" }))).toEqual(["delta", "alpha"]);
});

test("hidden rows are gone", () => {
  expect(names(shown(all, { ...emptyRoute(), hidden: ["alpha", "broken"] }))).toEqual(["beta", "gamma", "delta"]);
});

test("ties are shaded only among neighbours in rank order", () => {
  expect(ties(all, true)).toEqual([
    { parity: 0, first: true, last: false },
    { parity: 0, first: false, last: true },
    null,
    null,
    null,
  ]);
  expect(ties(all, false).every((tie) => tie === null)).toBe(true);
});

test("the baseline itself is exactly one", () => {
  expect(all[2]?.ratio).toEqual({ value: 1, low: 1, high: 1 });
});

test("words that every measured row has are said once", () => {
  const worded = (words: string[][]): Line[] =>
    all.map((line, index) => ({ ...line, row: { ...line.row, words: words[index] ?? [] } }));
  expect(commonWords(worded([["a", "b"], ["b"], ["b", "c"], ["b"]]))).toEqual(["b"]);
  expect(commonWords(worded([["a"], ["b"]]))).toEqual([]);
  expect(commonWords(worded([["a"]]).slice(0, 1))).toEqual([]);
});
