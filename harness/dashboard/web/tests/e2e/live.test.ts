import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectRows, serveRuns, type Site, screenshot, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
let folder: string;
let trials: string[];
let finalRanking: string;

const write = (name: string, text: string): void => {
  writeFileSync(`${folder}/.${name}`, text);
  renameSync(`${folder}/.${name}`, `${folder}/${name}`);
};
const progress = (values: object): void =>
  write(
    "progress.json",
    JSON.stringify({
      status: "running",
      stage: "measuring",
      process: 1,
      round: 3,
      implementation: "vertx-web",
      test_type: "json",
      load: "c64",
      elapsed_seconds: 61,
      remaining_seconds: 300,
      ...values,
    }),
  );

// The tests write a run's files in the same order as the harness: run.json, trials one by one, the ranking, and finally
// the complete run.json.
beforeAll(async () => {
  site = await serveRuns("small");
  folder = `${site.results}/20250615-small`;
  trials = readFileSync(`${folder}/trials.jsonl`, "utf-8").trim().split("\n");
  finalRanking = readFileSync(`${folder}/ranking.json`, "utf-8");
  const run = JSON.parse(readFileSync(`${folder}/run.json`, "utf-8"));
  write("run.json", JSON.stringify({ ...run, status: "running", completed_at: null }));
  rmSync(`${folder}/ranking.json`);
  write("trials.jsonl", "");
  progress({});
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

test("a run shows its preparation stage, then its progress", async () => {
  renameSync(`${folder}/run.json`, `${folder}/hidden`);
  progress({ stage: "build the load generator", process: 0 });
  await visitor.page.goto(`${site.url}#/run/20250615-small`);
  await visitor.page.getByText("20250615-small is preparing: build the load generator").waitFor();
  renameSync(`${folder}/hidden`, `${folder}/run.json`);
  await visitor.page.getByRole("region", { name: "Run in progress" }).waitFor();
  visitor.errors.length = 0; // the server's 404 before run.json existed
  progress({});
});

test("a run that starts measuring between two requests appears", async () => {
  renameSync(`${folder}/run.json`, `${folder}/hidden`);
  await visitor.page.route(
    "**/api/runs",
    async (route) => {
      renameSync(`${folder}/hidden`, `${folder}/run.json`);
      await route.continue();
    },
    { times: 1 },
  );
  await visitor.page.goto(`${site.url}#/run/20250615-small`);
  await visitor.page.reload();
  await visitor.page.getByRole("region", { name: "Run in progress" }).waitFor();
  visitor.errors.length = 0; // the server's 404 before run.json existed
});

test("progress appears before the first trial", async () => {
  await visitor.page.goto(`${site.url}#/run/20250615-small`);
  const live = visitor.page.getByRole("region", { name: "Run in progress" });
  await live.waitFor();
  await expect.poll(() => live.innerText()).toContain("measuring · vertx-web · JSON · c64");
  await expect.poll(() => live.innerText()).toContain("process 1, round 3");
  await expect.poll(() => live.innerText()).toContain("about 5 min 00 s left");
});

test("trials appear without a reload", async () => {
  const first = trials.slice(0, 3).map((line) => JSON.parse(line) as { requests_per_second: number });
  appendFileSync(`${folder}/trials.jsonl`, `${trials.slice(0, 3).join("\n")}\n{"id": "half of a line`);
  progress({ implementation: "resteasy" });
  const table = visitor.page.getByRole("region", { name: "Latest trials" });
  await expect.poll(() => table.locator("tbody tr").count()).toBe(3);
  const figure = Math.round(first[0]?.requests_per_second ?? 0).toLocaleString("en-US");
  await expect.poll(() => table.innerText()).toContain(figure);
  await expect
    .poll(() => visitor.page.getByRole("region", { name: "Run in progress" }).innerText())
    .toContain("resteasy");
});

test("the ranking appears during the run", async () => {
  write("trials.jsonl", `${trials.join("\n")}\n`);
  await expectRows(visitor.page, 4);
  await screenshot(visitor.page, "live-1440-light");
});

test("after the run, the page shows the final ranking", async () => {
  const run = JSON.parse(readFileSync(`${folder}/run.json`, "utf-8"));
  write("ranking.json", finalRanking);
  write("run.json", JSON.stringify({ ...run, status: "complete", completed_at: run.started_at + 100 }));
  await expect
    .poll(() => visitor.page.getByRole("region", { name: "Run in progress" }).innerText())
    .toContain("The run is complete.");
  await expectRows(visitor.page, 4);
});

test("a resumed run is polled again", async () => {
  const run = JSON.parse(readFileSync(`${folder}/run.json`, "utf-8"));
  await visitor.page.getByRole("link", { name: "Runs", exact: true }).click();
  write("run.json", JSON.stringify({ ...run, status: "running", completed_at: null }));
  progress({ implementation: "es4x" });
  await visitor.page.locator("li.run a").first().click();
  const live = visitor.page.getByRole("region", { name: "Run in progress" });
  await expect.poll(() => live.innerText()).toContain("es4x");
  expect(visitor.errors).toEqual([]);
});
