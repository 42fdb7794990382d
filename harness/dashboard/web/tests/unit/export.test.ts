import { expect, test } from "vitest";
import { csv, objects } from "../../src/export";
import { folderAddress } from "../../src/parts/source-link";

test("CSV quotes commas, quotes and line breaks", () => {
  expect(
    csv({
      columns: ["a", "b"],
      rows: [
        ['x,"y"', "p\nq"],
        [null, 1.5],
      ],
    }),
  ).toBe('a,b\r\n"x,""y""","p\nq"\r\n,1.5\r\n');
});

test.each(["=cmd|' /C calc'!A0", "+1", "-1", "@x"])("formulas are escaped: %s", (text) => {
  expect(csv({ columns: ["a"], rows: [[text]] }).split("\r\n")[1]).toMatch(/^"?'/);
});

test("negative numbers stay numbers", () => expect(csv({ columns: ["a"], rows: [[-1]] })).toBe("a\r\n-1\r\n"));

test("JSON is keyed by column", () =>
  expect(objects({ columns: ["a", "b"], rows: [[1]] })).toEqual([{ a: 1, b: null }]));

test("only plain relative folders become links", () => {
  expect(folderAddress("https://host/o/r", "0123456789abcdef", "frameworks/C#/a b")).toBe(
    "https://host/o/r/tree/0123456789abcdef/frameworks/C%23/a%20b",
  );
  for (const folder of ["javascript:alert(1)", "../x", "/etc", "//host/x", "a/../b", ""])
    expect(folderAddress("https://host/o/r", null, folder)).toBeNull();
  expect(folderAddress("javascript://host", null, "a")).toBeNull();
});
