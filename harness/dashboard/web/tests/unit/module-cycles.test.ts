// Tests that neither the page's modules nor the modules of a Rust crate import each other in a cycle.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const sources = (folder: string, name: RegExp): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf-8" }).filter((file) => name.test(file));

function typeScriptImports(folder: string): Map<string, string[]> {
  const files = sources(folder, /\.tsx?$/).map((file) => join(folder, file));
  const imports = (file: string): string[] =>
    [...readFileSync(file, "utf-8").matchAll(/ from "(\.[^"]+)"/g)].flatMap(([, path = ""]) =>
      ["", ".ts", ".tsx", ".d.ts"]
        .map((end) => resolve(dirname(file), path) + end)
        .filter((each) => files.includes(each)),
    );
  return new Map(files.map((file) => [file, imports(file)]));
}

/** Return the imports between a crate's top-level modules. A child module's imports count as its parent's. */
function crateImports(folder: string): Map<string, string[]> {
  const modules = new Map<string, string[]>();
  for (const file of sources(folder, /\.rs$/)) {
    const module = (file.split(/[/.]/)[0] ?? "").replace("-", "_");
    const used = [...readFileSync(join(folder, file), "utf-8").matchAll(/\bcrate::(\w+)/g)].map(
      ([, name = ""]) => name,
    );
    modules.set(module, [...(modules.get(module) ?? []), ...used.filter((name) => name !== module)]);
  }
  return modules;
}

function findCycle(graph: ReadonlyMap<string, string[]>): string[] {
  const finished = new Set<string>();
  const visit = (node: string, path: string[]): string[] => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (finished.has(node)) return [];
    const cycle = (graph.get(node) ?? []).map((next) => visit(next, [...path, node])).find((found) => found.length > 0);
    finished.add(node);
    return cycle ?? [];
  };
  return [...graph.keys()].map((node) => visit(node, [])).find((cycle) => cycle.length > 0) ?? [];
}

test("cycles are found", () => {
  expect(findCycle(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]]))).toEqual(["b", "c", "b"]); // prettier-ignore
});

test("the page has no import cycle", () => {
  const graph = typeScriptImports(join(ROOT, "harness/dashboard/web/src"));
  expect(graph.get(join(ROOT, "harness/dashboard/web/src/app.tsx"))?.length).toBeGreaterThan(5);
  expect(findCycle(graph)).toEqual([]);
});

const CRATES = readdirSync(join(ROOT, "toolset")).filter((name) =>
  existsSync(join(ROOT, "toolset", name, "Cargo.toml")),
);

test.each(CRATES)("the crate %s has no import cycle", (crate) => {
  const graph = crateImports(join(ROOT, "toolset", crate, "src"));
  expect([...graph.values()].flat().length).toBeGreaterThan(0);
  expect(findCycle(graph)).toEqual([]);
});
