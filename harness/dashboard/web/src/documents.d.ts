// Generated from the Python models by scripts/types.mjs: `npm run types`. Do not edit.

/**
 * Outcome of a check. A failure excludes the trial or the implementation from the ranking.
 */
export type Outcome = "pass" | "warn" | "fail";

export interface Documents {
  RunSummary?: RunSummary;
  BrokenRun?: BrokenRun;
  PreparingRun?: PreparingRun;
  RunList?: RunList;
  RunDocument?: RunDocument;
  CellLatency?: CellLatency;
  TestDocument?: TestDocument;
  LatencyDocument?: LatencyDocument;
  OverallDocument?: OverallDocument;
  ComparisonDocument?: ComparisonDocument;
  CellDocument?: CellDocument;
  ClaimsDocument?: ClaimsDocument;
  LogDocument?: LogDocument;
  LiveDocument?: LiveDocument;
  Embedded?: Embedded;
}
/**
 * An entry in the list of runs.
 */
export interface RunSummary {
  run_id: string;
  title: string;
  published: string;
  lead: string;
  status: "running" | "complete" | "incomplete" | "failed" | "interrupted";
  profile: string;
  started_at: number;
  completed_at: number | null;
  implementations: string[];
  test_types: string[];
  machine: string;
  grade: string;
  problems: ReadProblem[];
}
/**
 * A problem with a file of a run, for example an unreadable line.
 */
export interface ReadProblem {
  file: string;
  message: string;
}
/**
 * A folder in results/ with an unreadable run.json.
 */
export interface BrokenRun {
  run_id: string;
  file: string;
  message: string;
}
/**
 * A run that has started, but has not yet written run.json.
 */
export interface PreparingRun {
  run_id: string;
  stage: string;
  elapsed: number;
  silent_for: number | null;
}
/**
 * The user's runs, newest first, then the published runs. Also lists the folders that could not be read.
 */
export interface RunList {
  runs: RunSummary[];
  preparing: PreparingRun[];
  broken: BrokenRun[];
  views: {
    [k: string]: string;
  };
}
/**
 * The main document about a run, with the run's settings and the main table of each test type.
 */
export interface RunDocument {
  run: RunInfo;
  title: string;
  published: string;
  sentences: {
    [k: string]: {
      [k: string]: string[];
    };
  };
  ranking: Ranking;
  problems: ReadProblem[];
  source_base: string | null;
  network_path: string;
}
/**
 * Settings, machine, implementations and status of a run.
 */
export interface RunInfo {
  schema_version: number;
  run_id: string;
  name: string;
  environment: string;
  status: "running" | "complete" | "incomplete" | "failed" | "interrupted";
  started_at: number;
  completed_at: number | null;
  command: string[];
  profile: string;
  runtime: string;
  design: string;
  generator: string;
  seed: number;
  settings: {
    [k: string]: unknown;
  };
  reference: string | null;
  machine: Machine;
  tools: {
    [k: string]: string;
  };
  revision: string | null;
  dirty: boolean | null;
  implementations: ImplementationInfo[];
  loads: {
    [k: string]: (ClosedLoop | OpenLoop | Scenario)[];
  };
  cells: {
    [k: string]: {
      [k: string]: (ClosedLoop | OpenLoop | Scenario)[];
    };
  };
  processes_expected: number;
  processes_maximum: number;
  noise_floor: NoiseFloor | null;
  problems: string[];
  sets: MachineSet[];
  part: Part | null;
  left_out: string[];
  machines: RoleMachine[];
  links: MachineLink[];
}
/**
 * A machine's properties, and a grade for its suitability for measurements.
 */
export interface Machine {
  hostname: string;
  os: string;
  kernel: string;
  cpu_model: string;
  cpus_online: number;
  cpus_usable: number[];
  memory_bytes: number;
  governor: string | null;
  turbo: boolean | null;
  smt: boolean | null;
  virtualised: string | null;
  nofile_soft: number | null;
  nofile_hard: number | null;
  load_average: number | null;
  pressure_cpu: number | null;
  steal_share: number | null;
  cpu_quota: number | null;
  grade: string;
  concerns: string[];
}
/**
 * An implementation as described by benchmark_config.json, and the result of the build.
 */
export interface ImplementationInfo {
  name: string;
  framework: string;
  project: string;
  language: string;
  folder: string;
  display_name: string;
  approach: string;
  classification: string;
  platform: string;
  webserver: string;
  http_server: string;
  concurrency: string;
  database_driver: string;
  json_library: string;
  template_engine: string;
  database: string;
  orm: string;
  os: string;
  database_os: string;
  flavor: string;
  notes: string;
  versus: string;
  tags: string[];
  maintainers: string[];
  test_types: string[];
  digest: string;
  rules: string;
  allowed: string[];
  build: BuildRecord | null;
}
/**
 * The result of building an implementation.
 */
export interface BuildRecord {
  status: "ok" | "failed" | "skipped";
  reason: string;
  duration: number | null;
  log: string | null;
  commands: string[];
  tools: {
    [k: string]: string;
  };
  image: string | null;
  image_digest: string | null;
  image_bytes: number | null;
  stand_ins: string[];
}
/**
 * A closed loop: each connection keeps ``depth`` requests outstanding, and sends the next after a response.
 */
export interface ClosedLoop {
  kind: "closed";
  connections: number;
  queries: number | null;
  depth: number;
  close_after: number | null;
}
/**
 * An open loop: requests are due at random times (Poisson), at a fixed mean rate, regardless of earlier responses.
 *
 * Latency is measured from the intended send time.
 */
export interface OpenLoop {
  kind: "open";
  rate: number;
  connections: number;
  queries: number | null;
  depth: 1;
}
/**
 * A scenario: customers arrive at random times (Poisson), at ``factor`` times the base rates of the use cases.
 *
 * Each customer carries out a use case, which is a sequence of dependent requests.
 */
export interface Scenario {
  kind: "scenario";
  factor: number;
  connections: number;
  queries: null;
  depth: 1;
}
/**
 * The difference between two copies of the same implementation, as measured by ``compare --copy``.
 *
 * The noise floor depends on the machine and the profile. Comparisons report no differences below the noise floor.
 */
export interface NoiseFloor {
  implementation: string;
  profile: string;
  measured_at: number;
  pairs: number;
  throughput: number;
  cpu_per_request: number;
}
/**
 * A deployment or part that contributed processes to a merged run, and the server's machine.
 */
export interface MachineSet {
  name: string;
  machine: Machine;
  runs: string[];
  processes: number[];
}
/**
 * A part of a selection of implementations. All parts share the baseline, but no other implementation.
 */
export interface Part {
  number: number;
  count: number;
  selection: string[];
}
/**
 * A machine and its role in a run on several machines.
 */
export interface RoleMachine {
  role: string;
  name: string;
  address: string;
  engine: string;
  machine: Machine;
}
/**
 * The network link between two machines, measured over TCP before the run.
 */
export interface MachineLink {
  of: string;
  to: string;
  round_trip: number;
  throughput: number;
}
/**
 * The ranking of a run, which is the content of ranking.json.
 */
export interface Ranking {
  run_id: string;
  scoring_version: number;
  reference: string | null;
  confidence: number;
  leading: "cpu" | "throughput";
  test_types: {
    [k: string]: TestTypeRanking;
  };
  overall: Score[];
  groups: {
    [k: string]: Score[];
  };
  latency: {
    [k: string]: LatencyTable;
  };
  orders: ScenarioResults | null;
  noise_floor: NoiseFloor | null;
  notes: string[];
}
/**
 * All tables of a test type.
 */
export interface TestTypeRanking {
  test_type: string;
  group: string;
  headline: Table;
  tables: Table[];
}
/**
 * The ranking of a test type at a load, or at the best load of each implementation if ``load`` is None.
 */
export interface Table {
  test_type: string;
  load: (ClosedLoop | OpenLoop | Scenario) | null;
  rows: Row[];
}
/**
 * A row of a ranking table, with the results of an implementation.
 */
export interface Row {
  implementation: string;
  load: (ClosedLoop | OpenLoop | Scenario) | null;
  throughput: Standing | null;
  cpu_per_request: Standing | null;
  rss_peak: number | null;
  startup_time: number | null;
  errors: number;
  flags: string[];
  ranked: boolean;
  reason: string;
  trials: number;
  dropped: number;
  checks: number;
  responses_checked: number;
  latency: ClosedLoopLatency | null;
  response_time: number | null;
  throughput_per_memory: number | null;
  threads: number | null;
  cpu_to_floor: number | null;
}
/**
 * A row's estimate, rank and tie group. Tie groups are numbered from 1, best first.
 */
export interface Standing {
  estimate: Estimate;
  position: number;
  rank: RankInterval;
  tie_group: number;
  to_reference: Ratio | null;
  to_best: Ratio | null;
}
/**
 * The median of a metric over processes, with a confidence interval.
 */
export interface Estimate {
  median: number;
  low: number | null;
  high: number | null;
  processes: number;
  values: number[];
}
/**
 * The ranks that the data does not exclude, from ``low`` (the best) to ``high`` (the worst), 1-based.
 */
export interface RankInterval {
  low: number;
  high: number;
}
/**
 * A ratio of geometric means over common rounds, with a 95 % interval, for example ``1.12x [1.08, 1.17]``.
 */
export interface Ratio {
  value: number;
  low: number | null;
  high: number | null;
}
/**
 * Latency of a closed loop at the row's load, in seconds.
 */
export interface ClosedLoopLatency {
  mean: Estimate;
  percentiles: {
    [k: string]: Estimate;
  };
  maximum: number;
}
/**
 * The geometric mean of ratios to the baseline over the scored test types; higher is better.
 *
 * ``throughput`` compares the implementation's requests/s with the baseline's. ``cpu`` divides the baseline's CPU per
 * request by the implementation's.
 */
export interface Score {
  implementation: string;
  throughput: Standing | null;
  cpu: Standing | null;
  ratios: {
    [k: string]: number;
  };
  missing: string[];
}
/**
 * A test type's ranking by capacity at a latency goal.
 */
export interface LatencyTable {
  test_type: string;
  goal: LatencyGoal;
  rows: GoalRow[];
}
/**
 * The largest acceptable latency at a percentile: ``p99=10ms`` limits the 99th percentile to 0.01 s.
 */
export interface LatencyGoal {
  percentile: number;
  seconds: number;
}
/**
 * An implementation's capacity at the latency goal, and the latency at several rates.
 */
export interface GoalRow {
  implementation: string;
  capacity: Standing | null;
  above: number | null;
  closed_loop: number | null;
  ranked: boolean;
  reason: string;
  flags: string[];
  points: RatePoint[];
}
/**
 * An implementation's latency in an open loop at a given rate.
 */
export interface RatePoint {
  purpose: "share" | "common";
  share: number | null;
  rate: number;
  percentiles: {
    [k: string]: Estimate;
  };
  maximum: number | null;
  flags: string[];
}
/**
 * Results of a scenario: tables by factor, capacities at the latency goal, and response times of all operations.
 */
export interface ScenarioResults {
  tables: ScenarioTable[];
  goal: LatencyGoal | null;
  capacities: GoalRow[];
  points: {
    [k: string]: ScenarioPoint[];
  };
}
/**
 * The ranking of a scenario at a load factor, by the response time of the ranked operation.
 */
export interface ScenarioTable {
  factor: number;
  rows: ScenarioRow[];
}
/**
 * A row in a scenario table. Each arrival counts as a request.
 */
export interface ScenarioRow {
  implementation: string;
  load: (ClosedLoop | OpenLoop | Scenario) | null;
  throughput: Standing | null;
  cpu_per_request: Standing | null;
  rss_peak: number | null;
  startup_time: number | null;
  errors: number;
  flags: string[];
  ranked: boolean;
  reason: string;
  trials: number;
  dropped: number;
  checks: number;
  responses_checked: number;
  latency: ClosedLoopLatency | null;
  response_time: number | null;
  throughput_per_memory: number | null;
  threads: number | null;
  cpu_to_floor: number | null;
  response: Standing | null;
  percentiles: {
    [k: string]: Estimate;
  };
  database_cpu_per_arrival: Estimate | null;
}
/**
 * An implementation's response times for an operation of a use case, at a load factor.
 */
export interface ScenarioPoint {
  factor: number;
  use_case: string;
  operation: string;
  percentiles: {
    [k: string]: Estimate;
  };
  answered: number;
  failed: number;
}
/**
 * A cell's latency distribution, in seconds. Mean and percentiles are medians over processes.
 */
export interface CellLatency {
  implementation: string;
  load: ClosedLoop | OpenLoop | Scenario;
  basis: string;
  percentiles: {
    [k: string]: number;
  };
  spread: {
    /**
     * @minItems 2
     * @maxItems 2
     */
    [k: string]: [unknown, unknown];
  };
  mean: number | null;
  stdev: number | null;
  maximum: number | null;
  trials: number;
}
/**
 * The ranking tables of a test type for all loads.
 */
export interface TestDocument {
  test_type: string;
  tables: Table[];
  problems: ReadProblem[];
}
/**
 * The latency of every cell of a test type. ``cells`` is empty if requests were pipelined.
 */
export interface LatencyDocument {
  test_type: string;
  cells: CellLatency[];
}
/**
 * Overall scores for a selection of a run's test types.
 */
export interface OverallDocument {
  test_types: string[];
  scores: Score[];
}
/**
 * A comparison of two runs.
 */
export interface ComparisonDocument {
  comparison: Comparison;
  verdict: string[];
}
/**
 * A comparison of run B with run A, cell by cell.
 */
export interface Comparison {
  run_a: string;
  run_b: string;
  threshold: number;
  interleaved: boolean;
  across: string[];
  confidence: number;
  cells: CellComparison[];
  noise_floor: NoiseFloor | null;
  notes: string[];
}
/**
 * A cell of run B compared with the same cell of run A.
 */
export interface CellComparison {
  implementation: string;
  test_type: string;
  load: ClosedLoop | OpenLoop | Scenario;
  throughput: Effect;
  cpu_per_request: Effect;
  reason: string;
  only_in: "" | "A" | "B";
}
/**
 * How a cell's metric changed from run A to run B: the ratio and the verdict.
 */
export interface Effect {
  ratio: Ratio | null;
  verdict: "failed" | "slower" | "cannot tell" | "faster" | "same" | "not in base";
}
/**
 * All records of an implementation and test type, without histograms and scenario arrivals.
 */
export interface CellDocument {
  implementation: string;
  test_type: string;
  trials: Trial[];
  verdicts: VerificationRecord[];
  processes: ProcessRecord[];
  problems: ReadProblem[];
}
/**
 * A measurement of a cell (implementation x test type x load) in a process.
 */
export interface Trial {
  started_at: number;
  command: string[];
  server: ServerUsage;
  database_cpu_seconds: number | null;
  windows: Window[];
  connections: number | null;
  steal_share: number | null;
  restarted: boolean;
  responses_per_request: number | null;
  idle_cpu_share: number | null;
  clients: ClientUsage[];
  duration: number;
  requests: number;
  bytes: number;
  errors: ErrorCounts;
  latency: Latency | null;
  service: Latency | null;
  due: number | null;
  answered: number | null;
  unfinished: number | null;
  late: number | null;
  lag_p99: number | null;
  sent_late: number | null;
  arrivals: Arrivals | null;
  tls_sessions: {
    [k: string]: number;
  } | null;
  peer_settings: {
    [k: string]: number;
  } | null;
  id: string;
  implementation: string;
  test_type: string;
  load: ClosedLoop | OpenLoop | Scenario;
  process: number;
  round: number;
  purpose: "measure" | "witness" | "share" | "common" | "search";
  share: number | null;
  generator: string;
  asked_duration: number;
  throughput: number;
  cpu_per_request: number | null;
  generator_cpu_seconds: number;
  generator_threads: number;
  warm_up: WarmUp | null;
  steady: boolean | null;
  evidence: TrialEvidence | null;
  validity: ValidityCheck[];
  link_share: number | null;
}
/**
 * Resources that the server's process tree used during a trial.
 */
export interface ServerUsage {
  cpu_seconds: number;
  rss_peak: number | null;
  wait_share: number | null;
  throttled_seconds: number | null;
  pids: number[];
  threads_peak: number | null;
  idle_seconds: number | null;
  compiler_cpu_seconds: number | null;
}
/**
 * Measurements taken during about one second of a load.
 */
export interface Window {
  start: number;
  duration: number;
  responses: number | null;
  server_cpu: number | null;
  wait_share: number | null;
  rss: number | null;
  connections: number | null;
  compiler_cpu: number | null;
}
/**
 * A client machine's share of a load that several machines generate together.
 */
export interface ClientUsage {
  client: string;
  connections: number;
  threads: number;
  requests: number;
  bytes: number;
  duration: number;
  cpu_seconds: number;
  wait_seconds: number | null;
  begun: number;
  begun_within: number;
}
/**
 * Errors by kind, as counted by the load generator. Failed requests do not count as throughput.
 */
export interface ErrorCounts {
  connect: number;
  read: number;
  write: number;
  timeout: number;
  status: number;
}
/**
 * A latency distribution in seconds.
 */
export interface Latency {
  basis: "closed-loop, service time" | "open-loop, intended send time";
  mean: number;
  stdev: number;
  min: number;
  max: number;
  percentiles: {
    [k: string]: number;
  };
  histogram: [unknown, unknown][];
}
/**
 * Results of the arrivals in a scenario: ``due`` is ``done`` + ``failed`` + ``unfinished``.
 *
 * An arrival is a simulated customer who carries out a use case.
 */
export interface Arrivals {
  due: number;
  done: number;
  failed: number;
  unfinished: number;
  operations: OperationTimes[];
  use_cases: UseCaseTimes[];
}
/**
 * Results of an operation of a use case in a scenario.
 */
export interface OperationTimes {
  use_case: string;
  operation: string;
  due: number;
  answered: number;
  errors: ErrorCounts;
  latency: Latency | null;
  service: Latency | null;
}
/**
 * Results of a use case in a scenario.
 */
export interface UseCaseTimes {
  use_case: string;
  due: number;
  done: number;
  latency: Latency | null;
}
/**
 * A process's warm-up for a test type.
 */
export interface WarmUp {
  duration: number;
  requests: number;
  steady: boolean | null;
  seconds_to_steady: number | null;
  worst_latency: number | null;
  windows: Window[];
}
/**
 * Results of checks on the responses that the server sent during the trial.
 */
export interface TrialEvidence {
  judged: number;
  received: number;
  objections: CheckResult[];
}
/**
 * The result of a check, for example on a response or on the database.
 */
export interface CheckResult {
  check: string;
  rule: string;
  outcome: Outcome;
  message: string;
  expected: string | null;
  actual: string | null;
  waived: boolean;
}
/**
 * Result of a trial's validity check: ``fail`` excludes the trial from rankings, ``warn`` adds a flag in tables.
 */
export interface ValidityCheck {
  name: string;
  outcome: Outcome;
  value: number | null;
  threshold: number | null;
  flag: string;
}
/**
 * Verification of an implementation and test type in a process. If there are several records, the last counts.
 */
export interface VerificationRecord {
  implementation: string;
  test_type: string;
  process: number;
  thorough: boolean;
  outcome: Outcome;
  results: CheckResult[];
  duration: number;
  response_bytes: {
    /**
     * @minItems 2
     * @maxItems 2
     */
    [k: string]: [unknown, unknown];
  };
}
/**
 * A fresh start of an implementation: the startup time, trials and failures.
 */
export interface ProcessRecord {
  implementation: string;
  process: number;
  started_at: number;
  startup_time: number | null;
  status: "ok" | "failed" | "interrupted";
  reason: string;
  exit_reason: string;
  log: string | null;
  trials: number;
  failed_loads: {
    [k: string]: (ClosedLoop | OpenLoop | Scenario)[];
  };
  unreached: {
    [k: string]: (ClosedLoop | OpenLoop | Scenario)[];
  };
}
/**
 * The latest verdict on every claim. ``problem`` is empty unless the verdicts cannot be read.
 */
export interface ClaimsDocument {
  verdicts: ClaimVerdict[];
  problem: string;
}
/**
 * The verdict on a claim, with the measured comparisons and the conditions of the measurement.
 */
export interface ClaimVerdict {
  claim: string;
  title: string;
  talk: string;
  page: string;
  said: string;
  conditions: string;
  here: string;
  verdict: "supported" | "direction only" | "refuted" | "needs a larger machine" | "undecided";
  sentence: string;
  statements: StatementVerdict[];
  runs: string[];
  measured_at: number;
  machine: string;
  cpus: number;
  grade: string;
  concerns: string[];
  profile: string;
  runtime: string;
  revision: string | null;
  dirty: boolean | null;
  figures: {
    [k: string]: number;
  }[];
}
/**
 * The verdict on one of a claim's comparisons, with the measured values.
 */
export interface StatementVerdict {
  name: string;
  metric: string;
  of: string;
  to: string;
  said: string;
  expected: number | null;
  theory: string;
  least: number | null;
  most: number | null;
  value: number | null;
  low: number | null;
  high: number | null;
  confidence: number | null;
  processes: number;
  figures_of: number[];
  figures_to: number[];
  context: boolean;
  verdict: "supported" | "direction only" | "refuted" | "needs a larger machine" | "undecided";
  reason: string;
  more: number;
  takes: string;
  remarks: string[];
}
/**
 * The end of a log. ``skipped`` is the number of bytes omitted at the beginning.
 */
export interface LogDocument {
  path: string;
  text: string;
  skipped: number;
}
/**
 * The state of a run in progress. It is small, because a page requests it every second.
 */
export interface LiveDocument {
  status: string;
  progress: RunProgress | null;
  trials: Trial[];
  version: string;
  silent_for: number | null;
}
/**
 * The progress of a run, as stored in progress.json.
 */
export interface RunProgress {
  status: string;
  stage: string;
  process: number;
  round: number;
  implementation: string;
  test_type: string;
  load: string;
  elapsed: number;
  preparation: number;
  remaining: number | null;
  windows: Window[];
}
/**
 * All documents of a run, for a page that works without a server.
 */
export interface Embedded {
  document: RunDocument;
  tests: {
    [k: string]: TestDocument;
  };
  latency: {
    [k: string]: LatencyDocument;
  };
  cells: CellDocument[];
  logs: {
    [k: string]: LogDocument;
  };
  left_out: string[];
  links: {
    [k: string]: string;
  };
}
