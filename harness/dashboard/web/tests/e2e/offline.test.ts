import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, expectRows, raise, save, type Stage, screenshot, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;
let file: string;

beforeAll(async () => {
  stage = await raise("small");
  file = `${stage.results}/report.html`;
  save(`${stage.results}/20250615-small`, file);
  at = await visit(stage.browser);
  await at.context.setOffline(true);
});
afterAll(() => stage?.stop());

test("the file opens from disk on its ranking", async () => {
  await at.page.goto(`file://${file}`);
  await at.page.getByRole("table").waitFor();
  await expectRows(at.page, 4);
  await screenshot(at.page, "offline-1440-light");
  await expectAccessible(at.page);
});

test("a score over other tests has no interval, and no answer that is of all", async () => {
  const answer = at.page.getByRole("region", { name: "The answer" });
  await answer.waitFor();
  await at.page.getByRole("button", { name: /^Score: / }).click();
  await at.page.getByLabel("Updates", { exact: true }).uncheck();
  await at.page.getByText("These are point estimates").waitFor();
  expect(await answer.count()).toBe(0);
});

test("loads, charts, trials and logs are in it", async () => {
  await at.page.getByRole("tab", { name: "Single query" }).click();
  await at.page.getByLabel("Load").selectOption("c16");
  await expectRows(at.page, 4);
  await at.page.getByRole("tab", { name: "Latency" }).click();
  await at.page.locator("figure.chart svg").first().waitFor();
  await at.page.goto(`file://${file}#/run/20250615-small?view=cell&test=db&impl=es4x&process=1`);
  await at.page.locator(".span text", { hasText: "warm-up" }).waitFor();
  await at.page.getByText("Build log").click();
  await at.page.getByText("BUILD SUCCESS").waitFor();
});

test("it asks nothing of the network, and its policy is never violated", () => {
  expect(at.requests.filter((url) => !url.startsWith("file://") && !url.startsWith("blob:"))).toEqual([]);
  expect(at.complaints).toEqual([]);
});

test("four implementations take less than half a megabyte", () => expect(statSync(file).size).toBeLessThan(500_000));
