// How quickly 500 implementations x 7 test types open and filter: `npm run benchmark`. Generates the run, starts the
// server, and reports medians over fresh pages. Everything is measured in the browser, to the frame after the change.
import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const VENV = join(ROOT, ".venv/bin/python");
const PYTHON = process.env.TFB_PYTHON ?? (existsSync(VENV) ? VENV : "python3");
const REPEATS = 7;
const folder = mkdtempSync(join(tmpdir(), "tfb-benchmark-"));
const results = join(folder, "results");

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const report = (what, values) =>
  console.log(
    `${what.padEnd(58)} median ${median(values).toFixed(0).padStart(5)} ms   all ${values.map((value) => value.toFixed(0)).join(" ")}`,
  );

execFileSync(PYTHON, ["-m", "harness.tests.doubles.sample_data", results, "large"], { cwd: ROOT });
const run = join(results, "20250616-large");
console.log(
  `ranking.json ${(statSync(join(run, "ranking.json")).size / 1e6).toFixed(1)} MB, samples.jsonl ${(statSync(join(run, "samples.jsonl")).size / 1e6).toFixed(1)} MB`,
);

const server = spawn(PYTHON, ["-m", "harness", "dashboard", "--results", results, "--port", "0"], {
  cwd: ROOT,
  stdio: ["ignore", "pipe", "inherit"],
});
const url = await new Promise((done) =>
  server.stdout.on(
    "data",
    (chunk) => /dashboard: (http\S+)/.exec(chunk) && done(/dashboard: (http\S+)/.exec(chunk)[1]),
  ),
);
const browser = await chromium.launch({
  executablePath: process.env.TFB_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

/** Milliseconds from the start of the navigation to the frame in which the first row stands. */
async function open(page, hash) {
  await page.goto("about:blank");
  await page.goto(`${url}${hash}`, { waitUntil: "commit" });
  return page.evaluate(
    () =>
      new Promise((done) => {
        const look = () =>
          document.querySelector("tbody tr")
            ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
            : requestAnimationFrame(look);
        look();
      }),
  );
}

/** Milliseconds from a change in the page to the frame after it is drawn. */
function change(page, selector, value) {
  return page.evaluate(
    ([selector, value]) =>
      new Promise((done) => {
        const element = document.querySelector(selector);
        const began = performance.now();
        if (value === null) element.click();
        else {
          element.value = value;
          element.dispatchEvent(new Event(element.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
        }
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
      }),
    [selector, value],
  );
}

const opens = [];
const typed = [];
const cleared = [];
const facet = [];
const sorted = [];
const tabs = [];
let first = 0;
for (let repeat = 0; repeat <= REPEATS; repeat++) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const opened = await open(page, "#/run/20250616-large?test=json");
  if (repeat === 0) first = opened;
  else opens.push(opened);
  typed.push(await change(page, "input[type=search]", "java"));
  cleared.push(await change(page, "input[type=search]", ""));
  await page.getByRole("button", { name: "Filters" }).click();
  facet.push(await change(page, ".facets input[type=checkbox]", null));
  await change(page, ".facets input[type=checkbox]", null);
  await page.keyboard.press("Escape");
  sorted.push(await change(page, "th.c-name button", null));
  tabs.push(await change(page, "[role=tab][aria-selected=false]", null));
  await page.close();
}
console.log(
  `${"first open after the server's start (it reads the run)".padEnd(58)}        ${first.toFixed(0).padStart(5)} ms`,
);
report("open to the first row drawn", opens);
report("filter by text", typed);
report("clear the filter", cleared);
report("filter by a facet", facet);
report("sort by a column", sorted);
report("change the test type", tabs);
await browser.close();
server.kill("SIGINT");
rmSync(folder, { recursive: true, force: true });
