// Fixtures for the end-to-end tests: generated runs, the real server, Chromium, and detection of page errors.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";
import { PYTHON, ROOT } from "./generated";

const BROKEN = ["corrupt", "empty", "list"]; // unreadable folders, served together with the hostile run

/** Return the path of Chromium: $TFB_CHROMIUM, or a usual installation path. Throw an Error if there is none. */
function chromiumPath(): string {
  const candidates = [
    process.env.TFB_CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ];
  const path = candidates.find((candidate) => candidate && existsSync(candidate));
  if (!path) throw new Error("Chromium not found: run apt-get install chromium, or set TFB_CHROMIUM to its path");
  return path;
}

export interface Site {
  results: string;
  url: string;
  browser: Browser;
  stop: () => Promise<void>;
}

/** Save the run in `folder` as a single HTML file. */
export function save(folder: string, file: string): void {
  const code = [
    ...["from pathlib import Path", "from harness.dashboard.saved import render_run"],
    `Path("${file}").write_text(render_run(Path("${folder}")))`,
  ];
  execFileSync(PYTHON, ["-c", code.join("; ")], { cwd: ROOT });
}

/** Serve copies of generated runs, so that a test may change them. */
export async function serveRuns(...runs: string[]): Promise<Site> {
  const all = inject("generated");
  const names = readdirSync(all).filter(
    (name) =>
      runs.some((run) => name.endsWith(`-${run}`) || name === `${run}.json`) ||
      (runs.includes("hostile") && BROKEN.includes(name)),
  );
  return serve((results) => {
    for (const name of names) cpSync(join(all, name), join(results, name), { recursive: true });
  });
}

/** Serve a results folder that `fill` populates, and start a browser. */
export async function serve(fill: (results: string) => void): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "tfb-dashboard-"));
  const results = join(folder, "results");
  mkdirSync(results);
  fill(results);
  const server = spawn(PYTHON, ["-m", "harness", "dashboard", "--results", results, "--port", "0"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await address(server);
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] }).catch((reason) => {
    server.kill("SIGINT");
    throw reason;
  });
  return {
    results,
    url,
    browser,
    stop: async () => {
      await browser.close();
      server.kill("SIGINT");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function address(server: ChildProcess): Promise<string> {
  return new Promise((done, fail) => {
    let text = "";
    server.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const match = /dashboard: (http\S+)/.exec(text);
      if (match?.[1]) done(match[1]);
    });
    server.on("exit", (status) => fail(new Error(`the server ended with status ${status}: ${text}`)));
  });
}

export interface Visit {
  page: Page;
  context: BrowserContext;
  errors: string[]; // page errors, violations of the content security policy, and dialogs
  requests: string[];
}

/** Open a page and record its errors and requests. */
export async function visit(
  browser: Browser,
  options: { width?: number; theme?: "light" | "dark" } = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1440, height: options.width && options.width < 600 ? 800 : 900 },
    colorScheme: options.theme ?? "light",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  const errors: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => requests.push(request.url()));
  return { page, context, errors, requests };
}

let pageCount = 0;

/** Load a page as if for the first time. A unique query string prevents the browser from reusing the document. */
export async function open(page: Page, base: string, hash = ""): Promise<void> {
  await page.goto(`${base}?${++pageCount}${hash}`);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

/** Fail with a list of violations if axe-core finds any. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const axe = (
      window as unknown as {
        axe: {
          run: (
            options: object,
          ) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
        };
      }
    ).axe;
    const result = await axe.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return result.violations.map(
      (violation) =>
        `${violation.id}: ${violation.nodes
          .slice(0, 3)
          .map((node) => `${node.html} ${node.failureSummary}`)
          .join(" | ")}`,
    );
  });
  expect(violations).toEqual([]);
}

/**
 * Return the names in the table, from top to bottom. Use it with `expect.poll`, because rendering may not be finished.
 */
export function tableNames(page: Page): Promise<string[]> {
  return page.locator("table.ranking tbody .c-name a").allInnerTexts();
}

/** Wait until the table shows exactly these names in this order. */
export async function expectNames(page: Page, names: string[]): Promise<void> {
  await expect.poll(() => tableNames(page)).toEqual(names);
}

/** Wait until the table has this number of rows. */
export async function expectRows(page: Page, rows: number): Promise<void> {
  await expect.poll(() => tableNames(page)).toHaveLength(rows);
}

/** Wait until the page has loaded all of its documents. */
export async function settled(page: Page): Promise<void> {
  await page.locator("h1").waitFor();
  await expect.poll(() => page.locator(".waiting:visible").count()).toBe(0);
}

/** Save a screenshot if TFB_SCREENSHOTS names a folder. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.TFB_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
