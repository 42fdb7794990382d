import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, open, serveRuns, screenshot, settled, type Site, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit; // shared by all views, because opening a page costs more than checking all widths of a view
const RUN = "#/run/20250615-small";
const VIEWS: Record<string, string> = {
  runs: "#/",
  overall: RUN,
  ranking: `${RUN}?test=json`,
  cpu: `${RUN}?test=db&metric=cpu`,
  memory: `${RUN}?test=db&metric=memory`,
  groups: `${RUN}?view=groups`,
  excluded: `${RUN}?without=json`,
  load: `${RUN}?test=db&view=load`,
  latency: `${RUN}?test=db&view=latency`,
  pairs: `${RUN}?test=db&view=pairs`,
  about: `${RUN}?view=about`,
  cell: `${RUN}?view=cell&test=update&impl=es4x`,
  trials: `${RUN}?view=cell&test=db&impl=es4x&process=1`,
  compare: "#/compare?a=20250615-small&b=20250622-second",
  claims: "#/claims",
  orders: "#/run/20250629-orders",
  "use-cases": "#/run/20250629-orders?view=latency",
  techempower: "#/run/local%3A1-techempower.json",
  "techempower-latency": "#/run/local%3A1-techempower.json?test=json&view=latency",
};

beforeAll(async () => {
  site = await serveRuns("small", "second", "orders", "techempower");
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

// axe-core takes two thirds of the time, so it only checks the narrowest and the widest page, one per theme.
const APPEARANCES = [
  { width: 390, height: 800, colorScheme: "light", axe: true },
  { width: 768, height: 900, colorScheme: "dark", axe: false },
  { width: 1280, height: 900, colorScheme: "light", axe: false },
  { width: 2560, height: 900, colorScheme: "dark", axe: true },
] as const;

test.each(Object.entries(VIEWS))("%s fits every width and is accessible", async (name, hash) => {
  const { page, errors } = visitor;
  await page.setViewportSize(APPEARANCES[0]);
  await page.emulateMedia(APPEARANCES[0]);
  await open(page, site.url, name.startsWith("techempower") ? "" : hash);
  if (name.startsWith("techempower")) {
    await page.locator("input[type=file]").setInputFiles(`${site.results}/techempower.json`);
    await page.getByRole("heading", { name: "Round 99, invented" }).waitFor();
    await page.evaluate((view) => location.replace(view), hash);
  }
  for (const { width, height, colorScheme, axe } of APPEARANCES) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    await settled(page);
    await screenshot(page, `${name}-${width}-${colorScheme}`);
    const widths = () => page.evaluate(() => [window.innerWidth, document.documentElement.scrollWidth]);
    await expect.poll(widths).toEqual([width, width]);
    if (axe) await expectAccessible(page);
  }
  expect(errors.splice(0)).toEqual([]);
});

test("the open filter panel is accessible", async () => {
  const { page } = visitor;
  await page.setViewportSize(APPEARANCES[0]);
  await page.emulateMedia(APPEARANCES[0]);
  await open(page, site.url, RUN);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByRole("group", { name: "Language" }).waitFor();
  await screenshot(page, "filters-390-light");
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await expectAccessible(page);
});
