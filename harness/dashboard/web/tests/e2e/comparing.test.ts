// Tests for comparing rows within a run: baseline, absolute values, selected rows, scatter plots, latency and links.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, save, serveRuns, type Site, tableNames, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
const RUN = "#/run/20250615-small";

beforeAll(async () => {
  site = await serveRuns("small");
  visitor = await visit(site.browser);
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
});
afterAll(() => site?.stop());

const openAt = (hash: string): Promise<void> => open(visitor.page, site.url, hash);
const summary = () => visitor.page.getByRole("region", { name: "Summary" });
const row = (name: string) => visitor.page.locator("table.ranking tbody tr", { hasText: name }).first();

test("clicking a row makes it the page's baseline", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=json`);
  await row("es4x").locator(".c-rank").click();
  await expect.poll(() => page.url()).toContain("base=es4x");
  await page.getByRole("columnheader", { name: "× es4x" }).waitFor();
  await expect.poll(() => row("es4x").locator(".c-ratio").innerText()).toBe("baseline");
  await expect.poll(() => row("express").locator(".c-ratio small").innerText()).toMatch(/^\[0\.\d\d, 0\.\d\d\]$/);
  await expect.poll(() => summary().innerText()).toContain("as es4x");
  await page.getByRole("tab", { name: "Overall" }).click();
  await expect.poll(() => row("es4x").locator(".c-part").allInnerTexts()).toContain("1.00×");
  await page.reload();
  await expect.poll(() => page.getByLabel("Baseline").inputValue()).toBe("es4x");
  await page.goBack();
  await row("es4x").locator(".c-rank").click();
  await expect.poll(() => page.url()).not.toContain("base=");
});

test("a baseline can be selected with the keyboard", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=json`);
  await page.getByRole("button", { name: "Actions for express" }).focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Use as baseline");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url()).toContain("base=express");
  await expect.poll(() => page.getByLabel("Baseline").inputValue()).toBe("express");
});

test("Overall shows ratios or values with matching colours", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?base=es4x`);
  const cells = async () =>
    page.locator("td.heat").evaluateAll((all) =>
      all.map((cell) => ({
        text: cell.textContent ?? "",
        step: Number(/heat-(\d)/.exec(cell.className)?.[1]),
      })),
    );
  // Four implementations x five test types, because the baseline es4x has no update test.
  await expect.poll(async () => (await cells()).length).toBe(20);
  const byText = new Map<string, Set<number>>();
  for (const { text, step } of await cells()) byText.set(text, (byText.get(text) ?? new Set()).add(step));
  expect([...(byText.get("1.00×") ?? [])]).toEqual([4]); // a ratio of 1 has the neutral colour in every column
  const steps = (await cells()).map(({ text, step }) => [Number.parseFloat(text), step] as const);
  const sorted = steps.toSorted(([a], [b]) => a - b).map(([, step]) => step);
  expect(sorted).toEqual(sorted.toSorted((a, b) => b - a));
  await page.getByLabel("Figures").selectOption("absolute");
  await expect.poll(() => page.url()).toContain("figures=absolute");
  const ranking = JSON.parse(readFileSync(`${site.results}/20250615-small/ranking.json`, "utf-8"));
  const [best] = ranking.test_types.json.headline.rows as {
    implementation: string;
    requests_per_second: { estimate: { median: number } };
  }[];
  const value = Math.round(best?.requests_per_second.estimate.median ?? 0).toLocaleString("en-US");
  const cell = row(best?.implementation ?? "").locator(".c-part", { hasText: value });
  await expect.poll(() => cell.getAttribute("class")).toContain("heat-0");
});

test("selected rows are shown side by side", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=json`);
  await page.getByLabel("Select es4x for comparison").check();
  await page.getByLabel("Select express for comparison").check();
  await page.getByRole("button", { name: "Compare 2 rows" }).click();
  const table = page.getByRole("region", { name: "JSON: selected rows" });
  await expect.poll(() => table.getByRole("columnheader").allInnerTexts()).toEqual(["Metric", "es4x", "express"]);
  await page.getByLabel("Baseline").selectOption("es4x");
  const throughput = table.getByRole("row", { name: /^throughput \d/ });
  await expect.poll(() => throughput.innerText()).toMatch(/baseline[^]*0\.\d\d×\s*\[0\.\d\d, 0\.\d\d\]/);
  await expect.poll(() => page.url()).toMatch(/select=es4x&select=express/);
  await page.getByRole("tab", { name: "Overall" }).click();
  await page
    .getByRole("region", { name: "throughput: selected rows" })
    .getByRole("rowheader", { name: "JSON" })
    .waitFor();
});

test("the scatter plots have a point for each implementation", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=json&view=scatter`);
  for (const metric of ["CPU per request", "peak memory"]) {
    const chart = page.locator("figure.chart", { hasText: `throughput against ${metric}` });
    await expect.poll(() => chart.locator("circle.point").count()).toBe(4);
  }
  const languages = await page.locator(".legend li").allInnerTexts();
  expect(languages).toEqual(["Java", "JavaScript"]);
});

test("the latency tab shows latencies at the selected load", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=db&view=latency`);
  await page.getByLabel("Load").selectOption("c16");
  await page.getByRole("heading", { name: "Single query at 16 connections: latency by percentile" }).waitFor();
  const table = page.getByRole("region", { name: "Single query at 16 connections: latency", exact: true });
  const at16 = await table.locator("tbody tr").first().innerText();
  await page.getByLabel("Load").selectOption("c256");
  const other = page.getByRole("region", { name: "Single query at 256 connections: latency", exact: true });
  await expect.poll(() => other.locator("tbody tr").first().innerText()).not.toBe(at16);
});

test("trials are named by process and round", async () => {
  await openAt(`${RUN}?view=cell&test=db&impl=es4x&load=c16`);
  const trials = visitor.page.getByRole("region", { name: "Trials", exact: true });
  await expect
    .poll(() => trials.getByRole("rowheader").allInnerTexts())
    .toEqual(["P1 R1", "P1 R2", "P2 R1", "P2 R2", "P3 R1", "P3 R2"]);
});

test("the ranking shows how many checks passed", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=json`);
  await expect.poll(() => page.locator(".verified-line").innerText()).toMatch(/Verified: \d+ checks? each/);
  await page
    .getByRole("button", { name: /^Verified: \d+ check/ })
    .first()
    .focus();
  await page.getByRole("tooltip").filter({ visible: true }).getByText("Verified:").waitFor();
});

test("the link to the view can be copied", async () => {
  const { page } = visitor;
  await openAt(`${RUN}?test=db&base=express`);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "Link copied" }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
});

test("claims can be filtered and linked, also on narrow pages", async () => {
  const narrow = await visit(site.browser, { width: 390 });
  const { page } = narrow;
  await page.goto(`${site.url}#/claims`);
  const rows = page.getByRole("region", { name: "Verdicts" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBeGreaterThan(10);
  await expect.poll(() => page.locator("details.claim[open]").count()).toBe(0);
  const boxes = await rows
    .first()
    .locator("td, th")
    .evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().x));
  expect(new Set(boxes).size).toBe(1); // a card stacks its cells vertically
  await page.getByRole("combobox", { name: "Verdict" }).selectOption("refuted");
  await expect.poll(async () => new Set(await rows.locator(".verdict").allInnerTexts())).toEqual(new Set(["refuted"]));
  await rows.last().getByRole("link").click();
  await expect.poll(() => page.url()).toMatch(/claim=[\w-]+&verdict=refuted/);
  await expect.poll(() => page.locator("details.claim[open]").count()).toBe(1);
  await page.reload();
  await expect.poll(() => page.locator("details.claim[open] .facts").isVisible()).toBe(true);
  await page.getByLabel("Filter by text").fill("no such words");
  await page.getByText("No claims match the filter.").waitFor();
  expect(narrow.errors).toEqual([]);
  await narrow.context.close();
});

test("the cell page describes but does not chart the witness", async () => {
  const { page } = visitor;
  const file = join(site.results, "20250615-small/trials.jsonl");
  const lines = readFileSync(file, "utf-8").trim().split("\n");
  const measured = lines
    .map((line) => JSON.parse(line))
    .findLast((trial) => trial.implementation === "es4x" && trial.test_type === "db");
  const cpu = 1.03 * measured.cpu_seconds_per_request;
  const facts = { id: "witness", purpose: "witness", generator: "wrk", cpu_seconds_per_request: cpu };
  appendFileSync(file, `${JSON.stringify({ ...measured, ...facts, started_at: measured.started_at + 60 })}\n`);
  await openAt(`${RUN}?view=cell&test=db&impl=es4x&load=c${measured.load.connections}`);
  await page.getByText("wrk, independent check: CPU per request agrees within 3.0 %.").waitFor();
  const name = `P${measured.process + 1} R${measured.round + 1}`;
  await page.getByRole("rowheader", { name: `${name}, check by wrk` }).waitFor();
  const chart = page.locator("figure.chart", { hasText: "Second by second" });
  expect(await chart.innerText()).toContain(name);
  expect(await chart.innerText()).not.toContain("wrk");
});

test("on a saved page, a new baseline has no intervals", async () => {
  const { page } = visitor;
  const file = join(site.results, "../saved.html");
  save(join(site.results, "20250615-small"), file);
  await page.goto(`file://${file}${RUN}?test=json&base=es4x`);
  await expect.poll(() => tableNames(page)).toHaveLength(4);
  await expect.poll(() => row("express").locator(".c-ratio").innerText()).toMatch(/^0\.\d\d×$/);
  const note = "Ratios to es4x have no intervals on a page without a server";
  await expect.poll(() => summary().innerText()).toContain(note);
  expect(visitor.errors).toEqual([]);
});
