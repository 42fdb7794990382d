import { expect, test } from "vitest";
import { thin } from "../../src/charts/axes";
import { nearest } from "../../src/charts/crosshair";
import { spread, textWidth } from "../../src/charts/labels";
import { wantsLog } from "../../src/charts/scales";
import { stopsOf } from "../../src/charts/series";
import { look } from "../../src/charts/palette";

test("labels of one column keep their order and never touch", () => {
  const placed = spread([100, 101, 102, 300, 20], 15, [10, 310]);
  const ys = placed.map((label) => label.y);
  for (let index = 1; index < ys.length; index++)
    expect((ys[index] ?? 0) - (ys[index - 1] ?? 0)).toBeGreaterThanOrEqual(15);
  expect(placed.map((label) => label.index)).toEqual([4, 0, 1, 2, 3]);
  expect(Math.max(...ys)).toBeLessThanOrEqual(310);
});

test("ticks whose texts would touch are thinned", () => {
  const ticks = ["1,000", "1,100", "1,200", "1,300"].map((text, index) => ({ at: index * 25, text }));
  const kept = thin(ticks);
  expect(kept.map((tick) => tick.text)).toEqual(["1,000", "1,200"]);
  expect((kept[1]?.at ?? 0) - (kept[0]?.at ?? 0)).toBeGreaterThan(textWidth("1,000"));
});

test("a log scale is wanted where values span much, and never with a zero among them", () => {
  expect(wantsLog([1, 50])).toBe(true);
  expect(wantsLog([1, 5])).toBe(false);
  expect(wantsLog([0, 50])).toBe(false);
});

test("the crosshair tells every series at a place, from the top down", () => {
  const series = ["a", "b"].map((name, index) => ({
    name,
    look: look(index),
    points: [
      { x: 1, y: 10 * (index + 1), low: 9, high: 11 },
      { x: 2, y: null },
    ],
  }));
  const axis = { label: "", kind: "linear" as const, format: String };
  const scale = Object.assign((value: number) => 100 - value, { marks: () => [] });
  const stops = stopsOf(series, scale, scale, axis, axis);
  expect(stops.map((stop) => stop.readings.map((reading) => `${reading.name} ${reading.text}`))).toEqual([
    ["b 20 [9, 11]", "a 10 [9, 11]"],
  ]);
});

test("the nearest place is by the x axis for lines, by distance for points", () => {
  const lines = [10, 50].map((x) => ({ x, title: "", readings: [] }));
  expect(nearest(lines, { x: 31, y: 900 })).toBe(1);
  const points = [
    { x: 10, y: 10, title: "", readings: [] },
    { x: 12, y: 90, title: "", readings: [] },
  ];
  expect(nearest(points, { x: 12, y: 20 })).toBe(0);
});
