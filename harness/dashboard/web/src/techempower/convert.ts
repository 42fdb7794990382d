// Converts a results.json file of TechEmpower's toolset. The file has a single trial per cell, so the ranking uses
// point estimates without intervals.
import type {
  CellLatency,
  ClosedLoop,
  Embedded,
  Estimate,
  ImplementationInfo,
  LatencyDocument,
  Ranking,
  Row,
  Standing,
  Table,
  TestDocument,
} from "../documents";
import { summarize } from "./summarize";
import { duration as seconds, number, numbers, type Raw, record, strings, text } from "./read";

const SINGLE_MEASUREMENT = "single measurement";

/** Convert the parsed JSON of a results file. Throw an Error if it has no rawData. */
export function convert(raw: unknown, id: string): Embedded {
  const file = record(raw);
  const data = record(file.rawData);
  if (Object.keys(data).length === 0)
    throw new Error("This is not a results.json file of TechEmpower's toolset, because it has no rawData.");
  const testTypes = Object.keys(data).filter((key) => !["slocCounts", "commitCounts"].includes(key));
  const duration = number(file.duration) ?? 15;
  const names = new Set<string>(strings(file.frameworks));
  for (const test of testTypes) for (const name of Object.keys(record(data[test]))) names.add(name);
  const loads = Object.fromEntries(testTypes.map((test) => [test, testLoadList(test, file, record(data[test]))]));
  const problems: string[] = [];
  const measured = testTypes.map((test) => measure(test, record(data[test]), loads[test] ?? [], duration, problems));
  const failed = record(file.failed);
  const implementations = [...names].map((name) => implementationInfo(name, file.testMetadata, data, failed));
  const tests: Record<string, TestDocument> = {};
  const rankings: Embedded["document"]["ranking"]["test_types"] = {};
  for (const cells of measured) {
    const test = cells.test;
    const all = implementations.filter((info) => info.test_types.includes(test)).map((info) => info.name);
    const reasons = new Map(strings(failed[test]).map((name) => [name, "failed"]));
    const testLoads = loads[test] ?? [];
    const queries = testLoads.some((load) => load.queries !== null);
    const tables = testLoads.map((load, index) =>
      table(test, load, all, (name) => cellAt(cells, name, index), reasons),
    );
    const headline = queries
      ? (tables.at(-1) ?? table(test, null, all, () => null, reasons))
      : table(test, null, all, (name) => best(cells, name), reasons);
    rankings[test] = { group: "", test_type: test, headline, tables: [] };
    tests[test] = { test_type: test, tables, problems: [] };
  }
  const title = text(file.name) || "TechEmpower results";
  const completed = number(file.completionTime);
  const startedAt = (number(file.startTime) ?? 0) / 1000;
  const ranking: Ranking = {
    run_id: id,
    scoring_version: 1,
    leading: "throughput",
    reference: null,
    confidence: 0.95,
    test_types: rankings,
    overall: [],
    groups: {},
    latency: {},
    orders: null,
    noise_floor: null,
    notes: [
      "A results file of TechEmpower's toolset has one measurement per cell and no intervals, so differences may be due to chance. Ratios and scores are relative to the best of each test.",
    ],
  };
  return {
    document: {
      title,
      published: "",
      network_path: "unknown",
      sentences: summarize(ranking, implementations, text(file.environmentDescription)),
      run: {
        schema_version: 1,
        run_id: id,
        name: title,
        environment: text(file.environmentDescription),
        status: "complete",
        started_at: startedAt,
        completed_at: completed === null ? null : completed / 1000,
        command: [],
        profile: "TechEmpower",
        runtime: "docker",
        design: "",
        generator: "wrk",
        seed: 0,
        settings: { uuid: text(file.uuid), duration_seconds: duration },
        reference: null,
        machine: UNKNOWN_MACHINE,
        tools: {},
        revision: text(record(file.git).commitId) || null,
        dirty: null,
        implementations,
        loads,
        processes_expected: 1,
        processes_maximum: 1,
        noise_floor: null,
        problems: [],
        cells: {},
        sets: [],
        part: null,
        left_out: [],
        machines: [],
        links: [],
      },
      ranking,
      problems: problems.map((message) => ({ file: "results.json", message })),
      source_base: null,
    },
    tests,
    latency: Object.fromEntries(measured.map((cells) => [cells.test, latencies(cells)])),
    cells: [],
    logs: {},
    left_out: [],
    links: {},
  };
}

interface Cells {
  test: string;
  byName: Map<string, (Cell | null)[]>; // implementation -> one cell per load
}

interface Cell {
  load: ClosedLoop;
  throughput: number;
  errors: number;
  latency: { mean: number | null; stdev: number | null; maximum: number | null };
}

function measure(test: string, data: Raw, loads: ClosedLoop[], duration: number, problems: string[]): Cells {
  const byName = new Map<string, (Cell | null)[]>();
  for (const [name, trials] of Object.entries(data)) {
    if (!Array.isArray(trials)) {
      problems.push(`${test}, ${name}: expected a list of trials`);
      continue;
    }
    byName.set(
      name,
      loads.map((load, index) => {
        const trial = record(trials[index]);
        const total = number(trial.totalRequests);
        if (total === null || total <= 0) return null;
        const bad = number(trial["5xx"]) ?? 0;
        const errors = ["connect", "read", "write", "timeout"].reduce(
          (sum, key) => sum + (number(trial[key]) ?? 0),
          bad,
        );
        return {
          load,
          throughput: Math.max(0, total - bad) / duration,
          errors,
          latency: {
            mean: seconds(trial.latencyAvg),
            stdev: seconds(trial.latencyStdev),
            maximum: seconds(trial.latencyMax),
          },
        };
      }),
    );
  }
  return { test, byName };
}

/**
 * Return the mean, standard deviation and maximum latency that wrk printed. The file has no percentiles. Pipelined
 * tests are omitted, because their latencies are meaningless.
 */
function latencies({ test, byName }: Cells): LatencyDocument {
  const cells = [...byName].flatMap(([implementation, all]) =>
    all.flatMap((cell): CellLatency[] =>
      cell && cell.load.depth === 1 && cell.latency.mean !== null && cell.latency.mean > 0
        ? [
            {
              implementation,
              load: cell.load,
              basis: "closed loop, as wrk printed it",
              percentiles: {},
              spread: {},
              ...cell.latency,
              trials: 1,
            },
          ]
        : [],
    ),
  );
  return { test_type: test, cells };
}

function cellAt(cells: Cells, name: string, index: number): Cell | null {
  return cells.byName.get(name)?.[index] ?? null;
}

function best(cells: Cells, name: string): Cell | null {
  const measured = (cells.byName.get(name) ?? []).filter((cell) => cell !== null);
  return measured.reduce<Cell | null>((top, cell) => (!top || cell.throughput > top.throughput ? cell : top), null);
}

function table(
  test: string,
  load: ClosedLoop | null,
  names: string[],
  cell: (name: string) => Cell | null,
  reasons: Map<string, string>,
): Table {
  const measured = names
    .map((name) => ({ name, cell: cell(name) }))
    .filter((entry): entry is { name: string; cell: Cell } => entry.cell !== null && entry.cell.throughput > 0)
    .sort((a, b) => b.cell.throughput - a.cell.throughput);
  const top = measured[0]?.cell.throughput ?? 1;
  const ranked = measured.map((entry, index): Row => ({
    ...emptyRow(entry.name),
    load: entry.cell.load,
    throughput: standing(entry.cell.throughput, index + 1, top),
    errors: entry.cell.errors,
    flags: [SINGLE_MEASUREMENT],
    trials: 1,
  }));
  const present = new Set(ranked.map((row) => row.implementation));
  const missing = names
    .filter((name) => !present.has(name))
    .map((name): Row => ({ ...emptyRow(name), ranked: false, reason: reasons.get(name) ?? "missing" }));
  return {
    test_type: test,
    load,
    rows: [...ranked, ...missing],
  };
}

function emptyRow(implementation: string): Row {
  return {
    implementation,
    load: null,
    throughput: null,
    cpu_per_request: null,
    rss_peak: null,
    response_time: null,
    throughput_per_memory: null,
    threads: null,
    cpu_to_floor: null,
    startup_time: null,
    latency: null,
    errors: 0,
    flags: [],
    ranked: true,
    reason: "",
    trials: 0,
    dropped: 0,
    checks: 0,
    responses_checked: 0,
  };
}

function standing(value: number, position: number, top: number): Standing {
  const estimate: Estimate = { median: value, low: null, high: null, processes: 1, values: [value] };
  return {
    estimate,
    position,
    rank: { low: position, high: position },
    tie_group: position,
    to_reference: null,
    to_best: { value: value / top, low: null, high: null },
  };
}

function testLoadList(test: string, file: Raw, data: Raw): ClosedLoop[] {
  const trialCount = Math.max(0, ...Object.values(data).map((trials) => (Array.isArray(trials) ? trials.length : 0)));
  const at = (key: string): number[] => numbers(file[key]);
  const sweeps = at("concurrencyLevels");
  const highest = Math.max(1, ...sweeps);
  const load = (connections: number, queries: number | null = null, depth = 1): ClosedLoop => ({
    kind: "closed",
    connections,
    queries,
    depth,
    close_after: null,
  });
  const queries = (counts: number[]): ClosedLoop[] => counts.map((count) => load(highest, count));
  const sweep: ClosedLoop[] =
    test === "query" || test === "update"
      ? queries(at("queryIntervals"))
      : test === "cached-query"
        ? queries(at("cachedQueryIntervals"))
        : test === "plaintext"
          ? at("pipelineConcurrencyLevels").map((count) => load(count, null, 16))
          : sweeps.map((count) => load(count));
  // If the file has more trials than declared loads, use a trial's position as the number of connections.
  for (let index = sweep.length; index < trialCount; index++) sweep.push(load(index + 1));
  return sweep;
}

function implementationInfo(name: string, metadata: unknown, data: Raw, failed: Raw): ImplementationInfo {
  const facts = record(Array.isArray(metadata) ? metadata.find((item) => record(item).name === name) : undefined);
  const tests = Object.keys(data).filter(
    (test) => Object.hasOwn(record(data[test]), name) || strings(failed[test]).includes(name),
  );
  return {
    name,
    framework: text(facts.framework) || name,
    project: text(facts.project_name),
    language: text(facts.language),
    folder: "",
    display_name: text(facts.display_name) || name,
    approach: text(facts.approach),
    classification: text(facts.classification),
    platform: text(facts.platform),
    webserver: text(facts.webserver),
    http_server: "",
    concurrency: "",
    database_driver: "",
    json_library: "",
    template_engine: "",
    database: text(facts.database),
    orm: text(facts.orm),
    os: text(facts.os),
    database_os: text(facts.database_os),
    flavor: text(facts.flavor),
    notes: text(facts.notes),
    versus: text(facts.versus),
    tags: strings(facts.tags),
    maintainers: [],
    test_types: tests,
    digest: "",
    rules: "techempower",
    allowed: [],
    build: null,
  };
}

const UNKNOWN_MACHINE: Embedded["document"]["run"]["machine"] = {
  hostname: "unknown",
  os: "unknown",
  kernel: "unknown",
  cpu_model: "unknown",
  cpus_online: 0,
  cpus_usable: [],
  memory_bytes: 0,
  governor: null,
  turbo: null,
  smt: null,
  virtualised: null,
  nofile_soft: null,
  nofile_hard: null,
  load_average: null,
  pressure_cpu: null,
  steal_share: null,
  cpu_quota: null,
  grade: "",
  concerns: [],
};
