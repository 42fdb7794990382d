import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, open, raise, screenshot, settled, type Stage, visit } from "./fixtures";

let stage: Stage;
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
});
afterAll(() => stage?.stop());

// axe-core takes two thirds of the time: it looks at the narrowest and the widest page, one in each theme.
test.each([
  [390, "light", "is accessible"],
  [768, "dark", ""],
  [1280, "light", ""],
  [2560, "dark", "is accessible"],
] as const)(
  "every view fits %i pixels, %s %s",
  async (width, theme, accessible) => {
    const { page, context, complaints } = await visit(stage.browser, { width, theme });
    for (const [name, hash] of Object.entries(VIEWS)) {
      await open(page, stage.url, name.startsWith("techempower") ? "" : hash);
      if (name.startsWith("techempower")) {
        await page.locator("input[type=file]").setInputFiles(`${stage.results}/techempower.json`);
        await page.getByRole("heading", { name: "Round 99, invented" }).waitFor();
        await page.evaluate((view) => location.replace(view), hash);
      }
      await settled(page);
      await screenshot(page, `${name}-${width}-${theme}`);
      const wide = async () => [name, await page.evaluate(() => document.documentElement.scrollWidth)];
      await expect.poll(wide).toEqual([name, width]);
      if (accessible) await expectAccessible(page);
    }
    expect(complaints).toEqual([]);
    await context.close();
  },
  240_000,
);

test("the filters' panel is accessible while it is open", async () => {
  const { page, context } = await visit(stage.browser, { width: 390 });
  await page.goto(`${stage.url}${RUN}`);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByRole("group", { name: "Language" }).waitFor();
  await screenshot(page, "filters-390-light");
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await expectAccessible(page);
  await context.close();
});
