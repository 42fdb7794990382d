// The order service on the page: ranked by what customers waited for, and every operation of every use case.
import { afterAll, beforeAll, expect, test } from "vitest";
import { raise, type Stage, type Visit, visit } from "./fixtures";

let stage: Stage;
let at: Visit;

beforeAll(async () => {
  stage = await raise("orders");
  at = await visit(stage.browser);
  await at.page.goto(`${stage.url}#/run/20250629-orders`);
});
afterAll(() => stage?.stop());

test("it is ranked by the response time of create order at each factor, the hardest first", async () => {
  const tables = at.page.getByRole("region", { name: /response time of "create order", all figures/ });
  await tables.first().waitFor();
  await expect.poll(() => tables.count()).toBe(2);
  await expect
    .poll(() => tables.first().locator("tbody th").allInnerTexts())
    .toEqual(["vertx-web", "resteasy", "es4x", "express"]);
  await expect
    .poll(() => tables.first().locator("tbody tr").first().innerText())
    .toMatch(/^1\s+vertx-web\s+4\.\d+ ms \[/);
  await expect.poll(() => at.page.locator("main").innerText()).toContain("vertx-web first");
});

test("whose search ended before the goal was missed is told so", async () => {
  const capacity = at.page.getByRole("region", { name: "Capacity" });
  await expect.poll(() => capacity.innerText()).toContain("express: lower bound, 1 of 4 brackets not decided");
});

test("its use cases show every operation at the factor that is chosen", async () => {
  await at.page.getByRole("tab", { name: "Use cases" }).click();
  const unwanted = at.page.getByRole("region", { name: "order with unwanted items, response times" });
  await unwanted.waitFor();
  const operations = async () => [...new Set(await unwanted.locator("tbody tr td:nth-child(2)").allInnerTexts())];
  await expect
    .poll(operations)
    .toEqual(["create order", "add item", "delete item", "read items", "read order", "the whole arrival"]);
  const before = await unwanted.locator("tbody tr").first().innerText();
  await at.page.getByLabel("Factor of the arrivals").selectOption("x1");
  await expect.poll(() => unwanted.locator("tbody tr").first().innerText()).not.toBe(before);
  await expect.poll(() => at.page.url()).toContain("load=x1");
  expect(at.complaints).toEqual([]);
});
