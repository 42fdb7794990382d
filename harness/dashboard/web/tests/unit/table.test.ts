import { expect, test } from "vitest";
import type { ImplementationInfo, Row, Standing, Table } from "../../src/documents";
import { emptyRoute, noFacets } from "../../src/route";
import { facets, matcher, presets } from "../../src/filter";
import { commonFlags, type RankedRow, rankRows, visibleRows, rowTies } from "../../src/table";

const info = (name: string, facts: Partial<ImplementationInfo> = {}): ImplementationInfo => ({
  name,
  framework: name,
  project: name,
  language: "Java",
  folder: "",
  display_name: name,
  approach: "",
  classification: "",
  platform: "",
  webserver: "",
  http_server: "",
  concurrency: "",
  database_driver: "",
  json_library: "",
  template_engine: "",
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
  digest: "",
  rules: "tfb",
  allowed: [],
  build: null,
  ...facts,
});

const standing = (median: number, position: number, group: number): Standing => ({
  estimate: {
    median,
    low: median * 0.99,
    high: median * 1.01,
    processes: 3,
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
  load: null,
  throughput,
  cpu_per_request: null,
  rss_peak: null,
  response_time: null,
  throughput_per_memory: null,
  threads: null,
  cpu_to_floor: null,
  startup_time: null,
  checks: 0,
  responses_checked: 0,
  latency: null,
  errors: 0,
  flags: [],
  ranked: throughput !== null,
  reason: "",
  trials: 3,
  dropped: 0,
  ...more,
});

const TABLE: Table = {
  test_type: "json",
  load: null,
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

const all = rankRows(TABLE, INFOS, "throughput", "alpha");
const names = (list: RankedRow[]): string[] => list.map((entry) => entry.name);

test("filtering changes neither ranks nor ratios", () => {
  const kept = visibleRows(all, { ...emptyRoute(), facets: { ...emptyRoute().facets, language: ["Go"] } });
  expect(names(kept)).toEqual(["alpha", "delta"]);
  expect(kept.map((entry) => entry.standing?.rank)).toEqual([
    { low: 1, high: 1 },
    { low: 4, high: 4 },
  ]);
  expect(kept[1]?.ratio).toEqual(all[3]?.standing?.to_reference);
});

test("empty values and None are the same facet value", () => {
  const database = facets(INFOS.values()).find(({ facet }) => facet === "database");
  expect(database?.values).toEqual([
    { value: "none", key: "none", count: 2 },
    { value: "Postgres", key: "postgres", count: 2 },
  ]);
});

test("implementations can be filtered by their components", () => {
  const infos = new Map([
    ["a", info("a", { http_server: "Netty", database_driver: "pgjdbc" })],
    ["b", info("b", { http_server: "Netty", database_driver: "Vert.x PG client" })],
    ["c", info("c", { http_server: "hyper" })],
  ]);
  expect(facets(infos.values()).map(({ facet }) => facet)).toEqual(["http_server", "database_driver"]);
  const kept = (facetFilter: Partial<ReturnType<typeof noFacets>>, text = ""): string[] => {
    const matches = matcher({ text, hidden: [], facets: { ...noFacets(), ...facetFilter } });
    return [...infos].flatMap(([name, each]) => (matches(name, each) ? [name] : []));
  };
  expect(kept({ http_server: ["netty"] })).toEqual(["a", "b"]);
  expect(kept({ http_server: ["netty"], database_driver: ["pgjdbc"] })).toEqual(["a"]);
  expect(kept({}, "vert.x pg")).toEqual(["b"]);
});

test("facets combine with AND, their values with OR", () => {
  const route = emptyRoute();
  route.facets.language = ["Go", "Java"];
  route.facets.database = ["Postgres"];
  expect(names(visibleRows(all, route))).toEqual(["gamma", "delta"]);
});

test("each alternative may match names or tags", () => {
  expect(names(visibleRows(all, { ...emptyRoute(), text: "GAM, fast" }))).toEqual(["beta", "gamma"]);
});

test("unknown values and unranked rows sort last", () => {
  expect(names(visibleRows(all, { ...emptyRoute(), sort: "memory" }))).toEqual([
    "beta",
    "delta",
    "alpha",
    "gamma",
    "broken",
  ]);
  expect(names(visibleRows(all, { ...emptyRoute(), sort: "memory", descending: true }))).toEqual([
    "alpha",
    "delta",
    "beta",
    "gamma",
    "broken",
  ]);
});

test("pinned rows come first despite filters", () => {
  expect(names(visibleRows(all, { ...emptyRoute(), pinned: ["delta"], text: "alpha" }))).toEqual(["delta", "alpha"]);
});

test("hidden rows disappear even if pinned", () => {
  expect(names(visibleRows(all, { ...emptyRoute(), hidden: ["alpha", "broken"], pinned: ["alpha"] }))).toEqual([
    "beta",
    "gamma",
    "delta",
  ]);
});

test("only neighbours in rank order are tied", () => {
  expect(rowTies(all, true)).toEqual([
    { parity: 0, first: true, last: false },
    { parity: 0, first: false, last: true },
    null,
    null,
    null,
  ]);
  expect(rowTies(all, false).every((tie) => tie === null)).toBe(true);
});

test("facet values ignore case", () => {
  const two = [
    info("a", { language: "C++" }),
    info("b", { language: "c++" }),
    info("c", { language: "c++" }),
    info("d"),
  ];
  const language = facets(two).find(({ facet }) => facet === "language");
  expect(language?.values).toEqual([
    { value: "c++", key: "c++", count: 3 },
    { value: "Java", key: "java", count: 1 },
  ]);
  const route = { ...emptyRoute(), facets: { ...noFacets(), language: ["C++"] } };
  const table = { ...TABLE, rows: two.map(({ name }) => row(name, standing(1, 1, 1))) };
  const infos = new Map(two.map((item) => [item.name, item]));
  const list = rankRows(table, infos, "throughput", null);
  expect(names(visibleRows(list, route))).toEqual(["a", "b", "c"]);
});

test("all words of an alternative must match", () => {
  expect(names(visibleRows(all, { ...emptyRoute(), text: "go delt" }))).toEqual(["delta"]);
  expect(names(visibleRows(all, { ...emptyRoute(), text: "go delt, bet" }))).toEqual(["beta", "delta"]);
});

test("the best variant follows the ranking metric", () => {
  const sameFramework = new Map(
    [...INFOS].map(([name, item]) => [name, { ...item, framework: name === "beta" ? "alpha" : name }]),
  );
  const list = rankRows(TABLE, sameFramework, "throughput", null);
  expect(names(visibleRows(list, { ...emptyRoute(), bestVariantsOnly: true }))).toEqual([
    "alpha",
    "gamma",
    "delta",
    "broken",
  ]);
});

test("only presets that filter something are available", () => {
  const named = presets([info("a", { orm: "Full" }), info("b", { orm: "Raw" })]).map((preset) => preset.name);
  expect(named).toEqual(["Full ORM", "Raw SQL"]);
});

test("memory ranks ascending, with shares of the minimum", () => {
  const list = rankRows(TABLE, INFOS, "memory", "alpha");
  expect(list.map((entry) => [entry.name, entry.position, entry.share])).toEqual([
    ["beta", 1, 1],
    ["delta", 2, 10 / 30],
    ["alpha", 3, 10 / 50],
    ["gamma", null, null],
    ["broken", null, null],
  ]);
  expect(list[0]?.ratio).toMatchObject({ value: 0.2, low: null, high: null });
  expect(rankRows(TABLE, INFOS, "memory", "gamma").every(({ ratio }) => ratio === null)).toBe(true);
  const alike = { ...TABLE, rows: TABLE.rows.map((item) => ({ ...item, rss_peak: item.rss_peak === 50 ? 50 : 10 })) };
  const places = rankRows(alike, INFOS, "memory", null).map(({ position }) => position);
  expect(places).toEqual([1, 1, 1, 4, null]);
});

test("each metric ranks its best value first", () => {
  const table = {
    ...TABLE,
    rows: [
      row("alpha", standing(400, 1, 1), { response_time: 0.002, throughput_per_memory: 8, threads: 4 }),
      row("beta", standing(390, 2, 2), { response_time: 0.001, throughput_per_memory: 2, threads: 200 }),
    ],
  };
  const first = (metric: "response" | "density" | "threads") =>
    rankRows(table, INFOS, metric, "alpha").map((entry) => [entry.name, entry.share]);
  expect(first("response")).toEqual([
    ["beta", 1],
    ["alpha", 0.5],
  ]);
  expect(first("density")).toEqual([
    ["alpha", 1],
    ["beta", 0.25],
  ]);
  expect(first("threads")).toEqual([
    ["alpha", 1],
    ["beta", 0.02],
  ]);
});

test("CPU ranking uses CPU ratios and shares", () => {
  const cpu = (median: number, position: number, to_reference: number): Standing => ({
    ...standing(median, position, position),
    to_reference: { value: to_reference, low: null, high: null },
  });
  const table = {
    ...TABLE,
    rows: [
      row("alpha", standing(400, 1, 1), { cpu_per_request: cpu(2e-5, 2, 1) }),
      row("beta", standing(390, 2, 2), { cpu_per_request: cpu(1e-5, 1, 0.5) }),
    ],
  };
  const list = rankRows(table, INFOS, "cpu", "alpha");
  expect(list.map((entry) => [entry.name, entry.share, entry.ratio?.value])).toEqual([
    ["beta", 1, 0.5],
    ["alpha", 0.5, 1],
  ]);
});

test("flags of all rows are common flags", () => {
  expect(commonFlags([["a", "b"], ["b"], ["b", "c"], ["b"]])).toEqual(["b"]);
  expect(commonFlags([["a"], ["b"]])).toEqual([]);
  expect(commonFlags([["a"]])).toEqual([]);
});
