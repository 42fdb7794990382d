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
  expect(await tables.count()).toBe(2);
  const names = await tables.first().locator("tbody th").allInnerTexts();
  expect(names).toEqual(["vertx-web", "resteasy", "es4x", "express"]);
  expect(await tables.first().locator("tbody tr").first().innerText()).toMatch(/^1\s+vertx-web\s+4\.\d+ ms \[/);
  expect(await at.page.locator("main").innerText()).toContain("answers soonest in Order service ×32");
});

test("who missed the goal in one process has no capacity, and is told why", async () => {
  const capacity = at.page.getByRole("region", { name: "Capacity" });
  expect(await capacity.innerText()).toContain("express: p99 ≤ 100 ms held at no factor in 1 of 4 replicates");
});

test("its use cases show every operation at the factor that is chosen", async () => {
  await at.page.getByRole("tab", { name: "Use cases" }).click();
  const unwanted = at.page.getByRole("region", { name: "order with unwanted items, response times" });
  await unwanted.waitFor();
  const operations = new Set(await unwanted.locator("tbody tr td:nth-child(2)").allInnerTexts());
  expect([...operations]).toEqual([
    "create order",
    "add item",
    "delete item",
    "read items",
    "read order",
    "the whole arrival",
  ]);
  const before = await unwanted.locator("tbody tr").first().innerText();
  await at.page.getByLabel("Factor of the arrivals").selectOption("1");
  await expect.poll(() => unwanted.locator("tbody tr").first().innerText()).not.toBe(before);
  expect(at.complaints).toEqual([]);
});
