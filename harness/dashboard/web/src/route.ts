// The route: everything that the user has selected. The URL fragment stores it, so links work even in a local file.

export type Page = "runs" | "run" | "compare" | "claims";
const VIEWS = ["table", "groups", "load", "latency", "pairs", "scatter", "selected", "cell", "about"] as const;
export type View = (typeof VIEWS)[number];
export const FACETS = [
  "language",
  "platform",
  "http_server",
  "concurrency",
  "approach",
  "classification",
  "database",
  "database_driver",
  "orm",
  "json_library",
  "template_engine",
  "tags",
] as const;
export type Facet = (typeof FACETS)[number];
export const METRICS = [
  "throughput",
  "cpu",
  "memory",
  "response",
  "density",
  "threads",
  "floor",
  "p50",
  "p99",
] as const;
export type Metric = (typeof METRICS)[number];
export const SORTS = ["rank", "name", "share", "ratio", "first", "errors", ...METRICS] as const;
export type Sort = (typeof SORTS)[number];

export interface Route {
  page: Page;
  run: string; // run id, or "local:<number>-<file name>" for a dropped TechEmpower file
  other: string; // second run in a comparison
  view: View;
  test: string; // test type, "overall", "overall-GROUP", or "" for the first tab
  load: string; // load label, or "" for the headline load
  metric: Metric;
  metricChosen: boolean; // whether the URL names a valid metric; otherwise the run's leading metric is shown
  sort: Sort;
  descending: boolean | null; // null for the column's default direction
  baseline: string; // implementation, or "" for the run's baseline
  absolute: boolean; // whether the overall table shows values instead of ratios
  text: string;
  facets: Record<Facet, string[]>;
  pinned: string[];
  hidden: string[]; // implementations that the user has hidden
  selected: string[]; // implementations selected for comparison
  excludedTests: string[]; // test types that do not count towards the overall score
  bestVariantsOnly: boolean; // whether to show only the best variant of each framework
  group: Facet; // facet by which the view "groups" summarizes
  implementation: string; // implementation whose cell page is shown
  process: number | null; // the process whose time series the cell page shows
  claim: string; // claim whose details are open, or ""
  verdict: string; // verdict that filters the claims, or "" for all
}

/** Return a facet filter that selects everything. */
export function noFacets(): Record<Facet, string[]> {
  return {
    language: [],
    platform: [],
    http_server: [],
    concurrency: [],
    approach: [],
    classification: [],
    database: [],
    database_driver: [],
    orm: [],
    json_library: [],
    template_engine: [],
    tags: [],
  };
}

export function emptyRoute(): Route {
  return {
    page: "runs",
    run: "",
    other: "",
    view: "table",
    test: "",
    load: "",
    metric: "throughput",
    metricChosen: false,
    sort: "rank",
    descending: null,
    baseline: "",
    absolute: false,
    text: "",
    facets: noFacets(),
    pinned: [],
    hidden: [],
    selected: [],
    excludedTests: [],
    bestVariantsOnly: false,
    group: "language",
    implementation: "",
    process: null,
    claim: "",
    verdict: "",
  };
}

/** Parse a URL fragment. Unknown parameters and invalid values are ignored. */
export function parse(hash: string): Route {
  const route = emptyRoute();
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""));
  const [page = "", run = ""] = path.split("/").map(decode);
  if (page === "run" && run) {
    route.page = "run";
    route.run = run;
  } else if (page === "compare" || page === "claims") {
    route.page = page;
  }
  const values = new URLSearchParams(query);
  const first = (key: string): string => values.get(key) ?? "";
  route.run ||= first("a");
  route.other = first("b");
  route.view = parseOption(VIEWS, first("view"), "table");
  route.test = first("test");
  route.load = first("load");
  route.metric = parseOption(METRICS, first("metric"), "throughput");
  route.metricChosen = route.metric === first("metric");
  const sort = first("sort");
  route.sort = parseOption(SORTS, sort.replace(/^-/, "").replace(/-asc$/, ""), "rank");
  route.descending = sort.startsWith("-") ? true : sort.endsWith("-asc") ? false : null;
  route.baseline = first("base");
  route.absolute = first("figures") === "absolute";
  route.text = first("q");
  for (const facet of FACETS) route.facets[facet] = values.getAll(facet);
  route.pinned = values.getAll("pin");
  route.hidden = values.getAll("hide");
  route.selected = values.getAll("select");
  route.excludedTests = values.getAll("without");
  route.bestVariantsOnly = first("variants") === "best";
  route.group = parseOption(FACETS, first("group"), "language");
  route.implementation = first("impl");
  route.process = /^\d+$/.test(first("process")) ? Number(first("process")) : null;
  route.claim = first("claim");
  route.verdict = first("verdict");
  return route;
}

/**
 * Format a route as a URL fragment with only the non-default values, in a fixed order. Equal views therefore have equal
 * links.
 */
export function format(route: Route): string {
  const values = new URLSearchParams();
  const put = (key: string, value: string): void => {
    if (value) values.append(key, value);
  };
  if (route.page === "compare") {
    put("a", route.run);
    put("b", route.other);
  }
  if (route.view !== "table") put("view", route.view);
  put("test", route.test);
  put("load", route.load);
  if (route.metricChosen || route.metric !== "throughput") put("metric", route.metric);
  if (route.sort !== "rank" || route.descending !== null)
    put(
      "sort",
      route.descending === true ? `-${route.sort}` : route.descending === false ? `${route.sort}-asc` : route.sort,
    );
  put("base", route.baseline);
  if (route.absolute) put("figures", "absolute");
  put("q", route.text);
  for (const facet of FACETS) for (const value of route.facets[facet]) values.append(facet, value);
  for (const value of route.pinned) put("pin", value);
  for (const value of route.hidden) put("hide", value);
  for (const value of route.selected) put("select", value);
  for (const value of route.excludedTests) put("without", value);
  if (route.bestVariantsOnly) put("variants", "best");
  if (route.group !== "language") put("group", route.group);
  put("impl", route.implementation);
  if (route.process !== null) put("process", String(route.process));
  put("claim", route.claim);
  put("verdict", route.verdict);
  const path = route.page === "runs" ? "" : route.page === "run" ? `run/${encodeURIComponent(route.run)}` : route.page;
  const query = values.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

function split(text: string): [string, string] {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parseOption<Value extends string>(allowed: readonly Value[], value: string, fallback: Value): Value {
  return allowed.find((item) => item === value) ?? fallback;
}
