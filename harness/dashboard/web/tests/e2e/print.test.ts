import { afterAll, beforeAll, expect, test } from "vitest";
import { open, raise, type Stage, tableNames, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;
const RUN = "20250618-long";
const MANY = 120;

beforeAll(async () => {
  stage = await raise("long");
  at = await visit(stage.browser);
});
afterAll(() => stage?.stop());

const drawn = async (): Promise<number> => (await tableNames(at.page)).length;

const openRun = async (hash: string): Promise<void> => {
  await open(at.page, stage.url, `#/run/${RUN}${hash}`);
  await expect.poll(drawn, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(await drawn()).toBeLessThan(MANY);
};

test.each([
  ["a test's ranking", "?test=json"],
  ["the overall ranking", ""],
])(
  "%s is printed with all of its rows, and is short again afterwards",
  async (_, hash) => {
    await openRun(hash);
    const before = await drawn();
    // Rows are counted when the browser has told its listeners and before it lays the page out: all must stand there.
    const [during, after] = await at.page.evaluate(async () => {
      const rows = (): number => document.querySelectorAll("table.ranking tbody tr").length;
      dispatchEvent(new Event("beforeprint"));
      const printed = rows();
      dispatchEvent(new Event("afterprint"));
      return [printed, rows()];
    });
    expect(during).toBe(MANY);
    expect(after).toBe(before);
  },
  120_000,
);

test("the browser's own printing has the last row on paper", async () => {
  await openRun("?test=json");
  await at.page.evaluate(() => {
    const count = (): void => {
      document.title = `${document.querySelectorAll("table.ranking tbody tr").length} rows`;
    };
    addEventListener("beforeprint", count);
  });
  const paper = await at.page.pdf({ format: "A4" });
  expect(await at.page.title()).toBe(`${MANY} rows`);
  expect(paper.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length).toBeGreaterThan(3);
}, 120_000);

test("shown as print the page has all rows", async () => {
  await openRun("?test=json");
  await at.page.emulateMedia({ media: "print" });
  await expect.poll(drawn, { timeout: 60_000 }).toBe(MANY);
  const ink = await at.page.evaluate(() => {
    document.documentElement.dataset.theme = "dark";
    return getComputedStyle(document.body).color;
  });
  expect(ink).toBe("rgb(29, 27, 22)");
  await at.page.emulateMedia({ media: null });
  await expect.poll(drawn).toBeLessThan(MANY);
}, 120_000);
