import { expect, test } from "vitest";
import { removeOverlappingTicks, trimZeros } from "../../src/charts/axes";
import { nearestStop } from "../../src/charts/crosshair";
import { placeLabels, spread, textWidth } from "../../src/charts/labels";
import { needsLogScale, scaleFor } from "../../src/charts/scales";
import { crosshairStops, isSparse } from "../../src/charts/series";
import { seriesStyle } from "../../src/charts/palette";

test("labels keep their order and do not overlap", () => {
  const placed = spread([100, 101, 102, 300, 20], 15, [10, 310]);
  const ys = placed.map((label) => label.y);
  for (let index = 1; index < ys.length; index++)
    expect((ys[index] ?? 0) - (ys[index - 1] ?? 0)).toBeGreaterThanOrEqual(15);
  expect(placed.map((label) => label.index)).toEqual([4, 0, 1, 2, 3]);
  expect(Math.max(...ys)).toBeLessThanOrEqual(310);
});

test("overlapping ticks are removed", () => {
  const ticks = ["1,000", "1,100", "1,200", "1,300"].map((text, index) => ({ at: index * 25, text }));
  const kept = removeOverlappingTicks(ticks);
  expect(kept.map((tick) => tick.text)).toEqual(["1,000", "1,200"]);
  expect((kept[1]?.at ?? 0) - (kept[0]?.at ?? 0)).toBeGreaterThan(textWidth("1,000"));
});

test("wide ranges without zeros need a log scale", () => {
  expect(needsLogScale([1, 50])).toBe(true);
  expect(needsLogScale([1, 5])).toBe(false);
  expect(needsLogScale([0, 50])).toBe(false);
});

test("the crosshair lists series from top to bottom", () => {
  const series = ["a", "b"].map((name, index) => ({
    name,
    style: seriesStyle(index),
    points: [
      { x: 1, y: 10 * (index + 1), low: 9, high: 11 },
      { x: 2, y: null },
    ],
  }));
  const axis = { label: "", kind: "linear" as const, format: String };
  const scale = Object.assign((value: number) => 100 - value, { marks: () => [] });
  const stops = crosshairStops(series, scale, scale, axis, axis);
  expect(stops.map((stop) => stop.readings.map((reading) => `${reading.name} ${reading.text}`))).toEqual([
    ["b 20 [9, 11]", "a 10 [9, 11]"],
  ]);
});

test("the nearest stop uses x for lines and distance for points", () => {
  const lines = [10, 50].map((x) => ({ x, title: "", readings: [] }));
  expect(nearestStop(lines, { x: 31, y: 900 })).toBe(1);
  const points = [
    { x: 10, y: 10, title: "", readings: [] },
    { x: 12, y: 90, title: "", readings: [] },
  ];
  expect(nearestStop(points, { x: 12, y: 20 })).toBe(0);
});

test("names in a scatter plot cover neither names nor points", () => {
  const box = (left: number, middle: number) => ({ left, width: 50, middle });
  const boxes = [box(10, 100), box(20, 104), box(10, 130), box(200, 100)];
  const points = boxes.map(({ left, middle }) => ({ x: left - 8, y: middle }));
  expect(placeLabels(boxes, points, [false, false, false, false])).toEqual([false, true, true, true]);
  expect(placeLabels(boxes, points, [true, false, false, false])).toEqual([true, false, true, true]);
});

test("a time series with fewer than five windows has no line", () => {
  const series = (windows: number, isTimeSeries = true) => ({
    name: "P1 R1",
    style: seriesStyle(0),
    isTimeSeries,
    points: Array.from({ length: windows }, (_, x) => ({ x, y: 1 })),
  });
  expect([series(4), series(5), series(4, false)].map(isSparse)).toEqual([true, false, false]);
  const tooShort = { ...series(5), points: [...series(4).points, { x: 5, y: null }] };
  expect(isSparse(tooShort)).toBe(true);
});

test("ticks are round multiples of the unit", () => {
  const mebibyte = 2 ** 20;
  const values = [20, 300].map((value) => value * mebibyte);
  for (const kind of ["linear", "log"] as const)
    for (const mark of scaleFor(kind, values, [0, 500], { unit: mebibyte }).marks(5))
      expect(mark / mebibyte).toBe(Math.round(mark / mebibyte));
  const scale = scaleFor("linear", values, [0, 500], { unit: mebibyte });
  expect(values.map((value) => scale(value))).toEqual([0, 500]);
});

test.each([
  ["10.0 ms", "10 ms"],
  ["0.50×", "0.5×"],
  ["1.05×", "1.05×"],
  ["100 µs", "100 µs"],
  ["30", "30"],
])("a tick shows %s as %s", (text, trimmed) => expect(trimZeros(text)).toBe(trimmed));
