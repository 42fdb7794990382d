// What the flags beside a figure mean: the validity checks in harness/experiment/validity.py and the ranking's own.

const MEANINGS: Record<string, string> = {
  "cpu contention": "The server's threads waited for a CPU longer than the profile allows: something else was running.",
  provisional: "Few processes: the interval is honest, but wide.",
  "not warmed up":
    "CPU per request was still falling while it was measured: the figure is above that of a warm server.",
  "warm-up unsettled": "The warm-up ended at its time limit before CPU per request had settled.",
  errors: "Some responses failed or came late; none of them counts as throughput.",
  connections: "Fewer connections were established than asked for.",
  "response size": "Responses under load differed in size from the verified ones.",
  overrun: "The load generator took longer than it was asked to.",
  "cut short": "The load generator ended before it was asked to.",
  restarted: "The server's processes changed while it was measured.",
  "limited by the load generator": "The load generator was busy: the server may be faster than this.",
  "clients apart": "The clients did not load at the same time: their rates may not be added up.",
  "client lags": "A client's load generator waited for a CPU, and sent late.",
  "limited by the network": "The network between clients and server was full: the server may be faster than this.",
  throttled: "The control group throttled the server's CPU.",
  steal: "The hypervisor took CPU time away.",
  "delayed ack": "Throughput sits where delayed acknowledgements (40 ms) put it, with idle CPU.",
  "little's law": "Connections, throughput and latency do not fit together (Little's law).",
  "single measurement": "One trial, so no interval: the place is that of a point estimate.",
  "the two generators disagree": "Another load generator measured another CPU time per request.",
  "wrong answers": "Answers written out while it was under load were not right.",
  "unasked responses": "More answers came than were asked for.",
  "rate not achieved": "Fewer requests were answered in time than were due.",
  "no requests": "No request was due: nothing can be said of the rate.",
  "lower bound": "The highest rate that was tried met the goal: the capacity is this or more.",
  "unfinished requests": "Requests were still unanswered when the load generator had waited long enough.",
  "generator lag": "The load generator sent late: the figure is not the server's alone.",
  "a few requests sent late": "The load generator sent a few requests late.",
  "idle servers busy": "Servers that were up beside this one used CPU time meanwhile.",
};

/** A sentence on a flag of the table. */
export function meaning(word: string): string {
  const key = word.toLowerCase();
  const known = Object.hasOwn(MEANINGS, key) ? MEANINGS[key] : undefined;
  return known ?? "Measured under a condition that its page and docs/method.md name.";
}
