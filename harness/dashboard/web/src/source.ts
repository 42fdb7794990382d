// Where documents come from: the dashboard's server, the file that this page was saved in, or a TechEmpower results file.
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
import { convert } from "./techempower/convert";

/** The documents of the runs that can be shown. Every method rejects with an Error that says what is wrong. */
export interface Source {
  readonly offline: boolean;
  runs(): Promise<RunList>;
  run(id: string): Promise<RunDocument>;
  test(id: string, testType: string): Promise<TestDocument>;
  latency(id: string, testType: string): Promise<LatencyDocument>;
  cell(id: string, implementation: string, testType: string): Promise<CellDocument>;
  log(id: string, path: string): Promise<LogDocument>;
  /** The last verdict on every claim. */
  claims(): Promise<ClaimsDocument>;
  /** Scores with intervals and ranks over these test types; null where this source has none. */
  overall(id: string, testTypes: readonly string[]): Promise<readonly Score[] | null>;
  /** The second run over the first. */
  compare(before: string, after: string): Promise<ComparisonDocument>;
  /** Where a run in progress stands. */
  live(id: string): Promise<LiveDocument>;
  /** Forget what was fetched of a run. */
  forget(id: string): void;
}

/** Everything of one run, in memory. */
export class EmbeddedSource implements Source {
  readonly offline = true;

  constructor(private readonly all: Embedded) {}

  get id(): string {
    return this.all.document.run.run_id;
  }

  get leftOut(): string[] {
    return this.all.left_out;
  }

  async runs(): Promise<RunList> {
    throw new Error("a saved run stands alone");
  }

  async run(): Promise<RunDocument> {
    return this.all.document;
  }

  async test(_id: string, testType: string): Promise<TestDocument> {
    return own(this.all.tests, testType) ?? { test_type: testType, tables: [], verdicts: [], problems: [] };
  }

  async latency(_id: string, testType: string): Promise<LatencyDocument> {
    return own(this.all.latency, testType) ?? { test_type: testType, cells: [] };
  }

  async cell(_id: string, implementation: string, testType: string): Promise<CellDocument> {
    const found = this.all.cells.find((cell) => cell.implementation === implementation && cell.test_type === testType);
    return found ?? { implementation, test_type: testType, trials: [], verdicts: [], processes: [], problems: [] };
  }

  async log(_id: string, path: string): Promise<LogDocument> {
    const log = own(this.all.logs, path);
    if (!log) throw new Error(`${path} is not in this file`);
    return log;
  }

  async claims(): Promise<ClaimsDocument> {
    return { verdicts: [], problem: "" };
  }

  async overall(_id: string, testTypes: readonly string[]): Promise<readonly Score[] | null> {
    return scoresOver(this.all.document, testTypes);
  }

  async compare(): Promise<ComparisonDocument> {
    throw new Error("a saved run has no other to compare with");
  }

  async live(): Promise<LiveDocument> {
    throw new Error("a saved run has ended");
  }

  forget(): void {}
}

/** The dashboard's server. Documents are kept; TechEmpower files are converted here. */
export class ServerSource implements Source {
  readonly offline = false;
  private readonly kept = new Map<string, Promise<unknown>>();
  private readonly opened = new Map<string, EmbeddedSource>();

  /** Show a TechEmpower file that was dropped on the page; answers the id to show it under. */
  open(name: string, text: string): string {
    const id = `local:${this.opened.size + 1}-${name}`;
    this.opened.set(id, new EmbeddedSource(convert(JSON.parse(text), id)));
    return id;
  }

  runs(): Promise<RunList> {
    return this.get("api/runs", false);
  }

  async run(id: string): Promise<RunDocument> {
    return this.file(id)?.run() ?? this.get<RunDocument>(`api/runs/${encodeURIComponent(id)}`);
  }

  async test(id: string, testType: string): Promise<TestDocument> {
    const file = this.file(id);
    return file
      ? file.test(id, testType)
      : this.get(`api/runs/${encodeURIComponent(id)}/tests/${encodeURIComponent(testType)}`);
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

  async overall(id: string, testTypes: readonly string[]): Promise<readonly Score[] | null> {
    const file = this.file(id);
    if (file) return file.overall(id, testTypes);
    const whole = await this.run(id);
    const all = scoresOver(whole, testTypes);
    if (all) return all;
    const query = new URLSearchParams(testTypes.map((test) => ["test_type", test]));
    const found = await this.get<OverallDocument>(`api/runs/${encodeURIComponent(id)}/overall?${query}`);
    return found.scores;
  }

  compare(before: string, after: string): Promise<ComparisonDocument> {
    return this.get(`api/compare?${new URLSearchParams({ a: before, b: after })}`);
  }

  live(id: string): Promise<LiveDocument> {
    return this.get(`api/runs/${encodeURIComponent(id)}/live`, false);
  }

  forget(id: string): void {
    const prefix = `api/runs/${encodeURIComponent(id)}`;
    for (const key of this.kept.keys())
      if (key === prefix || key.startsWith(`${prefix}/`) || key.startsWith("api/compare")) this.kept.delete(key);
  }

  /** A TechEmpower file that was dropped here. */
  private file(id: string): EmbeddedSource | undefined {
    const known = this.opened.get(id);
    if (!known && id.startsWith("local:"))
      throw new Error("This file was dropped on another page: drop it here again.");
    return known;
  }

  private get<Document>(url: string, keep = true): Promise<Document> {
    const kept = keep ? this.kept.get(url) : undefined;
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- what is kept under an address is what it answered
    if (kept) return kept as Promise<Document>;
    const promise = fetchJson<Document>(url);
    if (keep) {
      this.kept.set(url, promise);
      promise.catch(() => this.kept.delete(url));
    }
    return promise;
  }
}

/** A document of this project's own server, whose models the types are made from: the one place that trusts it. */
function served<Document>(text: string): Document {
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- as above
  return JSON.parse(text) as Document;
}

async function fetchJson<Document>(url: string): Promise<Document> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch {
    throw new Error("The dashboard's server does not answer: is it still running?");
  }
  const text = await response.text();
  if (!response.ok) throw new Error(complaintOf(text) ?? `The server answered ${response.status}.`);
  return served<Document>(text);
}

function complaintOf(text: string): string | null {
  try {
    const body: unknown = JSON.parse(text);
    return body && typeof body === "object" && "error" in body ? String(body.error) : null;
  } catch {
    return null;
  }
}

/** A value of an object by its own key: names of implementations may be anything, __proto__ too. */
function own<Value>(values: Readonly<Record<string, Value>> | undefined, key: string): Value | undefined {
  return values && Object.hasOwn(values, key) ? values[key] : undefined;
}

/** The run's own scores, when these are the test types that they are over. */
export function scoresOver({ ranking }: RunDocument, testTypes: readonly string[]): readonly Score[] | null {
  const scored = new Set(ranking.overall.flatMap((score) => Object.keys(score.ratios)));
  return scored.size === testTypes.length && testTypes.every((test) => scored.has(test)) ? ranking.overall : null;
}

/** The run that this page was saved with, or null on a served page: gzip in base64 in a script element of type data. */
export async function embedded(page: Document): Promise<EmbeddedSource | null> {
  const element = page.getElementById("run-data");
  if (!element?.textContent) return null;
  const compressed = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new EmbeddedSource(served<Embedded>(await new Response(stream).text()));
}
