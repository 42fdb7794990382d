import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNames, expectRows, open, serveRuns, type Site, tableNames, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
const RUN = "#/run/20250615-small";

beforeAll(async () => {
  site = await serveRuns("small", "second", "techempower");
  visitor = await visit(site.browser);
});
afterAll(() => site?.stop());

const openAt = (hash: string): Promise<void> => open(visitor.page, site.url, hash);

test("a run in the list links to its ranking", async () => {
  await openAt("");
  await expect.poll(() => visitor.page.title()).toBe("Runs: tfb");
  await visitor.page.getByRole("link", { name: "Synthetic run 20250615-small" }).click();
  await visitor.page.getByRole("table").waitFor();
  await expect.poll(() => visitor.page.title()).toBe("Synthetic run 20250615-small: tfb");
  await expectRows(visitor.page, 4);
});

test("the ranking shows whiskers, rank intervals and ties", async () => {
  await openAt(`${RUN}?test=json`);
  await visitor.page.getByRole("table").waitFor();
  const ranking = JSON.parse(readFileSync(`${site.results}/20250615-small/ranking.json`, "utf-8"));
  const rows = ranking.test_types.json.headline.rows as {
    implementation: string;
    requests_per_second: { rank: { low: number; high: number }; tie_group: number };
  }[];
  await expectNames(
    visitor.page,
    rows.map((row) => row.implementation),
  );
  await expect
    .poll(() => visitor.page.locator("tbody .c-rank").allInnerTexts())
    .toEqual(
      rows.map(({ requests_per_second: { rank } }) =>
        rank.low === rank.high ? `${rank.low}` : `${rank.low}–${rank.high}`,
      ),
    );
  const groups = rows.map((row) => row.requests_per_second.tie_group);
  const tied = groups.filter((group) => groups.filter((other) => other === group).length > 1).length;
  expect(tied).toBeGreaterThan(0);
  await expect.poll(() => visitor.page.locator("tbody tr.tied-0, tbody tr.tied-1").count()).toBe(tied);
  await expect.poll(() => visitor.page.locator("tbody .whisker").count()).toBe(4);
  await expect
    .poll(() => visitor.page.locator("tbody .c-rate small", { hasText: /^\[[\d,]+, [\d,]+\]$/ }).count())
    .toBe(4);
});

test("the first results are above the fold", async () => {
  for (const width of [1440, 390]) {
    const narrow = await visit(site.browser, { width });
    await narrow.page.goto(`${site.url}${RUN}`);
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

test("on a narrow page, cell pages open at the top", async () => {
  const narrow = await visit(site.browser, { width: 390 });
  await narrow.page.goto(`${site.url}${RUN}?test=db`);
  await narrow.page.locator("tbody .c-name a").last().click();
  await narrow.page.getByRole("heading", { name: "All trials" }).waitFor();
  await expect.poll(() => narrow.page.evaluate(() => scrollY)).toBe(0);
  await narrow.context.close();
});

test("the comparison shows verdicts and ratios at every width", async () => {
  for (const width of [390, 768, 1280]) {
    const sized = await visit(site.browser, { width });
    await sized.page.goto(`${site.url}#/compare?a=20250615-small&b=20250622-second`);
    const summary = sized.page.getByRole("region", { name: "Summary" });
    await expect.poll(() => summary.innerText()).toMatch(/second over .*small, \d+ cells: /);
    for (const name of ["Requests/s ×", "CPU ×"]) {
      const box = await sized.page.getByRole("columnheader", { name }).boundingBox();
      expect((box?.x ?? 1e9) + (box?.width ?? 0), `${name} visitor ${width}`).toBeLessThanOrEqual(width);
    }
    await sized.context.close();
  }
});

test("Overall shades ties and shows flags", async () => {
  await openAt(RUN);
  await expect.poll(() => visitor.page.locator("tbody tr.tied-0, tbody tr.tied-1").count()).toBeGreaterThan(1);
  await expect.poll(() => visitor.page.locator(".common-flags .flag, tbody .flag").count()).toBeGreaterThan(0);
});

test("an unranked run has no ranks and no score", async () => {
  const folder = `${site.results}/20250622-second`;
  const path = `${folder}/run.json`;
  const original = readFileSync(path, "utf-8");
  renameSync(`${folder}/ranking.json`, `${folder}/as-it-was.json`);
  const info = JSON.parse(original);
  writeFileSync(path, JSON.stringify({ ...info, settings: { profile: { ranked: false } } }));
  await openAt("#/run/20250622-second?test=db");
  await visitor.page.getByText("it does not rank them").waitFor();
  await expectRows(visitor.page, 4);
  await expect.poll(() => visitor.page.getByRole("tab", { name: "Overall" }).count()).toBe(0);
  await expect.poll(() => visitor.page.getByRole("columnheader", { name: "Rank" }).count()).toBe(0);
  writeFileSync(path, original);
  renameSync(`${folder}/as-it-was.json`, `${folder}/ranking.json`);
});

test("columns sort from the keyboard in both directions", async () => {
  await openAt(`${RUN}?test=json`);
  const head = visitor.page.getByRole("columnheader", { name: "Peak memory" });
  await head.getByRole("button").focus();
  await visitor.page.keyboard.press("Enter");
  await expect.poll(() => head.getAttribute("aria-sort")).toBe("ascending");
  const ascending = await tableNames(visitor.page);
  await visitor.page.keyboard.press("Enter");
  await expect.poll(() => head.getAttribute("aria-sort")).toBe("descending");
  await expectNames(visitor.page, [...ascending].reverse());
  await expect.poll(() => visitor.page.url()).toContain("sort=-memory");
});

test("filtering keeps ranks and changes the link", async () => {
  await openAt(`${RUN}?test=db`);
  const before = await visitor.page.locator("tbody tr", { hasText: "express" }).locator(".c-rank").innerText();
  await visitor.page.getByRole("button", { name: "Filters" }).click();
  await visitor.page.getByRole("group", { name: "Language" }).getByLabel("JavaScript").check();
  await expect.poll(async () => (await tableNames(visitor.page)).sort()).toEqual(["es4x", "express"]);
  expect(await visitor.page.locator("tbody tr", { hasText: "express" }).locator(".c-rank").innerText()).toBe(before);
  await expect.poll(() => visitor.page.getByText("2 of 4 shown").count()).toBe(1);
  await expect.poll(() => visitor.page.url()).toMatch(/language=javascript/i);
  const link = visitor.page.url();
  await openAt(link.slice(link.indexOf("#")));
  await visitor.page.locator("tbody .c-name a").first().click();
  await visitor.page.getByRole("link", { name: "← All implementations" }).click();
  await expect.poll(async () => (await tableNames(visitor.page)).sort()).toEqual(["es4x", "express"]);
});

test("the text filter applies while typing", async () => {
  await openAt(`${RUN}?test=json`);
  await visitor.page.getByRole("searchbox").fill("vert");
  await expect.poll(async () => (await tableNames(visitor.page)).sort()).toEqual(["es4x", "vertx-web"]);
});

test("a second click closes a row menu", async () => {
  await openAt(`${RUN}?test=json`);
  const button = visitor.page.getByRole("button", { name: "Actions for express" });
  for (const expanded of ["true", "false"]) {
    await button.click();
    await expect.poll(() => button.getAttribute("aria-expanded")).toBe(expanded);
  }
});

test("pinned and hidden rows survive a reload", async () => {
  await openAt(`${RUN}?test=json`);
  for (const [name, action] of [
    ["express", "Pin to the top"],
    ["resteasy", "Hide"],
  ] as const) {
    await visitor.page.getByRole("button", { name: `Actions for ${name}` }).click();
    await visitor.page.getByRole("button", { name: action }).click();
  }
  await expectNames(visitor.page, ["express", "vertx-web", "es4x"]);
  await expect.poll(() => visitor.page.url()).toContain("resteasy"); // wait for the URL to change
  await visitor.page.reload();
  await expectNames(visitor.page, ["express", "vertx-web", "es4x"]);
  await expect.poll(() => visitor.page.locator("tr.pinned").count()).toBe(1);
  await visitor.page.goBack();
  await expect.poll(() => tableNames(visitor.page)).toContain("resteasy");
});

test("the load can be selected", async () => {
  await openAt(`${RUN}?test=db`);
  await visitor.page.getByLabel("Load").selectOption("c16");
  await visitor.page
    .locator("tbody .c-ratio small", { hasText: /^\[\d\.\d\d, \d\.\d\d\]$/ })
    .first()
    .waitFor();
  const ranking = JSON.parse(readFileSync(`${site.results}/20250615-small/ranking.json`, "utf-8"));
  const table = ranking.test_types.db.tables.find(
    (item: { load: { connections: number } }) => item.load.connections === 16,
  );
  const median = table.rows[0].requests_per_second.estimate.median as number;
  await expect
    .poll(() => visitor.page.locator("tbody .figure").first().innerText())
    .toBe(Math.round(median).toLocaleString("en-US"));
});

test("ranking by CPU per request shows the cheapest first", async () => {
  await openAt(`${RUN}?test=json&metric=cpu`);
  await expectRows(visitor.page, 4);
  const figures = (await visitor.page.locator("tbody .figure").allInnerTexts()).map(Number);
  expect(figures).toEqual([...figures].sort((a, b) => a - b));
  const bars = await visitor.page.locator("tbody .fill").evaluateAll((all) => all.map((bar) => bar.clientWidth));
  expect(bars).toEqual([...bars].sort((a, b) => b - a)); // the first and best row has the longest bar
  await visitor.page.getByRole("columnheader", { name: "longer bar is better" }).waitFor();
  const ranking = JSON.parse(readFileSync(`${site.results}/20250615-small/ranking.json`, "utf-8"));
  const rows = ranking.test_types.json.headline.rows as {
    implementation: string;
    cpu_seconds_per_request: { to_reference: { value: number } };
  }[];
  const express = rows.find((row) => row.implementation === "express");
  const ratio = await visitor.page
    .locator("tbody tr", { hasText: "express" })
    .locator(".c-ratio .plain-figure")
    .innerText();
  expect(ratio).toBe(`${express?.cpu_seconds_per_request.to_reference.value.toFixed(2)}×`);
});

test("the leading metric applies until another is selected", async () => {
  const path = `${site.results}/20250622-second/ranking.json`;
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf-8")), leading: "cpu" }));
  await openAt("#/run/20250622-second?test=json");
  const metric = visitor.page.getByLabel("Rank by");
  await expect.poll(() => metric.inputValue()).toBe("cpu");
  await metric.selectOption("throughput");
  await expect.poll(() => visitor.page.url()).toContain("metric=throughput");
  await visitor.page.reload();
  await expect.poll(() => metric.inputValue()).toBe("throughput");
});

test("arrow keys move between tabs", async () => {
  await openAt(`${RUN}?test=json`);
  await visitor.page.getByRole("tab", { name: "JSON" }).focus();
  await visitor.page.keyboard.press("ArrowRight");
  await expect
    .poll(() => visitor.page.getByRole("tab", { name: "Plaintext" }).getAttribute("aria-selected"))
    .toBe("true");
  await visitor.page.keyboard.press("Home");
  await visitor.page.getByText("The score is the geometric mean").waitFor();
  await expect.poll(() => visitor.page.url()).toContain("test=overall");
});

test("every chart has a table of values", async () => {
  for (const view of ["load", "latency", "pairs"]) {
    await openAt(`${RUN}?test=db&view=${view}`);
    const chart = visitor.page.locator("figure.chart").first();
    await chart.locator("svg[role=img]").waitFor();
    await chart.getByText("Show values as a table").click();
    await expect.poll(() => chart.locator("tbody tr").count()).toBeGreaterThanOrEqual(3);
  }
  await openAt(`${RUN}?test=db&view=latency`);
  await visitor.page.getByText("closed-loop, service time").waitFor();
});

test("the crosshair works with pointer and keyboard", async () => {
  await openAt(`${RUN}?test=db&view=load`);
  const area = visitor.page.getByRole("slider");
  await area.hover({ position: { x: 70, y: 200 } });
  await expect.poll(() => visitor.page.locator(".readings li").count()).toBe(4);
  await expect
    .poll(() => visitor.page.locator(".readings").innerText())
    .toMatch(/16 connections[^]*vertx-web[^]*\[[\d,]+/);
  await area.focus();
  await visitor.page.keyboard.press("End");
  await expect.poll(() => area.getAttribute("aria-valuetext")).toMatch(/^256 connections: /);
});

test("Overall and each test have a summary", async () => {
  await openAt(RUN);
  const summary = visitor.page.getByRole("region", { name: "Summary" });
  await expect.poll(() => summary.innerText()).toMatch(/Overall: [^]*times the baseline/);
  await expect
    .poll(() => visitor.page.getByRole("tab", { name: "Overall" }).getAttribute("aria-selected"))
    .toBe("true");
  await expect.poll(() => visitor.page.locator("tbody .heat").count()).toBeGreaterThan(5);
  await visitor.page.getByRole("tab", { name: "Fortunes" }).click();
  await expect.poll(() => summary.innerText()).toContain("Fortunes");
});

test("the score covers only the selected tests", async () => {
  await openAt(RUN);
  await visitor.page.getByRole("button", { name: "Score: 6 of 6 tests" }).click();
  await visitor.page.getByLabel("Updates", { exact: true }).uncheck();
  const es4x = visitor.page.locator("tbody tr", { hasText: "es4x" });
  await expect.poll(() => es4x.locator(".figure").innerText()).toMatch(/^\d\.\d\d×$/);
  await expect.poll(() => es4x.locator(".c-rate small").innerText()).toMatch(/^\[/);
  await expect.poll(() => visitor.page.url()).toContain("without=update");
  await openAt(`${RUN}?pin=express`);
  await expect.poll(async () => (await tableNames(visitor.page))[0]).toBe("express");
});

test("views without content are not offered", async () => {
  await openAt("");
  await visitor.page.locator("input[type=file]").setInputFiles(`${site.results}/techempower.json`);
  await visitor.page.getByRole("tab", { name: "JSON" }).click();
  await expectNames(visitor.page, ["undertow", "gemini", "flask"]);
  const tabs = await visitor.page.getByRole("tablist", { name: "Views" }).getByRole("tab").allInnerTexts();
  expect(tabs).not.toContain("Latency over load");
  expect(await visitor.page.locator(".legend-line").innerText()).not.toContain("any rank is possible");
  expect(await visitor.page.getByRole("columnheader").allInnerTexts()).not.toContain("Peak memory");
});

test("without JavaScript, the page names the report command", async () => {
  const context = await site.browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(site.url);
  await expect.poll(() => page.locator("noscript").innerText()).toContain("run ./tfb report to print the same tables");
  await context.close();
});

test("the cell page shows findings, trials, checks and logs", async () => {
  await openAt(`${RUN}?view=cell&test=update&impl=es4x`);
  await visitor.page.getByText("query-count-clamped").first().waitFor();
  await expect
    .poll(() => visitor.page.locator(".finding.fail pre").allInnerTexts())
    .toEqual(["500 objects", "501 objects"]);
  await visitor.page.getByRole("tab", { name: "Single query" }).click();
  await visitor.page.getByRole("heading", { name: "All trials" }).waitFor();
  await expect.poll(() => visitor.page.getByRole("region", { name: "All trials" }).locator("tbody tr").count()).toBe(6);
  await visitor.page.getByLabel("Time series for").selectOption("1");
  await visitor.page.locator(".span text", { hasText: "warm-up" }).waitFor();
  await visitor.page.getByText("Log of process 1").click();
  await visitor.page.getByText("es4x: <b>process</b> 0").waitFor();
  await visitor.page.getByText("Validity checks: measured").click();
  await visitor.page.getByRole("rowheader", { name: "contended" }).waitFor();
  await visitor.page.getByText("Load generator commands").click();
  await visitor.page
    .getByText(/loadgen --connections \d+ --seconds \d+/)
    .first()
    .waitFor();
});

test("two runs are compared with intervals and differences", async () => {
  const path = `${site.results}/20250622-second/run.json`;
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf-8")), revision: "c0ffee" }));
  await openAt("");
  for (const name of ["20250615-small", "20250622-second"])
    await visitor.page.getByLabel(`Select Synthetic run ${name}`).check();
  await visitor.page.getByRole("button", { name: "Compare the selected runs" }).click();
  await visitor.page.locator("figure.chart svg").first().waitFor();
  await expect
    .poll(() => visitor.page.getByRole("region", { name: "Values of both runs" }).locator("tbody tr").count())
    .toBe(4);
  await expect
    .poll(() => visitor.page.locator("tbody td", { hasText: /^\d\.\d\d×\s*\[\d\.\d+, \d\.\d+\]$/ }).count())
    .toBe(8);
  await expect.poll(() => visitor.page.locator(".notes").innerText()).toContain("the runs differ in revision");
});

test("visible rows are exported in four formats", async () => {
  await openAt(`${RUN}?test=json&language=Java`);
  const save = async (kind: string): Promise<Buffer> => {
    await visitor.page.getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([
      visitor.page.waitForEvent("download"),
      visitor.page.getByRole("button", { name: kind, exact: true }).click(),
    ]);
    await visitor.page.keyboard.press("Escape");
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

test("dropping a TechEmpower file opens it", async () => {
  await openAt("");
  await visitor.page.locator("input[type=file]").waitFor(); // the page has registered its drop listener
  const text = readFileSync(`${site.results}/techempower.json`, "utf-8");
  await visitor.page.evaluate((content) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([content], "dropped.json", { type: "application/json" }));
    dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, text);
  await visitor.page.getByRole("heading", { name: "Round 99, invented" }).waitFor();
  await expect.poll(() => visitor.page.url()).toMatch(/local%3A\d+-dropped.json/);
});

test("dropping any other file shows an error", async () => {
  await openAt("");
  await visitor.page
    .locator("input[type=file]")
    .setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from("{}") });
  await expect
    .poll(() => visitor.page.getByRole("alert").allInnerTexts())
    .toEqual([expect.stringContaining("it has no rawData")]);
});

test("the page caused no errors and no external requests", () => {
  expect(visitor.errors).toEqual([]);
  const foreign = visitor.requests.filter((url) => !url.startsWith(site.url) && !/^(blob|data|about):/.test(url));
  expect(foreign).toEqual([]);
});
