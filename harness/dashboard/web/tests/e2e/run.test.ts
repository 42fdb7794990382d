// Follows a real run with the smoke profile in the browser, from the start to the final ranking.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rate } from "../../src/format";
import { serve, type Site, screenshot, tableNames, type Visit, visit } from "./fixtures";
import { PYTHON, ROOT } from "./generated";

const START = 240_000; // milliseconds; in a fresh clone, tfb first builds the load generator
const RUN = 180_000;

let site: Site;
let visitor: Visit;
let run: ChildProcess;
let output = "";

beforeAll(async () => {
  site = await serve(() => undefined);
  run = spawn(
    PYTHON,
    [
      ...["-m", "harness", "--test", "express", "--type", "json", "db", "--profile", "smoke", "--runtime", "local"],
      ...["--results", site.results],
    ],
    { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] },
  );
  run.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  run.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  visitor = await visit(site.browser);
});
afterAll(async () => {
  if (run && run.exitCode === null) {
    run.kill("SIGTERM");
    await once(run, "exit");
  }
  await site?.stop();
});

const live = () => visitor.page.getByRole("region", { name: "Run in progress" });

test(
  "a started run is listed and shows its progress",
  async () => {
    await expect
      .poll(
        async () => {
          expect(run.exitCode, output).toBeNull();
          await visitor.page.goto(site.url);
          await visitor.page.reload();
          await visitor.page.getByRole("heading").first().waitFor();
          // Reload until the run is listed as running. Before that, it is in preparation and has no page to follow.
          return visitor.page.locator("li.run .status").allInnerTexts();
        },
        { timeout: START, interval: 2000 },
      )
      .toContain("running");
    await visitor.page.locator("main a[href*='#/run/']").first().click();
    await live().waitFor();
    await expect.poll(() => live().innerText(), { timeout: RUN }).toContain("express");
  },
  START + RUN,
);

test(
  "trials appear during the run",
  async () => {
    const trials = visitor.page.getByRole("region", { name: "Latest trials" });
    await expect.poll(() => trials.locator("tbody tr").count(), { timeout: RUN }).toBeGreaterThan(0);
    await expect.poll(() => trials.innerText()).toContain("express");
  },
  RUN + 10_000,
);

test(
  "after the run, the page shows the final values",
  async () => {
    await expect.poll(() => live().innerText(), { timeout: RUN }).toContain("The run is complete.");
    if (run.exitCode === null) await once(run, "exit");
    expect(run.exitCode, output).toBe(0);
    await visitor.page.getByRole("tab", { name: "JSON" }).click();
    await expect.poll(() => tableNames(visitor.page)).toEqual(["express"]);
    const name = /#\/run\/([^?]+)/.exec(visitor.page.url())?.[1] ?? "";
    const ranking = JSON.parse(readFileSync(join(site.results, decodeURIComponent(name), "ranking.json"), "utf-8"));
    const median: number = ranking.test_types.json.headline.rows[0].requests_per_second.estimate.median;
    expect(median).toBeGreaterThan(0);
    await expect.poll(() => visitor.page.locator("table.ranking tbody").innerText()).toContain(rate(median));
    await screenshot(visitor.page, "real-smoke-1440-light");
  },
  RUN + 60_000,
);

test("the cell page shows commands and the server's log", async () => {
  await visitor.page.locator("table.ranking tbody .c-name a").first().click();
  await visitor.page.getByText("Load generator commands").click();
  await visitor.page
    .getByText(/loadgen/)
    .first()
    .waitFor();
  await visitor.page.getByText("Log of process 1").click();
  await visitor.page.locator(".log, pre.log, details[open] pre").first().waitFor();
  expect(visitor.errors).toEqual([]);
});
