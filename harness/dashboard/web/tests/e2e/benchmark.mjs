// Measures how quickly the page opens and filters a run with 500 implementations x 7 test types: `npm run benchmark`.
// It generates the run, starts the server, and reports medians over fresh pages: the time to the next frame, and the
// main thread's CPU time, which varies less on a busy machine. `npm run benchmark -- --base FOLDER` compares this
// checkout with the one in FOLDER, whose page must have been built. It alternates between the two checkouts.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const VENV = join(ROOT, ".venv/bin/python");
const PYTHON = process.env.TFB_PYTHON ?? (existsSync(VENV) ? VENV : "python3");
const { values: options } = parseArgs({
  options: { base: { type: "string" }, repeats: { type: "string", default: "7" } },
});
const RUN = "#/run/20250616-large";

const folder = mkdtempSync(join(tmpdir(), "tfb-benchmark-"));
const results = join(folder, "results");
execFileSync(PYTHON, ["-m", "harness.tests.doubles.sample_data", results, "large"], { cwd: ROOT });
const megabytes = (name) => (statSync(join(results, "20250616-large", name)).size / 1e6).toFixed(1);
console.log(`ranking.json ${megabytes("ranking.json")} MB, trials.jsonl ${megabytes("trials.jsonl")} MB`);

/** Start the dashboard of a checkout. */
async function serve(name, checkout) {
  const child = spawn(PYTHON, ["-m", "harness", "dashboard", "--results", results, "--port", "0"], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((done) =>
    child.stdout.on("data", (chunk) => {
      const match = /dashboard: (http\S+)/.exec(chunk);
      if (match) done(match[1]);
    }),
  );
  return { name, url, child, figures: new Map() };
}

const servers = options.base
  ? [await serve("base", resolve(options.base)), await serve("here", ROOT)]
  : [await serve("", ROOT)];
const browser = await chromium.launch({
  executablePath: process.env.TFB_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

/** Return the milliseconds from the start of navigation until the first row is painted. */
async function open(page, address) {
  await page.goto("about:blank");
  await page.goto(address, { waitUntil: "commit" });
  return page.evaluate(
    () =>
      new Promise((done) => {
        const check = () =>
          document.querySelector("tbody tr")
            ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
            : requestAnimationFrame(check);
        check();
      }),
  );
}

/** Change an input, or click it if the value is null. Return the milliseconds until the next frame. */
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

/** Return the CPU seconds that the page's main thread has used. */
async function cpu(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration").value;
}

async function measure(server, record) {
  const fresh = async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    return [page, session];
  };
  const timed = async (label, action, isNewPage = false) => {
    const before = isNewPage ? 0 : await cpu(session); // a new page has a new process without CPU time
    const duration = await action();
    if (!record) return duration;
    const values = server.figures.get(label) ?? { wall: [], cpu: [] };
    values.wall.push(duration);
    values.cpu.push(((await cpu(session)) - before) * 1000);
    server.figures.set(label, values);
    return duration;
  };
  let [page, session] = await fresh();
  const first = await timed("open on Overall, to the first row drawn", () => open(page, `${server.url}${RUN}`), true);
  await page.close();
  [page, session] = await fresh();
  await timed("open a test, to the first row drawn", () => open(page, `${server.url}${RUN}?test=json`), true);
  await timed("filter by text", () => change(page, "input[type=search]", "java"));
  await timed("clear the filter", () => change(page, "input[type=search]", ""));
  await page.getByRole("button", { name: "Filters" }).click();
  await timed("filter by a facet", () => change(page, ".facets input[type=checkbox]", null));
  await change(page, ".facets input[type=checkbox]", null);
  await page.keyboard.press("Escape");
  await timed("sort by a column", () => change(page, "th.c-name button", null));
  await timed("change the test type", () => change(page, "[role=tab][aria-selected=false]", null));
  await page.close();
  return first;
}

for (const server of servers)
  console.log(
    `${`${server.name} first open after the server's start`.trim()}: ${Math.round(await measure(server, false))} ms`,
  );
for (let repeat = 0; repeat < Number(options.repeats); repeat++)
  for (const server of repeat % 2 ? [...servers].reverse() : servers) await measure(server, true);

const summarize = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const round = (value) => Math.round(value ?? 0);
  return `${round(sorted[Math.floor(sorted.length / 2)])} (${round(sorted[0])}–${round(sorted.at(-1))})`;
};
console.log(`\nmedian (lowest–highest) of ${options.repeats} fresh pages, in ms: to the frame; CPU of the page`);
for (const label of servers[0].figures.keys())
  for (const { name, figures } of servers) {
    const { wall, cpu: cpuTimes } = figures.get(label);
    console.log(`${label.padEnd(42)}${name.padEnd(6)}${summarize(wall).padEnd(22)}${summarize(cpuTimes)}`);
  }
await browser.close();
for (const { child } of servers) child.kill("SIGINT");
rmSync(folder, { recursive: true, force: true });
