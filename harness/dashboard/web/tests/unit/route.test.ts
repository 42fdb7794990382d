import { expect, test } from "vitest";
import { emptyRoute, format, noFacets, parse, type Route } from "../../src/route";

const full: Route = {
  ...emptyRoute(),
  page: "run",
  run: "20250615-a b",
  view: "load",
  test: "cached-query",
  load: "c64 q20",
  metric: "cpu",
  metricChosen: true,
  sort: "memory",
  descending: true,
  text: "net, vert",
  facets: { ...noFacets(), language: ["C#", "C++"], database: ["none"], tags: ["a&b=c"] },
  baseline: "es4x, the first",
  absolute: true,
  pinned: ["vertx-web"],
  selected: ["es4x", "express"],
  hidden: ["express"],
  excludedTests: ["db", "cached-query"],
  bestVariantsOnly: true,
  group: "platform",
};

test("a route survives formatting and parsing", () => expect(parse(format(full))).toEqual(full));

test("defaults are omitted from the link", () => {
  expect(format({ ...emptyRoute(), page: "run", run: "r1" })).toBe("#/run/r1");
  expect(format(emptyRoute())).toBe("#/");
});

test("comparisons and claims can be linked", () => {
  const claims: Route = { ...emptyRoute(), page: "claims", claim: "a-claim", verdict: "direction only", text: "p99" };
  expect(parse(format(claims))).toEqual(claims);
  const compare: Route = { ...emptyRoute(), page: "compare", run: "a", other: "b", test: "db" };
  expect(parse(format(compare))).toEqual(compare);
  expect(parse("#/claims").page).toBe("claims");
});

test.each(["#/run/%E0%A4%A", "#/nowhere/at/all", "#/?view=<script>&sort=constructor&metric=__proto__", "garbage"])(
  "unknown parts of a link are ignored: %s",
  (hash) => {
    const route = parse(hash);
    expect(route.view).toBe("table");
    expect(route.sort).toBe("rank");
    expect(route.metric).toBe("throughput");
  },
);

test("a selected metric is part of the link", () => {
  expect(format({ ...emptyRoute(), page: "run", run: "r", metricChosen: true })).toBe("#/run/r?metric=throughput");
  expect(parse("#/run/r?metric=throughput").metricChosen).toBe(true);
  expect(parse("#/run/r").metricChosen).toBe(false);
});
