import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, serveRuns, save, settled, type Site, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
const RUN = "20250617-hostile";

beforeAll(async () => {
  site = await serveRuns("small", "hostile");
  visitor = await visit(site.browser, { width: 380 });
});
afterAll(() => site?.stop());

const everyView = async (base: string): Promise<void> => {
  const names = (
    JSON.parse(readFileSync(`${site.results}/${RUN}/run.json`, "utf-8")).implementations as { name: string }[]
  ).map((item) => item.name);
  const views = [
    "",
    "?test=overall",
    "?view=load",
    "?view=latency",
    "?view=pairs",
    "?view=about",
    ...names.map((name) => `?view=cell&test=json&${new URLSearchParams({ impl: name })}`),
  ];
  for (const view of views) {
    await open(visitor.page, base, `#/run/${RUN}${view}`);
    await settled(visitor.page);
    await visitor.page.locator("summary").evaluateAll((all) => all.forEach((item) => (item as HTMLElement).click()));
    expect(await visitor.page.title()).not.toBe("owned");
    await expect.poll(() => visitor.page.locator("img, iframe, a[href^='javascript']").count()).toBe(0);
    const width = async () => [view, await visitor.page.evaluate(() => document.documentElement.scrollWidth)];
    await expect.poll(width).toEqual([view, 380]);
  }
};

test("markup in names is shown as text in every view", async () => {
  await everyView(site.url);
  expect(visitor.errors).toEqual([]);
});

test("markup in names is shown as text in a saved file", async () => {
  const file = `${site.results}/hostile.html`;
  save(`${site.results}/${RUN}`, file);
  await everyView(`file://${file}`);
  expect(visitor.errors).toEqual([]);
});

test("unreadable folders are listed beside readable runs", async () => {
  await visitor.page.goto(`${site.url}#/`);
  const section = visitor.page.getByRole("region", { name: "Unreadable folders" });
  await expect.poll(() => section.locator("li").count()).toBe(3);
  await expect.poll(() => section.innerText()).toContain("corrupt/run.json: Invalid JSON");
  await expect.poll(() => visitor.page.getByRole("link", { name: "20250615-small" }).count()).toBe(1);
});

test("unreadable lines are reported", async () => {
  await visitor.page.goto(`${site.url}#/run/${RUN}?view=cell&test=json&impl=x`);
  await visitor.page.getByText("items in this run could not be displayed").first().click();
  await visitor.page.getByText("trials.jsonl").first().waitFor();
  await expect.poll(() => visitor.page.getByText(/line \d+: /).count()).toBeGreaterThanOrEqual(2);
});

test("a missing run is reported", async () => {
  const errorCount = visitor.errors.length;
  await open(visitor.page, site.url, "#/run/..%2F..%2Fetc");
  await expect
    .poll(() => visitor.page.getByRole("alert").allInnerTexts())
    .toEqual([expect.stringContaining("no such")]);
  visitor.errors.splice(errorCount); // the browser reports the expected 404
});
