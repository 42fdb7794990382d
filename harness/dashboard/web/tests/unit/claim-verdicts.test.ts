import { expect, test } from "vitest";
import {
  claimedValue,
  countByVerdict,
  filterClaims,
  groupByTalk,
  intervalPositions,
  leadingStatement,
  measuredValue,
} from "../../src/claim-verdicts";
import type { ClaimVerdict, StatementVerdict } from "../../src/documents";

const statement = (facts: Partial<StatementVerdict> = {}): StatementVerdict => ({
  name: "throughput",
  metric: "throughput",
  of: "vertx-web query c512 q20",
  to: "resteasy query c512 q20",
  said: "2.56×",
  expected: 2.56,
  theory: "",
  least: 2.05,
  most: 3.2,
  value: 2.31,
  low: 2.2,
  high: 2.43,
  confidence: 0.95,
  processes: 5,
  figures_of: [],
  figures_to: [],
  verdict: "supported",
  reason: "",
  more: 0,
  takes: "",
  remarks: [],
  context: false,
  ...facts,
});

const claim = (name: string, facts: Partial<ClaimVerdict>): ClaimVerdict =>
  ({ claim: name, title: "", talk: "", said: "", statements: [], ...facts }) as ClaimVerdict;

test("ratios are shown with their interval if available", () => {
  expect(measuredValue(statement())).toBe("2.31× [2.20, 2.43]");
  expect(measuredValue(statement({ low: null, high: null }))).toBe("2.31×");
  expect(measuredValue(statement({ value: null }))).toBe("–");
});

test("error counts are shown without an interval", () => {
  expect(measuredValue(statement({ to: "", value: 1042 }))).toBe("1,042");
});

test("the expected ratio is shown only if it differs", () => {
  expect(claimedValue(statement())).toBe("2.56×");
  expect(claimedValue(statement({ said: "19.9×", expected: 20, theory: "20 rounds against one" }))).toBe("19.9×");
  expect(claimedValue(statement({ said: "2.98×", expected: 20, theory: "rounds" }))).toBe("2.98×, here 20.0×");
  expect(claimedValue(statement({ said: "higher", expected: null }))).toBe("higher");
});

test("claims are counted by verdict, in a fixed order", () => {
  const counted = countByVerdict([{ verdict: "refuted" }, { verdict: "supported" }, { verdict: "refuted" }]);
  expect(counted).toEqual([
    ["supported", 1],
    ["direction only", 0],
    ["refuted", 2],
    ["needs a larger machine", 0],
    ["undecided", 0],
  ]);
});

test("claims are grouped by talk in order of appearance", () => {
  const grouped = groupByTalk([claim("a", { talk: "x" }), claim("b", { talk: "y" }), claim("c", { talk: "x" })]);
  expect(grouped.map(([talk, members]) => [talk, members.map((member) => member.claim)])).toEqual([
    ["x", ["a", "c"]],
    ["y", ["b"]],
  ]);
});

test("a drawing needs an interval and includes 1", () => {
  const positions = intervalPositions(statement());
  const line = [
    positions?.unity,
    positions?.claimed?.[0],
    positions?.low,
    positions?.value,
    positions?.high,
    positions?.claimed?.[1],
  ];
  expect(line).toEqual(line.toSorted());
  expect(line.every((place) => place !== undefined && place >= 0 && place <= 1)).toBe(true);
  expect(intervalPositions(statement({ least: null, most: 0.9 }))?.claimed?.[0]).toBe(0);
  expect(intervalPositions(statement({ low: null }))).toBeNull();
});

test("claims are filtered by verdict and by all words", () => {
  const all = [
    claim("a", { verdict: "refuted", title: "Vert.x has half the latency" }),
    claim("b", { verdict: "supported", title: "RESTEasy ties" }),
  ];
  const found = (text: string, verdict = ""): string[] =>
    filterClaims(all, { text, verdict }).map((item) => item.claim);
  expect(found("")).toEqual(["a", "b"]);
  expect(found("LATENCY vert")).toEqual(["a"]);
  expect(found("latency ties")).toEqual([]);
  expect(found("", "supported")).toEqual(["b"]);
});

test("the leading statement has the claim's verdict", () => {
  const statements = [
    statement({ name: "context", verdict: "refuted", context: true }),
    statement({ name: "rate" }),
    statement({ name: "p99", verdict: "refuted" }),
  ];
  expect(leadingStatement(claim("a", { verdict: "refuted", statements }))?.name).toBe("p99");
  expect(leadingStatement(claim("a", { verdict: "undecided", statements }))?.name).toBe("rate");
  expect(leadingStatement(claim("a", { statements: [] }))).toBeNull();
});
