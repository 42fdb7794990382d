import { expect, test } from "vitest";
import { removeOverlappingTicks } from "../../src/charts/axes";
import { nearestStop } from "../../src/charts/crosshair";
import { spread, textWidth } from "../../src/charts/labels";
import { needsLogScale } from "../../src/charts/scales";
import { crosshairStops } from "../../src/charts/series";
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
