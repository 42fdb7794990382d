import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNames, expectRows, open, raise, type Stage, tableNames, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;
const RUN = "#/run/20250615-small";

beforeAll(async () => {
  stage = await raise("small", "second", "techempower");
  at = await visit(stage.browser);
});
afterAll(() => stage?.stop());

const openAt = (hash: string): Promise<void> => open(at.page, stage.url, hash);

test("the list of runs leads to a run's ranking", async () => {
  await openAt("");
  await expect.poll(() => at.page.title()).toBe("Runs: tfb");
  await at.page.getByRole("link", { name: "Synthetic run 20250615-small" }).click();
  await at.page.getByRole("table").waitFor();
  await expect.poll(() => at.page.title()).toBe("Synthetic run 20250615-small: tfb");
  await expectRows(at.page, 4);
});

test("bars have whiskers, ranks are intervals, and ties are shaded", async () => {
  await openAt(`${RUN}?test=json`);
  await at.page.getByRole("table").waitFor();
  const ranking = JSON.parse(readFileSync(`${stage.results}/20250615-small/ranking.json`, "utf-8"));
  const rows = ranking.test_types.json.headline.rows as {
    implementation: string;
    requests_per_second: { rank: { low: number; high: number }; tie_group: number };
  }[];
  await expectNames(
    at.page,
    rows.map((row) => row.implementation),
  );
  await expect
    .poll(() => at.page.locator("tbody .c-rank").allInnerTexts())
    .toEqual(
      rows.map(({ requests_per_second: { rank } }) =>
        rank.low === rank.high ? `${rank.low}` : `${rank.low}–${rank.high}`,
      ),
    );
  const groups = rows.map((row) => row.requests_per_second.tie_group);
  const tied = groups.filter((group) => groups.filter((other) => other === group).length > 1).length;
  expect(tied).toBeGreaterThan(0);
  await expect.poll(() => at.page.locator("tbody tr.tied-0, tbody tr.tied-1").count()).toBe(tied);
  await expect.poll(() => at.page.locator("tbody .whisker").count()).toBe(4);
  await expect.poll(() => at.page.locator("tbody .c-rate small", { hasText: /^\[[\d,]+, [\d,]+\]$/ }).count()).toBe(4);
});

test("the first results are above the fold at 1440 and at 390 pixels", async () => {
  for (const width of [1440, 390]) {
    const narrow = await visit(stage.browser, { width });
    await narrow.page.goto(`${stage.url}${RUN}`);
    const row = narrow.page.locator("tbody tr").nth(width === 1440 ? 1 : 0);
    await row.waitFor();
    const bottom = async () => {
      const box = await row.boundingBox();
      return (box?.y ?? 1e9) + (box?.height ?? 0);
    };
    await expect.poll(bottom).toBeLessThan(width === 1440 ? 560 : 800);
    await narrow.context.close();
  }
});

test("at 390 pixels a row leads to the top of its page", async () => {
  const narrow = await visit(stage.browser, { width: 390 });
  await narrow.page.goto(`${stage.url}${RUN}?test=db`);
  await narrow.page.locator("tbody .c-name a").last().click();
  await narrow.page.getByRole("heading", { name: "Every trial" }).waitFor();
  await expect.poll(() => narrow.page.evaluate(() => scrollY)).toBe(0);
  await narrow.context.close();
});

test("at 390, 768 and 1280 pixels compare opens with its verdict and shows both ratios", async () => {
  for (const width of [390, 768, 1280]) {
    const sized = await visit(stage.browser, { width });
    await sized.page.goto(`${stage.url}#/compare?a=20250615-small&b=20250622-second`);
    const answer = sized.page.getByRole("region", { name: "The answer" });
    await expect.poll(() => answer.innerText()).toMatch(/second over .*small, \d+ cells: /);
    for (const name of ["Requests/s ×", "CPU ×"]) {
      const box = await sized.page.getByRole("columnheader", { name }).boundingBox();
      expect((box?.x ?? 1e9) + (box?.width ?? 0), `${name} at ${width}`).toBeLessThanOrEqual(width);
    }
    await sized.context.close();
  }
});

test("Overall shades ties and has the flags of its tests", async () => {
  await openAt(RUN);
  await expect.poll(() => at.page.locator("tbody tr.tied-0, tbody tr.tied-1").count()).toBeGreaterThan(1);
  await expect.poll(() => at.page.locator(".said .word, tbody .word").count()).toBeGreaterThan(0);
});

test("a run whose figures rank nothing has no ranks, no score and no leader", async () => {
  const folder = `${stage.results}/20250622-second`;
  const path = `${folder}/run.json`;
  const whole = readFileSync(path, "utf-8");
  renameSync(`${folder}/ranking.json`, `${folder}/as-it-was.json`);
  const info = JSON.parse(whole);
  writeFileSync(path, JSON.stringify({ ...info, settings: { profile: { ranked: false } } }));
  await openAt("#/run/20250622-second?test=db");
  await at.page.getByText("its figures rank nothing").waitFor();
  await expectRows(at.page, 4);
  await expect.poll(() => at.page.getByRole("tab", { name: "Overall" }).count()).toBe(0);
  await expect.poll(() => at.page.getByRole("columnheader", { name: "Rank" }).count()).toBe(0);
  writeFileSync(path, whole);
  renameSync(`${folder}/as-it-was.json`, `${folder}/ranking.json`);
});

test("sorting by a column is announced, works from the keyboard, and turns round", async () => {
  await openAt(`${RUN}?test=json`);
  const head = at.page.getByRole("columnheader", { name: "Peak memory" });
  await head.getByRole("button").focus();
  await at.page.keyboard.press("Enter");
  await expect.poll(() => head.getAttribute("aria-sort")).toBe("ascending");
  const ascending = await tableNames(at.page);
  await at.page.keyboard.press("Enter");
  await expect.poll(() => head.getAttribute("aria-sort")).toBe("descending");
  await expectNames(at.page, [...ascending].reverse());
  await expect.poll(() => at.page.url()).toContain("sort=-memory");
});

test("a filter keeps every rank, says how many are shown, and survives in the link", async () => {
  await openAt(`${RUN}?test=db`);
  const before = await at.page.locator("tbody tr", { hasText: "express" }).locator(".c-rank").innerText();
  await at.page.getByRole("button", { name: "Filters" }).click();
  await at.page.getByRole("group", { name: "Language" }).getByLabel("JavaScript").check();
  await expect.poll(async () => (await tableNames(at.page)).sort()).toEqual(["es4x", "express"]);
  expect(await at.page.locator("tbody tr", { hasText: "express" }).locator(".c-rank").innerText()).toBe(before);
  await expect.poll(() => at.page.getByText("2 of 4 shown").count()).toBe(1);
  await expect.poll(() => at.page.url()).toMatch(/language=javascript/i);
  const link = at.page.url();
  await openAt(link.slice(link.indexOf("#")));
  await at.page.locator("tbody .c-name a").first().click();
  await at.page.getByRole("link", { name: "← All implementations" }).click();
  await expect.poll(async () => (await tableNames(at.page)).sort()).toEqual(["es4x", "express"]);
});

test("text filters while it is typed", async () => {
  await openAt(`${RUN}?test=json`);
  await at.page.getByRole("searchbox").fill("vert");
  await expect.poll(async () => (await tableNames(at.page)).sort()).toEqual(["es4x", "vertx-web"]);
});

test("a second click on its button closes a row's menu", async () => {
  await openAt(`${RUN}?test=json`);
  const button = at.page.getByRole("button", { name: "Actions for express" });
  for (const expanded of ["true", "false"]) {
    await button.click();
    await expect.poll(() => button.getAttribute("aria-expanded")).toBe(expanded);
  }
});

test("pinning and hiding are in the link, and can be taken back", async () => {
  await openAt(`${RUN}?test=json`);
  for (const [name, action] of [
    ["express", "Pin to the top"],
    ["resteasy", "Hide"],
  ] as const) {
    await at.page.getByRole("button", { name: `Actions for ${name}` }).click();
    await at.page.getByRole("button", { name: action }).click();
  }
  await expectNames(at.page, ["express", "vertx-web", "es4x"]);
  await expect.poll(() => at.page.url()).toContain("resteasy"); // the link is written before it is opened again
  await at.page.reload();
  await expectNames(at.page, ["express", "vertx-web", "es4x"]);
  await expect.poll(() => at.page.locator("tr.pinned").count()).toBe(1);
  await at.page.goBack();
  await expect.poll(() => tableNames(at.page)).toContain("resteasy");
});

test("the load can be chosen", async () => {
  await openAt(`${RUN}?test=db`);
  await at.page.getByLabel("Load").selectOption("c16");
  await at.page
    .locator("tbody .c-ratio small", { hasText: /^\[\d\.\d\d, \d\.\d\d\]$/ })
    .first()
    .waitFor();
  const ranking = JSON.parse(readFileSync(`${stage.results}/20250615-small/ranking.json`, "utf-8"));
  const table = ranking.test_types.db.tables.find(
    (item: { load: { connections: number } }) => item.load.connections === 16,
  );
  const median = table.rows[0].requests_per_second.estimate.median as number;
  await expect
    .poll(() => at.page.locator("tbody .figure").first().innerText())
    .toBe(Math.round(median).toLocaleString("en-US"));
});

test("ranking by CPU per request puts its figure beside the bar and the cheapest first", async () => {
  await openAt(`${RUN}?test=json&metric=cpu`);
  await expectRows(at.page, 4);
  const figures = (await at.page.locator("tbody .figure").allInnerTexts()).map(Number);
  expect(figures).toEqual([...figures].sort((a, b) => a - b));
  const bars = await at.page.locator("tbody .fill").evaluateAll((all) => all.map((bar) => bar.clientWidth));
  expect(bars).toEqual([...bars].sort((a, b) => b - a)); // the best is the longest
  await at.page.getByRole("columnheader", { name: "longer bar: less" }).waitFor();
  const ranking = JSON.parse(readFileSync(`${stage.results}/20250615-small/ranking.json`, "utf-8"));
  const rows = ranking.test_types.json.headline.rows as {
    implementation: string;
    cpu_seconds_per_request: { to_reference: { value: number } };
  }[];
  const express = rows.find((row) => row.implementation === "express");
  const shown = await at.page.locator("tbody tr", { hasText: "express" }).locator(".c-ratio .plain-figure").innerText();
  expect(shown).toBe(`${express?.cpu_seconds_per_request.to_reference.value.toFixed(2)}×`);
});

test("a run whose answer is led by CPU per request opens on it, until another metric is chosen", async () => {
  const path = `${stage.results}/20250622-second/ranking.json`;
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf-8")), leading: "cpu" }));
  await openAt("#/run/20250622-second?test=json");
  const chosen = at.page.getByLabel("Rank by");
  await expect.poll(() => chosen.inputValue()).toBe("cpu");
  await chosen.selectOption("throughput");
  await expect.poll(() => at.page.url()).toContain("metric=throughput");
  await at.page.reload();
  await expect.poll(() => chosen.inputValue()).toBe("throughput");
});

test("tabs are moved through with the arrow keys", async () => {
  await openAt(`${RUN}?test=json`);
  await at.page.getByRole("tab", { name: "JSON" }).focus();
  await at.page.keyboard.press("ArrowRight");
  await expect.poll(() => at.page.getByRole("tab", { name: "Plaintext" }).getAttribute("aria-selected")).toBe("true");
  await at.page.keyboard.press("Home");
  await at.page.getByText("The score is the geometric mean").waitFor();
  await expect.poll(() => at.page.url()).toContain("test=overall");
});

test("every chart draws and keeps its figures in a table", async () => {
  for (const view of ["load", "latency", "pairs"]) {
    await openAt(`${RUN}?test=db&view=${view}`);
    const chart = at.page.locator("figure.chart").first();
    await chart.locator("svg[role=img]").waitFor();
    await chart.getByText("Figures as a table").click();
    await expect.poll(() => chart.locator("tbody tr").count()).toBeGreaterThanOrEqual(3);
  }
  await openAt(`${RUN}?test=db&view=latency`);
  await at.page.getByText("closed-loop, service time").waitFor();
});

test("a crosshair tells every series at the nearest point, by pointer and by keyboard", async () => {
  await openAt(`${RUN}?test=db&view=load`);
  const area = at.page.getByRole("slider");
  await area.hover({ position: { x: 70, y: 200 } });
  await expect.poll(() => at.page.locator(".readings li").count()).toBe(4);
  await expect.poll(() => at.page.locator(".readings").innerText()).toMatch(/16 connections[^]*vertx-web[^]*\[[\d,]+/);
  await area.focus();
  await at.page.keyboard.press("End");
  await expect.poll(() => area.getAttribute("aria-valuetext")).toMatch(/^256 connections: /);
});

test("a run opens on Overall with an answer, and each test has its own", async () => {
  await openAt(RUN);
  const answer = at.page.getByRole("region", { name: "The answer" });
  await expect.poll(() => answer.innerText()).toMatch(/Overall, by [^]*times as good as the reference/);
  await expect.poll(() => at.page.getByRole("tab", { name: "Overall" }).getAttribute("aria-selected")).toBe("true");
  await expect.poll(() => at.page.locator("tbody .heat-0").count()).toBeGreaterThan(5);
  await at.page.getByRole("tab", { name: "Fortunes" }).click();
  await expect.poll(() => answer.innerText()).toContain("Fortunes");
});

test("tests are chosen for the score, in the link, with rank's intervals over these", async () => {
  await openAt(RUN);
  await at.page.getByRole("button", { name: "Score: 6 of 6 tests" }).click();
  await at.page.getByLabel("Updates", { exact: true }).uncheck();
  const es4x = at.page.locator("tbody tr", { hasText: "es4x" });
  await expect.poll(() => es4x.locator(".figure").innerText()).toMatch(/^\d\.\d\d×$/);
  await expect.poll(() => es4x.locator(".c-rate small").innerText()).toMatch(/^\[/);
  await expect.poll(() => at.page.url()).toContain("without=update");
  await openAt(`${RUN}?pin=express`);
  await expect.poll(async () => (await tableNames(at.page))[0]).toBe("express");
});

test("views that would be empty are not offered", async () => {
  await openAt("");
  await at.page.locator("input[type=file]").setInputFiles(`${stage.results}/techempower.json`);
  await at.page.getByRole("tab", { name: "JSON" }).click();
  await expectNames(at.page, ["undertow", "gemini", "flask"]);
  const tabs = await at.page.getByRole("tablist", { name: "Views" }).getByRole("tab").allInnerTexts();
  expect(tabs).not.toContain("Latency over load");
  expect(await at.page.locator(".legend-line").innerText()).not.toContain("no rank is excluded");
  expect(await at.page.getByRole("columnheader").allInnerTexts()).not.toContain("Peak memory");
});

test("the page without a script says where the tables are", async () => {
  const context = await stage.browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(stage.url);
  await expect.poll(() => page.locator("noscript").innerText()).toContain("./tfb report prints the same tables");
  await context.close();
});

test("the drill-down shows what was expected and what came, trials, gates and logs", async () => {
  await openAt(`${RUN}?view=cell&test=update&impl=es4x`);
  await at.page.getByText("query-count-clamped").first().waitFor();
  await expect.poll(() => at.page.locator(".finding.fail pre").allInnerTexts()).toEqual(["500 objects", "501 objects"]);
  await at.page.getByRole("tab", { name: "Single query" }).click();
  await at.page.getByRole("heading", { name: "Every trial" }).waitFor();
  await expect.poll(() => at.page.getByRole("region", { name: "Every trial" }).locator("tbody tr").count()).toBe(6);
  await at.page.getByLabel("Time series for").selectOption("1");
  await at.page.locator(".span text", { hasText: "warm-up" }).waitFor();
  await at.page.getByText("Log of process 1").click();
  await at.page.getByText("es4x: <b>process</b> 0").waitFor();
  await at.page.getByText("Validity checks: measured").click();
  await at.page.getByRole("rowheader", { name: "contended" }).waitFor();
  await at.page.getByText("Commands that loaded it").click();
  await at.page
    .getByText(/loadgen --connections \d+ --seconds \d+/)
    .first()
    .waitFor();
});

test("two runs are compared with intervals and what else differed", async () => {
  const path = `${stage.results}/20250622-second/run.json`;
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf-8")), revision: "c0ffee" }));
  await openAt("");
  for (const name of ["20250615-small", "20250622-second"])
    await at.page.getByLabel(`Choose Synthetic run ${name}`).check();
  await at.page.getByRole("button", { name: "Compare the two chosen" }).click();
  await at.page.locator("figure.chart svg").first().waitFor();
  await expect
    .poll(() => at.page.getByRole("region", { name: "Figures of both runs" }).locator("tbody tr").count())
    .toBe(4);
  await expect
    .poll(() => at.page.locator("tbody td", { hasText: /^\d\.\d\d×\s*\[\d\.\d+, \d\.\d+\]$/ }).count())
    .toBe(8);
  await expect.poll(() => at.page.locator(".notes").innerText()).toContain("the runs differ in revision");
});

test("what is shown is exported as CSV, JSON, SVG and PNG", async () => {
  await openAt(`${RUN}?test=json&language=Java`);
  const save = async (kind: string): Promise<Buffer> => {
    await at.page.getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([
      at.page.waitForEvent("download"),
      at.page.getByRole("button", { name: kind, exact: true }).click(),
    ]);
    await at.page.keyboard.press("Escape");
    expect(download.suggestedFilename()).toMatch(/^JSON-by-throughput-/);
    return readFileSync(await download.path());
  };
  const csv = (await save("CSV")).toString().trim().split("\r\n");
  expect(csv.length).toBe(3);
  expect(csv[0]).toContain("throughput_low");
  expect(JSON.parse((await save("JSON")).toString()).map((row: { language: string }) => row.language)).toEqual([
    "Java",
    "Java",
  ]);
  expect((await save("SVG")).toString()).toMatch(/^<svg[^]*vertx-web[^]*<\/svg>$/);
  expect((await save("PNG")).subarray(1, 4).toString()).toBe("PNG");
});

test("TechEmpower's results are opened from a dropped file", async () => {
  await openAt("");
  await at.page.locator("input[type=file]").waitFor(); // the page listens for what is dropped
  const text = readFileSync(`${stage.results}/techempower.json`, "utf-8");
  await at.page.evaluate((content) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([content], "dropped.json", { type: "application/json" }));
    dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, text);
  await at.page.getByRole("heading", { name: "Round 99, invented" }).waitFor();
  await expect.poll(() => at.page.url()).toMatch(/local%3A\d+-dropped.json/);
});

test("a dropped file that is no results file is refused with a reason", async () => {
  await openAt("");
  await at.page
    .locator("input[type=file]")
    .setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from("{}") });
  await expect
    .poll(() => at.page.getByRole("alert").allInnerTexts())
    .toEqual([expect.stringContaining("it has no rawData")]);
});

test("nothing went wrong on the way, and nothing was asked of another host", () => {
  expect(at.complaints).toEqual([]);
  const foreign = at.requests.filter((url) => !url.startsWith(stage.url) && !/^(blob|data|about):/.test(url));
  expect(foreign).toEqual([]);
});
