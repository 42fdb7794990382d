import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, expectRows, serveRuns, save, type Site, screenshot, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;
let file: string;

beforeAll(async () => {
  site = await serveRuns("small");
  file = `${site.results}/report.html`;
  save(`${site.results}/20250615-small`, file);
  visitor = await visit(site.browser);
  await visitor.context.setOffline(true);
});
afterAll(() => site?.stop());

test("a saved file opens from disk with its ranking", async () => {
  await visitor.page.goto(`file://${file}`);
  await visitor.page.getByRole("table").waitFor();
  await expectRows(visitor.page, 4);
  await screenshot(visitor.page, "offline-1440-light");
  await expectAccessible(visitor.page);
});

test("a score over fewer tests has neither interval nor summary", async () => {
  const summary = visitor.page.getByRole("region", { name: "Summary" });
  await summary.waitFor();
  await visitor.page.getByRole("button", { name: /^Score: / }).click();
  await visitor.page.getByLabel("Updates", { exact: true }).uncheck();
  await visitor.page.getByText("These are point estimates").waitFor();
  expect(await summary.count()).toBe(0);
});

test("the file contains loads, charts, trials and logs", async () => {
  await visitor.page.getByRole("tab", { name: "Single query" }).click();
  await visitor.page.getByLabel("Load").selectOption("c16");
  await expectRows(visitor.page, 4);
  await visitor.page.getByRole("tab", { name: "Latency" }).click();
  await visitor.page.locator("figure.chart svg").first().waitFor();
  await visitor.page.goto(`file://${file}#/run/20250615-small?view=cell&test=db&impl=es4x&process=1`);
  await visitor.page.locator(".span text", { hasText: "warm-up" }).waitFor();
  await visitor.page.getByText("Build log").click();
  await visitor.page.getByText("BUILD SUCCESS").waitFor();
});

test("the file uses no network and violates no security policy", () => {
  expect(visitor.requests.filter((url) => !url.startsWith("file://") && !url.startsWith("blob:"))).toEqual([]);
  expect(visitor.errors).toEqual([]);
});

test("a file with four implementations is below 500 kB", () => expect(statSync(file).size).toBeLessThan(500_000));
