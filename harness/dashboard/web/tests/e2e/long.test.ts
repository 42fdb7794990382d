import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, serveRuns, type Site, tableNames, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
const RUN = "20250618-long";

beforeAll(async () => {
  site = await serveRuns("long");
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

const openRun = (query: string): Promise<void> => open(visitor.page, site.url, `#/run/${RUN}${query}`);

test("a long run is loaded only once", async () => {
  const paths: string[] = [];
  visitor.page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  await openRun("?test=db");
  const ranking = JSON.parse(readFileSync(`${site.results}/${RUN}/ranking.json`, "utf-8"));
  const rows = ranking.test_types.db.headline.rows as { implementation: string }[];
  await expect.poll(async () => (await tableNames(visitor.page)).length).toBeGreaterThan(5);
  const names = await tableNames(visitor.page);
  expect(names).toEqual(rows.slice(0, names.length).map((row) => row.implementation));
  expect(paths.filter((path) => path === `/api/runs/${RUN}`)).toHaveLength(1);
});

test("the link contains typed and selected filters", async () => {
  await openRun("?test=db");
  await visitor.page.getByRole("searchbox").fill("java");
  await expect.poll(() => visitor.page.url()).toMatch(/test=db&q=java$/);
  await visitor.page.getByRole("searchbox").fill("go");
  await visitor.page.getByRole("columnheader", { name: "Implementation" }).getByRole("button").click();
  await expect.poll(() => visitor.page.url()).toMatch(/test=db&sort=name&q=go$/);
  await visitor.page.goBack();
  await expect.poll(() => visitor.page.url()).toMatch(/test=db&q=go$/); // going back restores the text
});

test("an open row menu closes when its row changes", async () => {
  await openRun("?test=db");
  await visitor.page.locator("tbody .act").first().click();
  await expect.poll(() => visitor.page.locator(".row-actions").count()).toBe(1);
  await visitor.page.evaluate(() => {
    const element = document.querySelector<HTMLInputElement>("input[type=search]");
    if (!element) return;
    element.value = "zzz, 11";
    element.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await expect.poll(() => visitor.page.locator(".row-actions").count()).toBe(0);
});
