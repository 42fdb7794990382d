// Explanations of all flags, which come from validity checks (harness/experiment/validity.py) or from the ranking.

const MEANINGS: Record<string, string> = {
  "cpu contention":
    "The server's threads waited for a CPU for more than 5 % of their runnable time, because other programs were running.",
  provisional: "Few processes were measured, so the interval is wide.",
  "not warmed up":
    "CPU time per request was still falling during the measurement, or the just-in-time compiler was still busy. The value includes the compiler's CPU time. A warm server would need less, so the value is an upper bound, and the true rank may be better.",
  "warm-up unsettled": "The warm-up reached its time limit before CPU time per request was stable.",
  errors: "Some requests failed or timed out. They do not count as throughput.",
  connections: "Fewer connections were established than requested.",
  "response size": "Responses under load differed in size from the verified responses.",
  overrun: "The load generator ran longer than planned.",
  "cut short": "The load generator ended earlier than planned.",
  restarted: "The server's processes changed during the measurement.",
  "limited by the load generator": "The load generator was saturated; the server may be faster.",
  "clients apart": "The clients did not run at the same time, so their rates cannot be added.",
  "client lags": "A client's load generator waited for a CPU and sent requests late.",
  "limited by the network": "The network between clients and server was saturated; the server may be faster.",
  throttled: "The server reached the CPU quota of its control group and was throttled.",
  "not saturated":
    "The server left CPUs idle. A lock, a pool or another program limited the throughput, not the server's CPU time.",
  steal: "The hypervisor took CPU time away from this machine.",
  "delayed ack": "The CPU was idle, and the throughput matches the 40 ms delay of TCP's delayed acknowledgements.",
  "little's law": "Connections, throughput and latency contradict Little's law.",
  "single measurement": "There is only one trial, so the rank is based on a point estimate without an interval.",
  "the two generators disagree": "The two load generators measured different CPU times per request.",
  "wrong answers": "Sampled responses under load were incorrect.",
  "unasked responses": "The server sent responses without a request.",
  "rate not achieved": "The server sent too few responses in time for this rate.",
  "no requests": "No request was scheduled during the trial, so the rate was not tested.",
  "lower bound": "The highest tested rate met the goal, so the capacity is at least this rate.",
  "unfinished requests": "Some requests had no response when the load generator stopped waiting.",
  "generator lag": "The load generator sent requests late, so the value includes its own delays.",
  "a few requests sent late": "The load generator sent a few requests late.",
  "idle servers busy": "Other running servers used CPU time during the measurement.",
};

/** Severities of flags: the row's values are wrong or incomplete ("fail"), doubtful ("warn") or uncertain ("info"). */
export const SEVERITIES = ["fail", "warn", "info"] as const;
export type Severity = (typeof SEVERITIES)[number];

const FAILURES = new Set(["errors", "wrong answers", "unasked responses", "response size", "restarted"]);
const INFORMATION = new Set([
  "provisional",
  "cpu contention",
  "single measurement",
  "lower bound",
  "no requests",
  "idle servers busy",
  "a few requests sent late",
]);

export function severity(flag: string): Severity {
  const key = flag.toLowerCase();
  return FAILURES.has(key) ? "fail" : INFORMATION.has(key) ? "info" : "warn";
}

/** Return the explanation of a flag. */
export function flagMeaning(flag: string): string {
  const key = flag.toLowerCase();
  const explanation = Object.hasOwn(MEANINGS, key) ? MEANINGS[key] : undefined;
  return explanation ?? "See the implementation's page and docs/method.md.";
}
