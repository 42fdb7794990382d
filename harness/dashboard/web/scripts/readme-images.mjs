// Create the README's screenshot from the published round or from a given run: npm run images [-- ../../../results/RUN]
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../../../..");
const ROUND = join(ROOT, "results/rounds/1");
const VENV = join(ROOT, ".venv/bin/python");
const PYTHON = process.env.TFB_PYTHON ?? (existsSync(VENV) ? VENV : "python3");
const run = resolve(process.argv[2] ?? join(ROUND, readdirSync(ROUND).find((name) => /^\d/.test(name)) ?? ""));
const scratch = mkdtempSync(join(tmpdir(), "tfb-images-"));
const report = join(scratch, "report.html");
const options = ["--results", dirname(run), "--html", "--output", report];
execFileSync(PYTHON, ["-m", "harness", "report", basename(run), ...options], { cwd: ROOT, stdio: "inherit" });
const browser = await chromium.launch({
  executablePath: process.env.TFB_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme: "light" });
await page.goto(`${pathToFileURL(report).href}#/run/${basename(run)}?test=query&metric=cpu`);
await page.locator("table.ranking tbody tr").first().waitFor();
await page.evaluate(() => document.fonts.ready);
const path = join(ROOT, "docs/images/dashboard-ranking.png");
await page.screenshot({ path, animations: "disabled" });
console.log(path);
await browser.close();
rmSync(scratch, { recursive: true });
