// Tests for the static site and the regression gate's page, opened from disk.
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, screenshot, serveRuns, type Site, type Visit, visit } from "./fixtures";
import { PYTHON, ROOT } from "./generated";

let site: Site;
let visitor: Visit;
let root: string;
const WIDTHS = [390, 768, 1280, 1920];
const PAGES = {
  landing: "/public/index.html",
  rounds: "/public/rounds/index.html",
  implementations: "/public/implementations/index.html",
  implementation: "/public/implementations/es4x.html",
  "site-run": "/public/rounds/round-2/20250622-second.html",
  gate: "/gate.html",
};
const PUBLISH = `
import sys
from pathlib import Path
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.page import format_page
from harness.extras.site.site_pages import publish
from harness.stats.ranking_model import Ratio
results = Path(sys.argv[1])
for number, run in ((1, "20250615-small"), (2, "20250622-second")):
    publish([results / run], results / "public", name=f"Round {number}", published_at=1.75e9 + number * 604800)
slower = Ratio(value=1.3, low=1.2, high=1.4)
request = RequestVerdict(request="items", verdict="slower", ratio=slower, values=(1e-3, 1.3e-3), rate=500)
shown = GateResult(base="main", head="HEAD", threshold=0.05, verdict="slower", requests=(request,), minutes=5, started_at=0)
(results / "gate.html").write_text(format_page(shown))
`;

beforeAll(async () => {
  site = await serveRuns("small", "second");
  execFileSync(PYTHON, ["-c", PUBLISH, site.results], { cwd: ROOT });
  root = `file://${site.results}`;
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

test.each(Object.entries(PAGES))("%s fits every width and is accessible in both themes", async (name, path) => {
  const { page } = visitor;
  await page.goto(root + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  for (const [number, width] of WIDTHS.entries()) {
    const colorScheme = number % 2 ? "dark" : "light";
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await screenshot(page, `${name}-${width}-${colorScheme}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    if (number > 1) await expectAccessible(page);
  }
});

test("all pages link to the ranking, rounds and implementations", async () => {
  const { page } = visitor;
  await page.goto(root + PAGES["site-run"]);
  for (const name of ["Implementations", "Rounds", "Newest ranking"]) {
    await page.getByRole("navigation", { name: "Site" }).getByRole("link", { name }).click();
    const current = page.getByRole("navigation", { name: "Site" }).locator("[aria-current=page]");
    expect(await current.textContent()).toBe(name);
  }
  await page.getByRole("link", { name: "es4x" }).first().click();
  expect(await page.locator("h1").textContent()).toBe("es4x");
});

test("an implementation has a trend and a badge", async () => {
  const { page } = visitor;
  await page.goto(root + PAGES.implementation);
  const json = page.getByRole("img", { name: "CPU µs per request of es4x in json over the rounds" });
  expect(await json.locator("circle").count()).toBe(2);
  const badge = page.getByRole("img", { name: /^tfb json: rank .* Round 2$/ });
  expect(await badge.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(100);
});

test("the gate's page uses the dashboard's colours", async () => {
  const { page } = visitor;
  const colours = async (path: string): Promise<string[]> => {
    await page.goto(root + path);
    return page.evaluate(() => {
      const { backgroundColor, color, fontFamily } = getComputedStyle(document.body);
      return [backgroundColor, color, fontFamily];
    });
  };
  expect(await colours(PAGES.gate)).toEqual(await colours(PAGES.landing));
});

// axe-core reads style sheets from disk, which the policy forbids. Therefore open the pages again without axe-core.
test("no page uses the network or violates its security policy", async () => {
  const { page, errors, requests } = await visit(site.browser);
  for (const path of Object.values(PAGES)) {
    await page.goto(root + path);
    await page.getByRole("heading", { level: 1 }).waitFor();
  }
  expect(requests.filter((url) => !url.startsWith("file://") && !/^(blob|data):/.test(url))).toEqual([]);
  expect(errors).toEqual([]);
});
