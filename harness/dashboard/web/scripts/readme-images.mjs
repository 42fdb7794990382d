// The README's pictures, from the offline page of a real run: node scripts/readme-images.mjs REPORT.html RUN FOLDER
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, run, folder] = process.argv.slice(2);
if (!report || !run || !folder) throw new Error("usage: node scripts/readme-images.mjs REPORT.html RUN FOLDER");
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
  await page.goto(`${pathToFileURL(resolve(report)).href}#/run/${run}?${view}`);
  await page.locator("table.ranking, figure.chart svg").first().waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
await browser.close();
