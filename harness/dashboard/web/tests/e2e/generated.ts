// Generates the runs for the end-to-end tests, once for all test files.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    generated: string; // path of the results folder with all generated runs
  }
}

export const ROOT = resolve(import.meta.dirname, "../../../../..");
const VENV = join(ROOT, ".venv/bin/python");
export const PYTHON = process.env.TFB_PYTHON ?? (existsSync(VENV) ? VENV : "python3");

export default async function generate(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "tfb-generated-"));
  const make = (...names: string[]) =>
    promisify(execFile)(PYTHON, ["-m", "harness.tests.doubles.sample_data", folder, ...names], { cwd: ROOT });
  await Promise.all([make("small", "second", "hostile", "techempower"), make("long", "orders")]);
  project.provide("generated", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
