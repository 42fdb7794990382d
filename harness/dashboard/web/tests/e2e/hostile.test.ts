import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, raise, save, settled, type Stage, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;
const RUN = "20250617-hostile";

beforeAll(async () => {
  stage = await raise("small", "hostile");
  at = await visit(stage.browser, { width: 380 });
});
afterAll(() => stage?.stop());

const everyView = async (base: string): Promise<void> => {
  const names = (
    JSON.parse(readFileSync(`${stage.results}/${RUN}/run.json`, "utf-8")).implementations as { name: string }[]
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
    await open(at.page, base, `#/run/${RUN}${view}`);
    await settled(at.page);
    await at.page.locator("summary").evaluateAll((all) => all.forEach((each) => (each as HTMLElement).click()));
    expect(await at.page.title()).not.toBe("owned");
    await expect.poll(() => at.page.locator("img, iframe, a[href^='javascript']").count()).toBe(0);
    const width = async () => [view, await at.page.evaluate(() => document.documentElement.scrollWidth)];
    await expect.poll(width).toEqual([view, 380]);
  }
};

test("names that are markup stay text in every view", async () => {
  await everyView(stage.url);
  expect(at.complaints).toEqual([]);
});

test("they stay text in the saved file", async () => {
  const file = `${stage.results}/hostile.html`;
  save(`${stage.results}/${RUN}`, file);
  await everyView(`file://${file}`);
  expect(at.complaints).toEqual([]);
});

test("broken folders are named and the others still show", async () => {
  await at.page.goto(`${stage.url}#/`);
  const section = at.page.getByRole("region", { name: "Folders that cannot be read" });
  await expect.poll(() => section.locator("li").count()).toBe(3);
  await expect.poll(() => section.innerText()).toContain("corrupt/run.json: Invalid JSON");
  await expect.poll(() => at.page.getByRole("link", { name: "20250615-small" }).count()).toBe(1);
});

test("lines that cannot be read are named", async () => {
  await at.page.goto(`${stage.url}#/run/${RUN}?view=cell&test=json&impl=x`);
  await at.page.getByText("trials.jsonl").first().waitFor();
  await expect.poll(() => at.page.getByText(/line \d+: /).count()).toBeGreaterThanOrEqual(2);
});

test("a run that does not exist is said so", async () => {
  const complaints = at.complaints.length;
  await open(at.page, stage.url, "#/run/..%2F..%2Fetc");
  await expect.poll(() => at.page.getByRole("alert").allInnerTexts()).toEqual([expect.stringContaining("no such")]);
  at.complaints.splice(complaints); // the browser reports the 404 that was asked for
});
