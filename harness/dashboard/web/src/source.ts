// Sources of documents: the dashboard's server, the saved file that contains the page, or a TechEmpower results file.
import type {
  CellDocument,
  ClaimsDocument,
  ComparisonDocument,
  Embedded,
  LatencyDocument,
  LiveDocument,
  LogDocument,
  OverallDocument,
  RunDocument,
  RunList,
  Score,
  TestDocument,
} from "./documents";
import { rebase, rebaseTable } from "./baseline";
import { scoredTests } from "./scores";
import { convert } from "./techempower/convert";

/**
 * A source of documents about runs. Failed methods reject with an Error whose message is shown to the user. If
 * `baseline` is empty, ratios refer to the run's baseline.
 */
export interface Source {
  readonly offline: boolean;
  runs(): Promise<RunList>;
  run(id: string, baseline?: string): Promise<RunDocument>;
  test(id: string, testType: string, baseline?: string): Promise<TestDocument>;
  latency(id: string, testType: string): Promise<LatencyDocument>;
  cell(id: string, implementation: string, testType: string): Promise<CellDocument>;
  log(id: string, path: string): Promise<LogDocument>;
  /** Return the latest verdict on each claim. */
  claims(): Promise<ClaimsDocument>;
  /** Return the scores that harness/stats computed over exactly these test types, or null if there are none. */
  overall(id: string, testTypes: readonly string[], baseline?: string): Promise<readonly Score[] | null>;
  /** Return the comparison of two runs. */
  compare(before: string, after: string): Promise<ComparisonDocument>;
  /** Return the state of a run in progress. */
  live(id: string): Promise<LiveDocument>;
  /** Discard the cached documents of a run. */
  forget(id: string): void;
}

/** A source with all documents of a single run in memory. */
export class EmbeddedSource implements Source {
  readonly offline = true;

  constructor(private readonly content: Embedded) {}

  get id(): string {
    return this.content.document.run.run_id;
  }

  get leftOut(): string[] {
    return this.content.left_out;
  }

  get links(): [title: string, address: string][] {
    return Object.entries(this.content.links);
  }

  async runs(): Promise<RunList> {
    throw new Error("a saved file contains only one run");
  }

  async run(_id?: string, baseline = ""): Promise<RunDocument> {
    return baseline ? rebase(this.content.document, baseline) : this.content.document;
  }

  async test(_id: string, testType: string, baseline = ""): Promise<TestDocument> {
    const test = ownValue(this.content.tests, testType) ?? { test_type: testType, tables: [], problems: [] };
    return baseline ? { ...test, tables: test.tables.map((table) => rebaseTable(table, baseline)) } : test;
  }

  async latency(_id: string, testType: string): Promise<LatencyDocument> {
    return ownValue(this.content.latency, testType) ?? { test_type: testType, cells: [] };
  }

  async cell(_id: string, implementation: string, testType: string): Promise<CellDocument> {
    const match = this.content.cells.find(
      (cell) => cell.implementation === implementation && cell.test_type === testType,
    );
    return match ?? { implementation, test_type: testType, trials: [], verdicts: [], processes: [], problems: [] };
  }

  async log(_id: string, path: string): Promise<LogDocument> {
    const log = ownValue(this.content.logs, path);
    if (!log) throw new Error(`this file does not contain ${path}`);
    return log;
  }

  async claims(): Promise<ClaimsDocument> {
    return { verdicts: [], problem: "" };
  }

  async overall(id: string, testTypes: readonly string[], baseline = ""): Promise<readonly Score[] | null> {
    return scoresFor(await this.run(id, baseline), testTypes);
  }

  async compare(): Promise<ComparisonDocument> {
    throw new Error("a saved file contains a single run, so there is nothing to compare it with");
  }

  async live(): Promise<LiveDocument> {
    throw new Error("a saved run has ended");
  }

  forget(): void {}
}

/** A source that fetches documents from the dashboard's server, caches them, and converts TechEmpower files. */
export class ServerSource implements Source {
  readonly offline = false;
  private readonly cache = new Map<string, Promise<unknown>>();
  private readonly opened = new Map<string, EmbeddedSource>();

  /** Convert a TechEmpower file that was dropped on the page, and return the run id. */
  open(name: string, text: string): string {
    const id = `local:${this.opened.size + 1}-${name}`;
    this.opened.set(id, new EmbeddedSource(convert(JSON.parse(text), id)));
    return id;
  }

  runs(): Promise<RunList> {
    return this.get("api/runs", false);
  }

  async run(id: string, baseline = ""): Promise<RunDocument> {
    const file = this.file(id);
    return file ? file.run(id, baseline) : this.get(`api/runs/${encodeURIComponent(id)}${baselineQuery(baseline)}`);
  }

  async test(id: string, testType: string, baseline = ""): Promise<TestDocument> {
    const file = this.file(id);
    const path = `api/runs/${encodeURIComponent(id)}/tests/${encodeURIComponent(testType)}`;
    return file ? file.test(id, testType, baseline) : this.get(`${path}${baselineQuery(baseline)}`);
  }

  async latency(id: string, testType: string): Promise<LatencyDocument> {
    const file = this.file(id);
    return file
      ? file.latency(id, testType)
      : this.get(`api/runs/${encodeURIComponent(id)}/latency/${encodeURIComponent(testType)}`);
  }

  async cell(id: string, implementation: string, testType: string): Promise<CellDocument> {
    const file = this.file(id);
    if (file) return file.cell(id, implementation, testType);
    const query = new URLSearchParams({ implementation, test_type: testType });
    return this.get(`api/runs/${encodeURIComponent(id)}/cell?${query}`, false);
  }

  async log(id: string, path: string): Promise<LogDocument> {
    return this.get(`api/runs/${encodeURIComponent(id)}/log?${new URLSearchParams({ path })}`, false);
  }

  claims(): Promise<ClaimsDocument> {
    return this.get("api/claims", false);
  }

  async overall(id: string, testTypes: readonly string[], baseline = ""): Promise<readonly Score[] | null> {
    const file = this.file(id);
    if (file) return file.overall(id, testTypes, baseline);
    const run = await this.run(id, baseline);
    const local = scoresFor(run, testTypes);
    if (local) return local;
    const query = new URLSearchParams(testTypes.map((test) => ["test_type", test]));
    if (baseline) query.append("baseline", baseline);
    const response = await this.get<OverallDocument>(`api/runs/${encodeURIComponent(id)}/overall?${query}`);
    return response.scores;
  }

  compare(before: string, after: string): Promise<ComparisonDocument> {
    return this.get(`api/compare?${new URLSearchParams({ a: before, b: after })}`);
  }

  live(id: string): Promise<LiveDocument> {
    return this.get(`api/runs/${encodeURIComponent(id)}/live`, false);
  }

  forget(id: string): void {
    const prefix = `api/runs/${encodeURIComponent(id)}`;
    for (const key of this.cache.keys()) {
      const isOfRun = key === prefix || key.startsWith(`${prefix}/`) || key.startsWith(`${prefix}?`);
      if (isOfRun || key.startsWith("api/compare")) this.cache.delete(key);
    }
  }

  /** Return the dropped TechEmpower file with this run id, or undefined if the run is on the server. */
  private file(id: string): EmbeddedSource | undefined {
    const file = this.opened.get(id);
    if (!file && id.startsWith("local:")) throw new Error("This file was opened on another page. Drop it here again.");
    return file;
  }

  private get<Document>(url: string, keep = true): Promise<Document> {
    const cached = keep ? this.cache.get(url) : undefined;
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- the cached value is the response from this URL
    if (cached) return cached as Promise<Document>;
    const promise = fetchJson<Document>(url);
    if (keep) {
      this.cache.set(url, promise);
      promise.catch(() => this.cache.delete(url));
    }
    return promise;
  }
}

function baselineQuery(baseline: string): string {
  return baseline ? `?${new URLSearchParams({ baseline })}` : "";
}

/** Parse a document from the dashboard's server. The structure is not checked, because the server is trusted. */
function parseServed<Document>(text: string): Document {
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- the server's models define the types
  return JSON.parse(text) as Document;
}

async function fetchJson<Document>(url: string): Promise<Document> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch {
    throw new Error("The dashboard's server does not respond. Check that it is still running.");
  }
  const text = await response.text();
  if (!response.ok) throw new Error(errorIn(text) ?? `The server responded with status ${response.status}.`);
  return parseServed<Document>(text);
}

function errorIn(text: string): string | null {
  try {
    const body: unknown = JSON.parse(text);
    return body && typeof body === "object" && "error" in body ? String(body.error) : null;
  } catch {
    return null;
  }
}

/** Return an object's own property or undefined. Unlike plain access, it is safe with keys such as `__proto__`. */
function ownValue<Value>(values: Readonly<Record<string, Value>> | undefined, key: string): Value | undefined {
  return values && Object.hasOwn(values, key) ? values[key] : undefined;
}

/** Return the scores in the run's ranking if they cover exactly these test types, or else null. */
export function scoresFor({ ranking }: RunDocument, testTypes: readonly string[]): readonly Score[] | null {
  const candidates = [ranking.overall, ...Object.values(ranking.groups)];
  return (
    candidates.find((scores) => {
      const scored = scoredTests(scores);
      return scored.size === testTypes.length && testTypes.every((test) => scored.has(test));
    }) ?? null
  );
}

/** Return the run that this page embeds as gzipped base64, or null if a server serves the page. */
export async function embedded(page: Document): Promise<EmbeddedSource | null> {
  const element = page.getElementById("run-data");
  if (!element?.textContent) return null;
  const compressed = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new EmbeddedSource(parseServed<Embedded>(await new Response(stream).text()));
}
