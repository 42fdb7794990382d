import { expect, test } from "vitest";
import { ServerSource } from "../../src/source";
import { convert } from "../../src/techempower/convert";

const trial = (requests: number, more: object = {}) => ({ totalRequests: requests, latencyAvg: "1ms", ...more });
const FILE = {
  name: "Round 0",
  duration: 10,
  concurrencyLevels: [16, 32],
  queryIntervals: [1, 20],
  frameworks: ["one", "two"],
  rawData: {
    json: { one: [trial(1000), trial(2000)], two: [trial(5000, { "5xx": 4500 }), {}] },
    query: { one: [trial(900), trial(300)], two: [trial(800), trial(400)] },
  },
  failed: { json: ["three"] },
  testMetadata: [{ name: "one", language: "Go", tags: ["x"] }, null, 7],
};

test("throughput counts successful responses at the best load", () => {
  const rows = convert(FILE, "f").document.ranking.test_types.json?.headline.rows;
  expect(rows?.map((row) => [row.implementation, row.throughput?.estimate.median, row.errors])).toEqual([
    ["one", 200, 0],
    ["two", 50, 4500],
  ]);
});

test("query tests use the highest query count as headline", () => {
  const table = convert(FILE, "f").document.ranking.test_types.query?.headline;
  expect(table?.load?.queries).toBe(20);
  expect(table?.rows.map((row) => row.implementation)).toEqual(["two", "one"]);
});

test("files with the same name get different ids", () => {
  const source = new ServerSource();
  expect(source.open("results.json", JSON.stringify(FILE))).not.toBe(source.open("results.json", JSON.stringify(FILE)));
});

test("a single measurement has a flag and no interval", () => {
  const row = convert(FILE, "f").document.ranking.test_types.json?.headline.rows[0];
  expect(row?.throughput?.estimate.low).toBeNull();
  expect(row?.flags).toEqual(["single measurement"]);
});

test.each([null, 7, [], {}, { rawData: [] }, { rawData: {} }])("other files are rejected: %j", (raw) => {
  expect(() => convert(raw, "f")).toThrow(/not a results.json/);
});

test("values of wrong types are ignored", () => {
  const converted = convert(
    { rawData: { json: { a: "nonsense", b: [null, { totalRequests: "many" }], __proto__: [1] } }, frameworks: 7 },
    "f",
  );
  expect(converted.document.problems.map((problem) => problem.message)).toContain("json, a: expected a list of trials");
  expect(converted.document.ranking.test_types.json?.headline.rows.every((row) => !row.ranked)).toBe(true);
});

test("wrk's latencies are converted to seconds", () => {
  const file = {
    ...FILE,
    rawData: { json: { one: [trial(1000, { latencyAvg: "841.5us", latencyStdev: "1.5ms", latencyMax: "1.02s" })] } },
  };
  const [cell] = convert(file, "f").latency.json?.cells ?? [];
  expect([cell?.mean, cell?.stdev, cell?.maximum]).toEqual([
    expect.closeTo(841.5e-6, 12),
    expect.closeTo(1.5e-3, 12),
    1.02,
  ]);
  expect(cell?.basis).toContain("closed loop");
});

test("sentences name the leaders and the uncertainty", () => {
  const { sentences } = convert({ ...FILE, environmentDescription: "Citrine" }, "f").document;
  expect(Object.keys(sentences)).toEqual(["overall", "json", "query"]);
  expect(sentences.json?.throughput?.[0]).toBe("one leads JSON with 200 requests/s, 4.00× two's.");
  // Shares of the best: 1 and 30/40 for "one", 1/4 and 1 for "two".
  expect(sentences.overall?.throughput?.[0]).toBe(
    "one leads overall: the geometric mean of its shares of the best over 2 test types is 87 %, 1.73× two's.",
  );
  expect(sentences.overall?.throughput?.[1]).toContain("measured once");
  expect(sentences.overall?.throughput?.[2]).toBe("Measured on Citrine.");
});

test("tests without values have no sentences", () => {
  expect(convert({ rawData: { json: { a: "nonsense" } } }, "f").document.sentences).toEqual({});
});
