// A real run of the smoke profile, followed in the browser from its first trial to its finished ranking.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rate } from "../../src/format";
import { serve, type Stage, screenshot, tableNames, type Visit, visit } from "./fixtures";
import { PYTHON, ROOT } from "./generated";

const START = 240_000; // ms; a fresh clone builds the load generator first
const RUN = 180_000;

let stage: Stage;
let at: Visit;
let run: ChildProcess;
let printed = "";

beforeAll(async () => {
  stage = await serve(() => undefined);
  run = spawn(
    PYTHON,
    [
      ...["-m", "harness", "--test", "express", "--type", "json", "db", "--profile", "smoke", "--runtime", "local"],
      ...["--results", stage.results],
    ],
    { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] },
  );
  run.stdout?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  run.stderr?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  at = await visit(stage.browser);
});
afterAll(async () => {
  if (run && run.exitCode === null) {
    run.kill("SIGTERM");
    await once(run, "exit");
  }
  await stage?.stop();
});

const live = () => at.page.getByRole("region", { name: "Run in progress" });

test(
  "a run that has begun is listed as running, and its page says what it does",
  async () => {
    await expect
      .poll(
        async () => {
          expect(run.exitCode, printed).toBeNull();
          await at.page.goto(stage.url);
          await at.page.reload();
          await at.page.getByRole("heading").first().waitFor();
          // The status of a listed run: a folder that is being prepared has no run to follow yet.
          return at.page.locator("li.run .status").allInnerTexts();
        },
        { timeout: START, interval: 2000 },
      )
      .toContain("running");
    await at.page.locator("main a[href*='#/run/']").first().click();
    await live().waitFor();
    await expect.poll(() => live().innerText(), { timeout: RUN }).toContain("express");
  },
  START + RUN,
);

test(
  "its trials appear as they are measured",
  async () => {
    const trials = at.page.getByRole("region", { name: "Last trials" });
    await expect.poll(() => trials.locator("tbody tr").count(), { timeout: RUN }).toBeGreaterThan(0);
    await expect.poll(() => trials.innerText()).toContain("express");
  },
  RUN + 10_000,
);

test(
  "its end is told, and the page shows the figures that the run wrote",
  async () => {
    await expect.poll(() => live().innerText(), { timeout: RUN }).toContain("The run is complete.");
    if (run.exitCode === null) await once(run, "exit");
    expect(run.exitCode, printed).toBe(0);
    await at.page.getByRole("tab", { name: "JSON" }).click();
    await expect.poll(() => tableNames(at.page)).toEqual(["express"]);
    const name = /#\/run\/([^?]+)/.exec(at.page.url())?.[1] ?? "";
    const ranking = JSON.parse(readFileSync(join(stage.results, decodeURIComponent(name), "ranking.json"), "utf-8"));
    const median: number = ranking.test_types.json.headline.rows[0].requests_per_second.estimate.median;
    expect(median).toBeGreaterThan(0);
    await expect.poll(() => at.page.locator("table.ranking tbody").innerText()).toContain(rate(median));
    await screenshot(at.page, "real-smoke-1440-light");
  },
  RUN + 60_000,
);

test("its drill-down has the commands that loaded it and the server's log", async () => {
  await at.page.locator("table.ranking tbody .c-name a").first().click();
  await at.page.getByText("Commands that loaded it").click();
  await at.page
    .getByText(/loadgen/)
    .first()
    .waitFor();
  await at.page.getByText("Log of process 1").click();
  await at.page.locator(".log, pre.log, details[open] pre").first().waitFor();
  expect(at.complaints).toEqual([]);
});
