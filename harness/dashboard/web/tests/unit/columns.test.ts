import { expect, test } from "vitest";
import { rowsOf } from "../../src/columns";

test("columns become the rows that they were made of", () => {
  const rows = rowsOf({
    count: 3,
    columns: {
      name: { each: ["a", "b", "c"] },
      words: { same: ["provisional"] },
      standing: {
        none: [1],
        columns: {
          rank: { columns: { low: { each: [1, null, 2] }, high: { same: 3 } }, none: [1] },
          ratio: { same: null },
        },
      },
    },
  });
  expect(rows).toEqual([
    { name: "a", words: ["provisional"], standing: { rank: { low: 1, high: 3 }, ratio: null } },
    { name: "b", words: ["provisional"], standing: null },
    { name: "c", words: ["provisional"], standing: { rank: { low: 2, high: 3 }, ratio: null } },
  ]);
});
