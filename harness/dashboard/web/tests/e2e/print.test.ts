import { afterAll, beforeAll, expect, test } from "vitest";
import { open, serveRuns, type Site, tableNames, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
const RUN = "20250618-long";
const ROWS = 120;

beforeAll(async () => {
  site = await serveRuns("long");
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

const drawn = async (): Promise<number> => (await tableNames(visitor.page)).length;

const openRun = async (hash: string): Promise<void> => {
  await open(visitor.page, site.url, `#/run/${RUN}${hash}`);
  await expect.poll(drawn, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(await drawn()).toBeLessThan(ROWS);
};

test.each([
  ["a test's ranking", "?test=json"],
  ["the overall ranking", ""],
])(
  "%s is printed with all rows",
  async (_, hash) => {
    await openRun(hash);
    const before = await drawn();
    // Count the rows after the print listeners and before layout, when all rows must be present.
    const [during, after] = await visitor.page.evaluate(async () => {
      const rows = (): number => document.querySelectorAll("table.ranking tbody tr").length;
      dispatchEvent(new Event("beforeprint"));
      const printed = rows();
      dispatchEvent(new Event("afterprint"));
      return [printed, rows()];
    });
    expect(during).toBe(ROWS);
    expect(after).toBe(before);
  },
  120_000,
);

test("printing from the browser includes all rows", async () => {
  await openRun("?test=json");
  await visitor.page.evaluate(() => {
    const count = (): void => {
      document.title = `${document.querySelectorAll("table.ranking tbody tr").length} rows`;
    };
    addEventListener("beforeprint", count);
  });
  const paper = await visitor.page.pdf({ format: "A4" });
  expect(await visitor.page.title()).toBe(`${ROWS} rows`);
  expect(paper.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length).toBeGreaterThan(3);
}, 120_000);

test("the print preview has all rows", async () => {
  await openRun("?test=json");
  await visitor.page.emulateMedia({ media: "print" });
  await expect.poll(drawn, { timeout: 60_000 }).toBe(ROWS);
  const textColor = await visitor.page.evaluate(() => {
    document.documentElement.dataset.theme = "dark";
    return getComputedStyle(document.body).color;
  });
  expect(textColor).toBe("rgb(29, 27, 22)");
  await visitor.page.emulateMedia({ media: null });
  await expect.poll(drawn).toBeLessThan(ROWS);
}, 120_000);
