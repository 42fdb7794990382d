// What every end-to-end test stands on: generated runs, the real server, a real Chromium, and eyes for what goes wrong.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";
import { PYTHON, ROOT } from "./generated";

const BROKEN = ["corrupt", "empty", "list"]; // folders that come with the hostile run

/** Chromium of the system, or the one that TFB_CHROMIUM names. */
function chromiumPath(): string {
  const known = [process.env.TFB_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const found = known.find((path) => path && existsSync(path));
  if (!found) throw new Error("no Chromium: apt-get install chromium, or set TFB_CHROMIUM to its path");
  return found;
}

export interface Stage {
  results: string;
  url: string;
  browser: Browser;
  stop: () => Promise<void>;
}

/** The run of a folder, saved as one file. */
export function save(folder: string, file: string): void {
  const code = [
    ...["from pathlib import Path", "from harness.dashboard.saved import of_run"],
    `Path("${file}").write_text(of_run(Path("${folder}")))`,
  ];
  execFileSync(PYTHON, ["-c", code.join("; ")], { cwd: ROOT });
}

/** Generated runs, served: copies, which a test may change. */
export async function raise(...runs: string[]): Promise<Stage> {
  const all = inject("generated");
  const wanted = readdirSync(all).filter(
    (name) =>
      runs.some((run) => name.endsWith(`-${run}`) || name === `${run}.json`) ||
      (runs.includes("hostile") && BROKEN.includes(name)),
  );
  return serve((results) => {
    for (const name of wanted) cpSync(join(all, name), join(results, name), { recursive: true });
  });
}

/** A results folder that `fill` writes, served by the real server, and a browser. */
export async function serve(fill: (results: string) => void): Promise<Stage> {
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
      const found = /dashboard: (http\S+)/.exec(text);
      if (found?.[1]) done(found[1]);
    });
    server.on("exit", (status) => fail(new Error(`the server ended with status ${status}: ${text}`)));
  });
}

export interface Visit {
  page: Page;
  context: BrowserContext;
  complaints: string[]; // errors, violations of the policy, dialogs: there should be none
  requests: string[];
}

/** A page that remembers what went wrong on it. */
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
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => requests.push(request.url()));
  return { page, context, complaints, requests };
}

let opened = 0;

/** A page as it opens for the first time: with another query no document stays as it is, and no renderer starts anew. */
export async function open(page: Page, base: string, hash = ""): Promise<void> {
  await page.goto(`${base}?${++opened}${hash}`);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

/** Fails with a readable list when axe-core finds a violation. */
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
    const found = await axe.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return found.violations.map(
      (violation) =>
        `${violation.id}: ${violation.nodes
          .slice(0, 3)
          .map((node) => `${node.html} ${node.failureSummary}`)
          .join(" | ")}`,
    );
  });
  expect(violations).toEqual([]);
}

/** The names in the table as it stands now, from top to bottom: for `expect.poll`, as it may still be drawn. */
export function tableNames(page: Page): Promise<string[]> {
  return page.locator("table.ranking tbody .c-name a").allInnerTexts();
}

/** Waits until the table names exactly these, in this order. */
export async function expectNames(page: Page, names: string[]): Promise<void> {
  await expect.poll(() => tableNames(page)).toEqual(names);
}

/** Waits until the table has so many rows. */
export async function expectRows(page: Page, rows: number): Promise<void> {
  await expect.poll(() => tableNames(page)).toHaveLength(rows);
}

/** Waits until nothing on the page is still being fetched. */
export async function settled(page: Page): Promise<void> {
  await page.locator("h1").waitFor();
  await expect.poll(() => page.locator(".waiting:visible").count()).toBe(0);
}

/** Where TFB_SCREENSHOTS names a folder. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.TFB_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
