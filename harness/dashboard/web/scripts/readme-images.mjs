// The README's pictures, from the offline page of a real run: node scripts/readme-images.mjs REPORT.html FOLDER
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, folder] = process.argv.slice(2);
if (!report || !folder) throw new Error("usage: node scripts/readme-images.mjs REPORT.html FOLDER");
const browser = await chromium.launch({
  executablePath: process.env.TFB_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme: "light" });
for (const [name, view] of [
  ["dashboard-ranking", "test=query&metric=cpu"],
  ["dashboard-latency", "test=db&view=latency"],
]) {
  await page.goto("about:blank");
  await page.goto(pathToFileURL(resolve(report)).href);
  const run = decodeURIComponent(/#\/run\/([^?]+)/.exec(page.url())?.[1] ?? "");
  await page.goto(`${pathToFileURL(resolve(report)).href}#/run/${encodeURIComponent(run)}?${view}`);
  await page.locator("h2, h1").first().waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
await browser.close();
