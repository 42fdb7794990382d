import { afterAll, beforeAll, expect, test } from "vitest";
import { serveRuns, type Site, type Visit, visit } from "./fixtures";

let site: Site;
let visitor: Visit;

beforeAll(async () => {
  site = await serveRuns("orders");
  visitor = await visit(site.browser);
  await visitor.page.goto(`${site.url}#/run/20250629-orders`);
});
afterAll(() => site?.stop());

test("orders are ranked by response time at each factor", async () => {
  const tables = visitor.page.getByRole("region", { name: /response time of "create order", all values/ });
  await tables.first().waitFor();
  await expect.poll(() => tables.count()).toBe(2);
  await expect
    .poll(() => tables.first().locator("tbody th").allInnerTexts())
    .toEqual(["vertx-web", "resteasy", "es4x", "express"]);
  await expect
    .poll(() => tables.first().locator("tbody tr").first().innerText())
    .toMatch(/^1\s+vertx-web\s+4\.\d+ ms \[/);
  await expect.poll(() => visitor.page.locator("main").innerText()).toContain("vertx-web first");
});

test("an undecided capacity search is reported", async () => {
  const capacity = visitor.page.getByRole("region", { name: "Capacity" });
  await expect
    .poll(() => capacity.innerText())
    .toContain("express: lower bound, loads too short to decide in 1 of 4 processes");
});

test("use cases show all operations at the selected factor", async () => {
  await visitor.page.getByRole("tab", { name: "Use cases" }).click();
  const unwanted = visitor.page.getByRole("region", { name: "order with unwanted items, response times" });
  await unwanted.waitFor();
  const operations = async () => [...new Set(await unwanted.locator("tbody tr td:nth-child(2)").allInnerTexts())];
  await expect
    .poll(operations)
    .toEqual(["create order", "add item", "delete item", "read items", "read order", "whole arrival"]);
  const before = await unwanted.locator("tbody tr").first().innerText();
  await visitor.page.getByLabel("Load factor").selectOption("x1");
  await expect.poll(() => unwanted.locator("tbody tr").first().innerText()).not.toBe(before);
  await expect.poll(() => visitor.page.url()).toContain("load=x1");
  expect(visitor.errors).toEqual([]);
});
