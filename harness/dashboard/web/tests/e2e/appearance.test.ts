import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, open, serveRuns, screenshot, settled, type Site, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit; // shared by all tests, because opening a page is slow
const RUN = "#/run/20250615-small";
const VIEWS: Record<string, string> = {
  runs: "#/",
  overall: RUN,
  ranking: `${RUN}?test=json`,
  cpu: `${RUN}?test=db&metric=cpu`,
  memory: `${RUN}?test=db&metric=memory`,
  values: `${RUN}?figures=absolute&base=express`,
  groups: `${RUN}?view=groups`,
  excluded: `${RUN}?without=json`,
  load: `${RUN}?test=db&view=load`,
  latency: `${RUN}?test=db&view=latency`,
  pairs: `${RUN}?test=db&view=pairs`,
  scatter: `${RUN}?test=db&view=scatter`,
  selected: `${RUN}?test=db&view=selected&select=es4x&select=express`,
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

// axe-core is slow, so it checks only the narrowest and the widest page, each in one theme.
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

test.each([390, 768, 1280, 1920])("panels, menus and tooltips fit a %i px wide viewport", async (width) => {
  const { page, errors } = visitor;
  await page.setViewportSize({ width, height: 800 });
  const inside = async (selector: string): Promise<void> => {
    const box = await page.locator(selector).filter({ visible: true }).first().boundingBox();
    expect(box, selector).not.toBeNull();
    if (!box) return;
    expect(box.x, selector).toBeGreaterThanOrEqual(0);
    expect(box.y, selector).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width, selector).toBeLessThanOrEqual(width);
    expect(box.y + box.height, selector).toBeLessThanOrEqual(800);
  };
  for (const view of [RUN, `${RUN}?test=json`, `${RUN}?test=json&metric=throughput`]) {
    await open(page, site.url, view);
    for (const button of await page.locator(".menu > button").all()) {
      await button.click();
      await inside(".panel");
      await page.keyboard.press("Escape");
    }
    for (const button of await page.getByRole("button", { name: /^Actions for/ }).all()) {
      await button.scrollIntoViewIfNeeded();
      await button.click();
      await inside(".row-actions");
      await page.keyboard.press("Escape");
    }
    for (const flag of await page.locator(".flag, .row-flags, .verified").filter({ visible: true }).all()) {
      await flag.scrollIntoViewIfNeeded();
      await flag.hover();
      await inside(".tip");
    }
  }
  expect(errors.splice(0)).toEqual([]);
});

test("the selected tab is visible on a narrow page", async () => {
  const { page } = visitor;
  await page.setViewportSize(APPEARANCES[0]);
  await open(page, site.url, `${RUN}?test=update&view=about`);
  for (const name of ["Updates", "Machine and method"])
    await expect
      .poll(async () => {
        const box = await page.getByRole("tab", { name }).boundingBox();
        return box !== null && box.x >= 0 && box.x + box.width <= 390;
      })
      .toBe(true);
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
