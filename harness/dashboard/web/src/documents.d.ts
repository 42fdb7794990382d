// Generated from the Python models by scripts/types.mjs: `npm run types`. Do not edit.

/**
 * How a check or a gate came out.
 */
export type Outcome = "pass" | "warn" | "fail";

export interface Documents {
  RunList?: RunList;
  RunDocument?: RunDocument;
  TestDocument?: TestDocument;
  LatencyDocument?: LatencyDocument;
  BaselineDocument?: BaselineDocument;
  OverallDocument?: OverallDocument;
  ComparisonDocument?: ComparisonDocument;
  CellDocument?: CellDocument;
  HistoryDocument?: HistoryDocument;
  ClaimsDocument?: ClaimsDocument;
  LogDocument?: LogDocument;
  LiveEvent?: LiveEvent;
  Embedded?: Embedded;
}
/**
 * All runs, newest first, the folders that could not be read, and the files opened from the command line.
 */
export interface RunList {
  runs: RunSummary[];
  broken: BrokenRun[];
  files: string[];
}
/**
 * One run in the list of runs.
 */
export interface RunSummary {
  run_id: string;
  name: string;
  title: string;
  example: boolean;
  lead: string;
  environment: string;
  status: "running" | "complete" | "failed" | "interrupted";
  profile: string;
  started_at: number;
  completed_at: number | null;
  implementations: string[];
  test_types: string[];
  machine: string;
  grade: string;
  problems: Problem[];
}
/**
 * Something of a run that cannot be read: the file, and what is wrong with it.
 */
export interface Problem {
  file: string;
  message: string;
}
/**
 * A folder of results/ whose run.json cannot be read.
 */
export interface BrokenRun {
  run_id: string;
  file: string;
  message: string;
}
/**
 * A run as its page first needs it: what was asked, and the headline table of each test type.
 */
export interface RunDocument {
  run: RunInfo;
  title: string;
  example: boolean;
  sentences: {
    [k: string]: {
      [k: string]: string[];
    };
  };
  ranking: Ranking;
  replicates: number;
  problems: Problem[];
  progress: Progress | null;
  source_base: string | null;
}
/**
 * run.json: what was asked, where, with what, and how it ended.
 */
export interface RunInfo {
  schema_version: number;
  run_id: string;
  name: string;
  environment: string;
  status: "running" | "complete" | "failed" | "interrupted";
  started_at: number;
  completed_at: number | null;
  command: string[];
  profile: string;
  runtime: string;
  order: string;
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
  levels: {
    [k: string]: Level[];
  };
  cells: {
    [k: string]: {
      [k: string]: Level[];
    };
  };
  blocks_expected: number;
  blocks_maximum: number;
  noise_floor: NoiseFloor | null;
  problems: string[];
  schedule: string[][];
  outlook: string;
  set_name: string;
  unit: string;
  sets: MachineSet[];
  left_out: string[];
  machines: RoleMachine[];
  links: MachineLink[];
}
/**
 * Facts of the machine, and its grade: what would disturb a measurement.
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
 * What benchmark_config.json says of an implementation, with how it was built.
 */
export interface ImplementationInfo {
  name: string;
  framework: string;
  language: string;
  folder: string;
  display_name: string;
  approach: string;
  classification: string;
  platform: string;
  webserver: string;
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
  lines: number | null;
  digest: string;
  rules: string;
  allowed: string[];
  build: Build | null;
}
/**
 * How an implementation was built.
 */
export interface Build {
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
  bases: {
    [k: string]: string;
  };
  stand_ins: string[];
}
/**
 * One point of a sweep: how many connections, for the query tests how many queries a request asks for.
 *
 * For the order service ``factor`` says how many times its arrivals a minute come; the connections carry them.
 */
export interface Level {
  concurrency: number;
  queries: number | null;
  pipeline: number;
  factor: number | null;
}
/**
 * The A/A difference of this machine and profile: no smaller difference is called one (``./tfb calibrate``).
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
 * A set of machines (server, database, clients) that blocks of a merged run were measured on.
 */
export interface MachineSet {
  name: string;
  machine: Machine;
  runs: string[];
  blocks: number[];
}
/**
 * A machine of a run on several, with what it does there.
 */
export interface RoleMachine {
  role: string;
  name: string;
  address: string;
  engine: string;
  machine: Machine;
}
/**
 * Between two roles' machines, measured by TCP before the run.
 */
export interface MachineLink {
  of: string;
  to: string;
  round_trip: number;
  throughput: number;
}
/**
 * The ranking of one run.
 */
export interface Ranking {
  run_id: string;
  scoring_version: number;
  reference: string | null;
  confidence: number;
  test_types: {
    [k: string]: TestTypeRanking;
  };
  overall: Score[];
  latency: {
    [k: string]: LatencyTable;
  };
  machine_latency: MachineLatency | null;
  orders: Orders | null;
  noise_floor: NoiseFloor | null;
  notes: string[];
}
/**
 * All tables of a test type: the headline one first.
 */
export interface TestTypeRanking {
  test_type: string;
  headline: Table;
  levels: Table[];
}
/**
 * One ranking: a test type at a level, or at each implementation's best level (``level`` None).
 */
export interface Table {
  test_type: string;
  level: Level | null;
  rows: Row[];
  comparisons: number;
  throughput_comparability: Comparability | null;
  cpu_comparability: Comparability | null;
}
/**
 * One implementation in one table.
 */
export interface Row {
  implementation: string;
  level: Level | null;
  throughput: Standing | null;
  cpu_per_request: Standing | null;
  rss_peak: number | null;
  first_answer: number | null;
  errors: number;
  words: string[];
  ranked: boolean;
  reason: string;
  samples: number;
  dropped: number;
  latency: ClosedLoopLatency | null;
  response_time: number | null;
  throughput_per_memory: number | null;
  threads: number | null;
}
/**
 * One metric of one row: its estimate, place and tie group. ``tie_group`` numbers start at 1, best first.
 */
export interface Standing {
  estimate: Estimate;
  position: number;
  rank: RankInterval;
  tie_group: number;
  to_reference: Ratio | null;
  to_best: Ratio | null;
  log_mean: LogMean | null;
  comparison: Interval | null;
  components: Processes | null;
}
/**
 * A quantity of a cell: the median over replicates with its 95 % interval.
 */
export interface Estimate {
  median: number;
  low: number | null;
  high: number | null;
  replicates: number;
  values: number[];
  blocks: number[];
}
/**
 * Ranks that the data does not exclude: ``low`` is the best, ``high`` the worst (1-based, inclusive).
 */
export interface RankInterval {
  low: number;
  high: number;
}
/**
 * An effect size with its 95 % interval (read as ``1.12x [1.08, 1.17]``).
 *
 * It is the geometric mean of the replicates' ratios, which can differ slightly from the ratio of the two medians. The
 * simultaneous interval excludes 1 just where the table's ranks take the two for different (but for the noise floor).
 */
export interface Ratio {
  value: number;
  low: number | null;
  high: number | null;
  simultaneous_low: number | null;
  simultaneous_high: number | null;
}
/**
 * What ratios of a row are made of, so that any of them can be recomputed: on natural logarithms.
 *
 * With two rows of a table whose basis is not "paired": exp(difference of ``mean`` ± quantile x scale x root of the
 * sum of ``squared_error``); quantile and scale from ``freedom`` as ``rank.contrasts.approximation`` says.
 */
export interface LogMean {
  mean: number;
  squared_error: number | null;
  freedom: number | null;
}
/**
 * Bounds in the metric's unit.
 */
export interface Interval {
  low: number;
  high: number;
}
/**
 * The two components of variance of a row measured in turns, as standard deviations of logarithms.
 */
export interface Processes {
  processes: number;
  windows: number;
  within: number | null;
  between: number | null;
  text: string;
}
/**
 * What requests took in a closed loop at the row's level, in seconds; ``basis`` is the same in all of a table.
 */
export interface ClosedLoopLatency {
  basis: "closed-loop, wrk-corrected" | "closed-loop, service time" | "open-loop, intended send time";
  mean: Estimate;
  percentiles: {
    [k: string]: Estimate;
  };
  maximum: number;
}
/**
 * How the rows of a table are compared in one metric.
 */
export interface Comparability {
  basis: "moderated" | "paired" | "welch";
  prior_freedom: number | null;
  pair_level: number;
  text: string;
}
/**
 * Overall score: geometric mean of throughput ratios to the reference over the scored test types.
 */
export interface Score {
  implementation: string;
  score: number | null;
  low: number | null;
  high: number | null;
  cpu_score: number | null;
  ratios: {
    [k: string]: number;
  };
  missing: string[];
  rank: RankInterval | null;
}
/**
 * A test type's ranking by the capacity at a latency goal.
 */
export interface LatencyTable {
  test_type: string;
  goal: LatencyGoal;
  rows: GoalRow[];
  comparability: Comparability | null;
}
/**
 * A latency that a share of the requests must not exceed: ``percentile`` 99 and 0.01 s is ``p99=10ms``.
 */
export interface LatencyGoal {
  percentile: number;
  seconds: number;
}
/**
 * One implementation's capacity at the latency goal, and its latency over load.
 */
export interface GoalRow {
  implementation: string;
  capacity: Standing | null;
  closed_loop: number | null;
  above: number | null;
  ranked: boolean;
  reason: string;
  words: string[];
  points: RatePoint[];
}
/**
 * One implementation at one rate: a share of its own capacity, or the same rate for all.
 */
export interface RatePoint {
  purpose: "share" | "common";
  share: number | null;
  rate: number;
  achieved_rate: number;
  percentiles: {
    [k: string]: Estimate;
  };
  maximum: number | null;
  lag_p99: number | null;
  replicates: number;
  dropped: number;
  words: string[];
}
/**
 * What the machine itself takes: a load on a server that does nothing.
 */
export interface MachineLatency {
  rate: number;
  percentiles: {
    [k: string]: number;
  };
  lag_p99: number | null;
}
/**
 * The order service: its tables by factor, the capacity at a goal, and every operation of every use case.
 */
export interface Orders {
  tables: OrderTable[];
  goal: LatencyGoal | null;
  capacities: OrderCapacityRow[];
  points: {
    [k: string]: OrderPoint[];
  };
}
/**
 * The order service at one factor, by the response time of "create order".
 */
export interface OrderTable {
  factor: number;
  rows: OrderRow[];
}
/**
 * One implementation of the order service at one factor.
 */
export interface OrderRow {
  implementation: string;
  response: Standing | null;
  percentiles: {
    [k: string]: Estimate;
  };
  cpu_per_arrival: Standing | null;
  database_cpu_per_arrival: Estimate | null;
  rss_peak: number | null;
  ranked: boolean;
  reason: string;
  words: string[];
}
/**
 * The highest factor at which one implementation's "create order" met the goal.
 */
export interface OrderCapacityRow {
  implementation: string;
  capacity: Standing | null;
  above: number | null;
  ranked: boolean;
  reason: string;
  words: string[];
}
/**
 * What one implementation's customers waited for one operation of one use case, at one factor of the arrivals.
 */
export interface OrderPoint {
  factor: number;
  use_case: string;
  operation: string;
  percentiles: {
    [k: string]: Estimate;
  };
  answered: number;
  failed: number;
  replicates: number;
}
/**
 * progress.json: where a run in progress stands. Seconds; unknown is None.
 */
export interface Progress {
  status: string;
  stage: string;
  block: number | null;
  blocks: number | null;
  implementation: string | null;
  test_type: string | null;
  level: string | null;
  elapsed: number | null;
  remaining: number | null;
  done: number | null;
  total: number | null;
  undecided: Undecided[];
  windows: Window[];
}
/**
 * A cell that asks for more replicates, and why.
 */
export interface Undecided {
  implementation: string;
  test_type: string;
  reason: string;
}
/**
 * About one second of a load: offsets from the start of the sample.
 */
export interface Window {
  start: number;
  duration: number;
  responses: number | null;
  server_cpu: number | null;
  wait_share: number | null;
  rss: number | null;
  connections: number | null;
}
/**
 * One test type in full: the table of every level, and what verification found.
 */
export interface TestDocument {
  test_type: string;
  levels: Table[];
  verdicts: VerdictSummary[];
  problems: Problem[];
}
/**
 * The worst outcome of one implementation x test type over its replicates, with the checks that did not pass.
 */
export interface VerdictSummary {
  implementation: string;
  test_type: string;
  outcome: Outcome;
  findings: CheckResult[];
}
/**
 * One check of one response or state: what was expected, what came, and the rule that it enforces.
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
 * The latency of every cell of a test type; empty where the generator's numbers mean nothing (pipelined).
 */
export interface LatencyDocument {
  test_type: string;
  cells: CellLatency[];
}
/**
 * The latency distribution of a cell in seconds: each figure is the median over its samples.
 */
export interface CellLatency {
  implementation: string;
  level: Level;
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
  samples: number;
}
/**
 * The tables of a test type relative to a baseline of the reader's choice.
 */
export interface BaselineDocument {
  test_type: string;
  base: string;
  tables: {
    [k: string]: {
      [k: string]: BaselineRatios;
    };
  };
}
/**
 * One row of a table relative to a baseline, as harness.stats gives it; None where it has none.
 */
export interface BaselineRatios {
  throughput: Ratio | null;
  cpu_per_request: Ratio | null;
}
/**
 * Overall scores over some of a run's test types.
 */
export interface OverallDocument {
  test_types: string[];
  scores: Score[];
}
/**
 * Two runs compared by harness.stats.
 */
export interface ComparisonDocument {
  comparison: Comparison;
}
/**
 * Run B against run A, cell by cell.
 */
export interface Comparison {
  run_a: string;
  run_b: string;
  fail_over: number;
  paired: boolean;
  confidence: number;
  cells: CellComparison[];
  noise_floor: NoiseFloor | null;
  notes: string[];
}
/**
 * One cell of run B against the same cell of run A.
 */
export interface CellComparison {
  implementation: string;
  test_type: string;
  level: Level;
  throughput: Effect;
  cpu_per_request: Effect;
  reason: string;
}
/**
 * One metric of one cell, B relative to A.
 */
export interface Effect {
  ratio: Ratio | null;
  p_value: number | null;
  verdict: "faster" | "slower" | "tie" | "missing";
  regression: boolean;
}
/**
 * Everything behind one implementation x test type.
 */
export interface CellDocument {
  implementation: string;
  test_type: string;
  samples: Sample[];
  verdicts: Verdict[];
  replicates: ReplicateRecord[];
  problems: Problem[];
}
/**
 * One load-generator run over a cell (implementation x test type x level) in one replicate.
 */
export interface Sample {
  id: string;
  implementation: string;
  test_type: string;
  level: Level;
  block: number;
  process: number;
  replicate: number;
  round: number | null;
  attempt: number;
  duet_partner: string | null;
  started_at: number;
  command: string[];
  duration: number;
  asked_duration: number;
  requests: number;
  bytes: number;
  errors: Errors;
  throughput: number;
  cpu_per_request: number | null;
  latency: Latency | null;
  audited: AuditedLoad | null;
  server: ServerUse;
  generator_cpu_seconds: number;
  generator_threads: number;
  database_cpu_seconds: number | null;
  windows: Window[];
  warm_up: WarmUp | null;
  steady: boolean | null;
  gates: Gate[];
  connections: number | null;
  steal_share: number | null;
  restarted: boolean;
  responses_per_request: number | null;
  idle_cpu_share: number | null;
  probe_failures: CheckResult[];
  clients: ClientUse[];
  link_share: number | null;
}
/**
 * Errors by kind, as the generator counts them; none of them is throughput.
 */
export interface Errors {
  connect: number;
  read: number;
  write: number;
  timeout: number;
  status: number;
}
/**
 * A latency distribution in seconds, with what kind of latency it is.
 */
export interface Latency {
  basis: "closed-loop, wrk-corrected" | "closed-loop, service time" | "open-loop, intended send time";
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
 * The closed loop of the project's own generator beside a sample: same process, test type and level.
 */
export interface AuditedLoad {
  duration: number;
  requests: number;
  cpu_per_request: number | null;
  latency: Latency | null;
}
/**
 * What the server's process tree used during a sample.
 */
export interface ServerUse {
  cpu_seconds: number;
  rss_peak: number | null;
  rss_mean: number | null;
  wait_share: number | null;
  throttled_seconds: number | null;
  pids: number[];
  threads_peak: number | null;
}
/**
 * What the warm-up of one test type showed.
 */
export interface WarmUp {
  duration: number;
  requests: number;
  steady: boolean | null;
  seconds_to_steady: number | null;
  requests_to_steady: number | null;
  worst_latency: number | null;
  windows: Window[];
}
/**
 * One validity gate of a sample: ``fail`` keeps the sample out of the ranking, ``warn`` is a word in the table.
 */
export interface Gate {
  name: string;
  outcome: Outcome;
  value: number | null;
  threshold: number | null;
  word: string;
}
/**
 * One client's part of a load that several made together.
 */
export interface ClientUse {
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
 * All check results of one implementation x test type in one replicate.
 */
export interface Verdict {
  implementation: string;
  test_type: string;
  replicate: number;
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
 * One fresh start of an implementation.
 */
export interface ReplicateRecord {
  implementation: string;
  block: number;
  process: number;
  replicate: number;
  started_at: number;
  first_answer: number | null;
  status: "ok" | "failed" | "interrupted";
  reason: string;
  log: string | null;
  samples: number | null;
}
/**
 * An implementation over runs, oldest first.
 */
export interface HistoryDocument {
  implementation: string;
  points: HistoryPoint[];
}
/**
 * An implementation's headline figures of one test type in one run.
 */
export interface HistoryPoint {
  run_id: string;
  title: string;
  environment: string;
  machine: string;
  started_at: number;
  profile: string;
  test_type: string;
  level: Level | null;
  throughput: Estimate | null;
  rank: RankInterval | null;
  of: number;
  to_reference: Ratio | null;
  cpu_per_request: Estimate | null;
  reason: string;
}
/**
 * The last verdict on every claim that was measured into these results; ``problem``: why there are none.
 */
export interface ClaimsDocument {
  verdicts: ClaimVerdict[];
  problem: string;
}
/**
 * The verdict on one claim.
 */
export interface ClaimVerdict {
  claim: string;
  title: string;
  talk: string;
  page: string;
  said: string;
  conditions: string;
  here: string;
  claimed_cpus: number | null;
  verdict: "supported" | "direction only" | "refuted" | "undecided";
  statements: StatementVerdict[];
  run_id: string;
  status: string;
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
 * The verdict on one comparison of a claim.
 */
export interface StatementVerdict {
  name: string;
  metric: string;
  of: string;
  to: string;
  said: string;
  expected: number | null;
  theory: string;
  tolerance: number | null;
  value: number | null;
  low: number | null;
  high: number | null;
  confidence: number | null;
  processes: number;
  verdict: "supported" | "direction only" | "refuted" | "undecided";
  reason: string;
  takes: string;
  remarks: string[];
}
/**
 * A log's text; ``skipped`` bytes at its start are left out when it is long.
 */
export interface LogDocument {
  path: string;
  text: string;
  skipped: number;
}
/**
 * One server-sent event of a run in progress.
 */
export interface LiveEvent {
  progress: Progress | null;
  samples: Sample[];
  ranking_changed: boolean;
  status: string;
  silent_for: number | null;
}
/**
 * One run in one file: everything that the page would have asked the server for.
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
  baselines: {
    [k: string]: {
      [k: string]: BaselineDocument;
    };
  };
  left_out: string[];
}
