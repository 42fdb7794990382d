import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, open, raise, screenshot, settled, type Stage, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit; // one page for all views: a new one costs more than all widths of a view
const RUN = "#/run/20250615-small";
const VIEWS: Record<string, string> = {
  runs: "#/",
  overall: RUN,
  ranking: `${RUN}?test=json`,
  cpu: `${RUN}?test=db&metric=cpu`,
  memory: `${RUN}?test=db&metric=memory`,
  groups: `${RUN}?view=groups`,
  chosen: `${RUN}?without=json`,
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
  stage = await raise("small", "second", "orders", "techempower");
  at = await visit(stage.browser);
});
afterAll(() => stage?.stop());

// axe-core takes two thirds of the time: it looks at the narrowest and the widest page, one in each theme.
const LOOKS = [
  { width: 390, height: 800, colorScheme: "light", axe: true },
  { width: 768, height: 900, colorScheme: "dark", axe: false },
  { width: 1280, height: 900, colorScheme: "light", axe: false },
  { width: 2560, height: 900, colorScheme: "dark", axe: true },
] as const;

test.each(Object.entries(VIEWS))("%s fits every width and is accessible, light and dark", async (name, hash) => {
  const { page, complaints } = at;
  await page.setViewportSize(LOOKS[0]);
  await page.emulateMedia(LOOKS[0]);
  await open(page, stage.url, name.startsWith("techempower") ? "" : hash);
  if (name.startsWith("techempower")) {
    await page.locator("input[type=file]").setInputFiles(`${stage.results}/techempower.json`);
    await page.getByRole("heading", { name: "Round 99, invented" }).waitFor();
    await page.evaluate((view) => location.replace(view), hash);
  }
  for (const { width, height, colorScheme, axe } of LOOKS) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    await settled(page);
    await screenshot(page, `${name}-${width}-${colorScheme}`);
    const wide = () => page.evaluate(() => [window.innerWidth, document.documentElement.scrollWidth]);
    await expect.poll(wide).toEqual([width, width]);
    if (axe) await expectAccessible(page);
  }
  expect(complaints.splice(0)).toEqual([]); // of this view
});

test("the filters' panel is accessible while it is open", async () => {
  const { page } = at;
  await page.setViewportSize(LOOKS[0]);
  await page.emulateMedia(LOOKS[0]);
  await open(page, stage.url, RUN);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByRole("group", { name: "Language" }).waitFor();
  await screenshot(page, "filters-390-light");
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await expectAccessible(page);
});
