import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, raise, type Stage, tableNames, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;
const RUN = "20250618-long";

beforeAll(async () => {
  stage = await raise("long");
  at = await visit(stage.browser);
});
afterAll(() => stage?.stop());

const openRun = (query: string): Promise<void> => open(at.page, stage.url, `#/run/${RUN}${query}`);

test("a long run shows the ranking's rows, and is asked for once", async () => {
  const asked: string[] = [];
  at.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await openRun("?test=db");
  const ranking = JSON.parse(readFileSync(`${stage.results}/${RUN}/ranking.json`, "utf-8"));
  const rows = ranking.test_types.db.headline.rows as { implementation: string }[];
  await expect.poll(async () => (await tableNames(at.page)).length).toBeGreaterThan(5);
  const names = await tableNames(at.page);
  expect(names).toEqual(rows.slice(0, names.length).map((row) => row.implementation));
  expect(asked.filter((path) => path === `/api/runs/${RUN}`)).toHaveLength(1);
});

test("what is typed and chosen at once is all in the link", async () => {
  await openRun("?test=db");
  await at.page.getByRole("searchbox").fill("java");
  await expect.poll(() => at.page.url()).toMatch(/test=db&q=java$/);
  await at.page.getByRole("searchbox").fill("go");
  await at.page.getByRole("columnheader", { name: "Implementation" }).getByRole("button").click();
  await expect.poll(() => at.page.url()).toMatch(/test=db&sort=name&q=go$/);
  await at.page.goBack();
  await expect.poll(() => at.page.url()).toMatch(/test=db&q=go$/); // back to what was typed before
});

test("an open menu of a row does not stand at another row's name", async () => {
  await openRun("?test=db");
  await at.page.locator("tbody .act").first().click();
  await expect.poll(() => at.page.locator(".row-actions").count()).toBe(1);
  await at.page.evaluate(() => {
    const element = document.querySelector<HTMLInputElement>("input[type=search]");
    if (!element) return;
    element.value = "zzz, 11";
    element.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await expect.poll(() => at.page.locator(".row-actions").count()).toBe(0);
});
