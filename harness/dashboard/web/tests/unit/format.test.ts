import { expect, test } from "vitest";
import * as format from "../../src/format";

test.each([
  [null, "–"],
  [Number.NaN, "–"],
  [0.00084, "840 µs"],
  [0.0123, "12.3 ms"],
  [0.9994, "999 ms"],
  [4.2, "4.20 s"],
  [59.96, "1 min 00 s"],
  [185, "3 min 05 s"],
  [7440, "2 h 04 min"],
  [-0.5, "−500 ms"],
])("%s seconds are formatted as %s", (value, text) => expect(format.seconds(value)).toBe(text));

test.each([
  [512, "512 B"],
  [3482, "3.4 KiB"],
  [137_363_456, "131 MiB"],
  [3 * 2 ** 30, "3.0 GiB"],
  [undefined, "–"],
])("%s bytes are formatted as %s", (value, text) => expect(format.bytes(value)).toBe(text));

test("rates have thousands separators", () => expect(format.rate(1234567.8)).toBe("1,234,568"));

test("microseconds have three significant digits", () => {
  expect(format.micros(11.41e-6)).toBe("11.4");
  expect(format.micros(1234e-6)).toBe("1,234");
});

test("ratios and intervals share a format", () => {
  expect(format.timesWithInterval({ value: 1.12, low: 1.08, high: 1.17 })).toBe("1.12× [1.08, 1.17]");
  expect(format.timesWithInterval({ value: 0.97, low: 0.962, high: 0.981 })).toBe("0.97× [0.96, 0.98]");
  expect(format.timesWithInterval({ value: 2, low: null, high: null })).toBe("2.00×");
});

test("rank intervals are formatted as 2 or 2–3", () => {
  expect(format.ranks({ low: 2, high: 2 })).toBe("2");
  expect(format.ranks({ low: 2, high: 3 })).toBe("2–3");
  expect(format.ranks(null)).toBe("–");
});

test("extreme numbers stay short", () => {
  expect(format.significant(1e-30)).toBe("1.0e-30");
  expect(format.rate(Number.POSITIVE_INFINITY)).toBe("–");
  expect(format.rate(-9e300)).toBe("-9.0e+300");
  expect(format.dateTime(9e300)).toBe("–");
});

test("commands are quoted for a shell", () =>
  expect(format.shell(["wrk", "-H", "Host: a'b", "-d", "3", "http://127.0.0.1:80/queries?queries=20"])).toBe(
    `wrk -H 'Host: a'\\''b' -d 3 'http://127.0.0.1:80/queries?queries=20'`,
  ));
