import { expect, test } from "vitest";
import { byTalk, measured, places, said, tally } from "../../src/claims";
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

test("a ratio is shown with its interval, and without one where there is none", () => {
  expect(measured(statement())).toBe("2.31× [2.20, 2.43]");
  expect(measured(statement({ low: null, high: null }))).toBe("2.31×");
  expect(measured(statement({ value: null }))).toBe("–");
});

test("errors are a count", () => {
  expect(measured(statement({ to: "", value: 1042 }))).toBe("1,042");
});

test("what theory makes of a figure on this machine stands beside it only where it differs", () => {
  expect(said(statement())).toBe("2.56×");
  expect(said(statement({ said: "19.9×", expected: 20, theory: "20 rounds against one" }))).toBe("19.9×");
  expect(said(statement({ said: "2.98×", expected: 20, theory: "rounds" }))).toBe("2.98×, here 20.0×");
  expect(said(statement({ said: "higher", expected: null }))).toBe("higher");
});

test("claims are counted by verdict, in a fixed order", () => {
  const counted = tally([{ verdict: "refuted" }, { verdict: "supported" }, { verdict: "refuted" }]);
  expect(counted).toEqual([
    ["supported", 1],
    ["direction only", 0],
    ["refuted", 2],
    ["needs a larger machine", 0],
    ["undecided", 0],
  ]);
});

test("claims stand by talk, in the order of their first ones", () => {
  const claim = (name: string, talk: string): ClaimVerdict => ({ claim: name, talk }) as ClaimVerdict;
  const grouped = byTalk([claim("a", "x"), claim("b", "y"), claim("c", "x")]);
  expect(grouped.map(([talk, members]) => [talk, members.map((member) => member.claim)])).toEqual([
    ["x", ["a", "c"]],
    ["y", ["b"]],
  ]);
});

test("a picture has the interval and what was said on one line, with 1 on it; without an interval there is none", () => {
  const found = places(statement());
  const line = [found?.one, found?.meant?.[0], found?.low, found?.value, found?.high, found?.meant?.[1]];
  expect(line).toEqual(line.toSorted());
  expect(line.every((place) => place !== undefined && place >= 0 && place <= 1)).toBe(true);
  expect(places(statement({ least: null, most: 0.9 }))?.meant?.[0]).toBe(0);
  expect(places(statement({ low: null }))).toBeNull();
});
