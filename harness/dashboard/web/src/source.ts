// Where documents come from: the dashboard's server, the file that this page was saved in, or a TechEmpower results file.
import type {
  CellDocument,
  Embedded,
  HistoryDocument,
  LatencyDocument,
  LiveEvent,
  LogDocument,
  RunDocument,
  RunList,
  TestDocument,
} from "./documents";
import { convert } from "./techempower";

/** The documents of the runs that can be shown. Every method rejects with an Error that says what is wrong. */
export interface Source {
  readonly offline: boolean;
  runs(): Promise<RunList>;
  run(id: string): Promise<RunDocument>;
  test(id: string, testType: string): Promise<TestDocument>;
  latency(id: string, testType: string): Promise<LatencyDocument>;
  cell(id: string, implementation: string, testType: string): Promise<CellDocument>;
  log(id: string, path: string): Promise<LogDocument>;
  history(implementation: string): Promise<HistoryDocument>;
  /** Events of a run in progress until the returned function is called; null where there are none. */
  watch(id: string, onEvent: (event: LiveEvent) => void, onState: (connected: boolean) => void): (() => void) | null;
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
    const { run, problems, ranking } = this.all.document;
    return {
      runs: [
        {
          run_id: run.run_id,
          name: run.name,
          environment: run.environment,
          status: run.status,
          profile: run.profile,
          started_at: run.started_at,
          completed_at: run.completed_at,
          implementations: run.implementations.map((info) => info.name),
          test_types: Object.keys(ranking.test_types),
          machine: `${run.machine.cpu_model}, ${run.machine.cpus_online} CPUs`,
          grade: run.machine.grade,
          problems,
        },
      ],
      broken: [],
      files: [],
    };
  }

  async run(): Promise<RunDocument> {
    return this.all.document;
  }

  async test(_id: string, testType: string): Promise<TestDocument> {
    return this.all.tests[testType] ?? { test_type: testType, levels: [], verdicts: [], problems: [] };
  }

  async latency(_id: string, testType: string): Promise<LatencyDocument> {
    return this.all.latency[testType] ?? { test_type: testType, cells: [] };
  }

  async cell(_id: string, implementation: string, testType: string): Promise<CellDocument> {
    const found = this.all.cells.find((cell) => cell.implementation === implementation && cell.test_type === testType);
    return found ?? { implementation, test_type: testType, samples: [], verdicts: [], replicates: [], problems: [] };
  }

  async log(_id: string, path: string): Promise<LogDocument> {
    const log = Object.hasOwn(this.all.logs, path) ? this.all.logs[path] : undefined;
    if (!log) throw new Error(`${path} is not in this file`);
    return log;
  }

  async history(implementation: string): Promise<HistoryDocument> {
    return { implementation, points: [] };
  }

  watch(): null {
    return null;
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
    const id = `local:${name}`;
    this.opened.set(id, new EmbeddedSource(convert(JSON.parse(text) as unknown, id)));
    return id;
  }

  runs(): Promise<RunList> {
    return this.get("api/runs", false);
  }

  async run(id: string): Promise<RunDocument> {
    return (await this.file(id))?.run() ?? this.get(`api/runs/${encodeURIComponent(id)}`);
  }

  async test(id: string, testType: string): Promise<TestDocument> {
    const file = await this.file(id);
    return file
      ? file.test(id, testType)
      : this.get(`api/runs/${encodeURIComponent(id)}/tests/${encodeURIComponent(testType)}`);
  }

  async latency(id: string, testType: string): Promise<LatencyDocument> {
    const file = await this.file(id);
    return file
      ? file.latency(id, testType)
      : this.get(`api/runs/${encodeURIComponent(id)}/latency/${encodeURIComponent(testType)}`);
  }

  async cell(id: string, implementation: string, testType: string): Promise<CellDocument> {
    const file = await this.file(id);
    if (file) return file.cell(id, implementation, testType);
    const query = new URLSearchParams({ implementation, test_type: testType });
    return this.get(`api/runs/${encodeURIComponent(id)}/cell?${query}`, false);
  }

  async log(id: string, path: string): Promise<LogDocument> {
    return this.get(`api/runs/${encodeURIComponent(id)}/log?${new URLSearchParams({ path })}`, false);
  }

  history(implementation: string): Promise<HistoryDocument> {
    return this.get(`api/history?${new URLSearchParams({ implementation })}`, false);
  }

  watch(id: string, onEvent: (event: LiveEvent) => void, onState: (connected: boolean) => void): () => void {
    const events = new EventSource(`api/runs/${encodeURIComponent(id)}/events`);
    events.addEventListener("open", () => onState(true));
    events.addEventListener("error", () => onState(false));
    events.addEventListener("live", (event) => onEvent(JSON.parse((event as MessageEvent<string>).data) as LiveEvent));
    events.addEventListener("end", (event) => {
      events.close();
      onEvent(JSON.parse((event as MessageEvent<string>).data) as LiveEvent);
    });
    return () => events.close();
  }

  forget(id: string): void {
    const prefix = `api/runs/${encodeURIComponent(id)}`;
    for (const key of this.kept.keys()) if (key === prefix || key.startsWith(`${prefix}/`)) this.kept.delete(key);
  }

  /** A TechEmpower file: one that was dropped here, or one that the server was started with. */
  private async file(id: string): Promise<EmbeddedSource | null> {
    const known = this.opened.get(id);
    if (known) return known;
    if (id.startsWith("local:")) throw new Error("This file was dropped on another page: drop it here again.");
    if (!id.startsWith("file:")) return null;
    const raw = await this.get<unknown>(`api/files/${encodeURIComponent(id.slice("file:".length))}`);
    const source = new EmbeddedSource(convert(raw, id));
    this.opened.set(id, source);
    return source;
  }

  private get<Document>(url: string, keep = true): Promise<Document> {
    const kept = keep ? this.kept.get(url) : undefined;
    if (kept) return kept as Promise<Document>;
    const promise = fetchJson<Document>(url);
    if (keep) {
      this.kept.set(url, promise);
      promise.catch(() => this.kept.delete(url));
    }
    return promise;
  }
}

async function fetchJson<Document>(url: string): Promise<Document> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch {
    throw new Error("The dashboard's server does not answer: is it still running?");
  }
  const body = (await response.json().catch(() => ({}))) as { error?: string };
  if (!response.ok) throw new Error(body.error ?? `The server answered ${response.status}.`);
  return body as Document;
}

/** The run that this page was saved with, or null on a served page: gzip in base64 in a script element of type data. */
export async function embedded(page: Document): Promise<EmbeddedSource | null> {
  const element = page.getElementById("run-data");
  if (!element?.textContent) return null;
  const compressed = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new EmbeddedSource((await new Response(stream).json()) as Embedded);
}
