// What is shown, as the part of the URL after #: a pasted link shows the same view, also from a file on disk.

export type Page = "runs" | "run" | "compare" | "claims";
const VIEWS = ["table", "groups", "load", "latency", "pairs", "cell", "about"] as const;
export type View = (typeof VIEWS)[number];
export const FACETS = ["language", "platform", "approach", "classification", "database", "orm", "tags"] as const;
export type Facet = (typeof FACETS)[number];
export const METRICS = ["throughput", "cpu", "memory", "response", "density", "threads", "p50", "p99"] as const;
export type Metric = (typeof METRICS)[number];
export const SORTS = ["rank", "name", "share", "ratio", "first", "errors", ...METRICS] as const;
export type Sort = (typeof SORTS)[number];

export interface Route {
  page: Page;
  run: string; // run id; "local:<name>" is a TechEmpower file that was dropped on the page
  other: string; // compare: the second run
  view: View;
  test: string; // test type, "overall", or "" for the first that there is
  load: string; // label of a load, "" for the headline
  metric: Metric;
  named: boolean; // the metric, by the address: else it is the one that leads in the run
  sort: Sort;
  descending: boolean | null; // null: the column's natural direction
  text: string;
  facets: Record<Facet, string[]>;
  pinned: string[];
  hidden: string[];
  without: string[]; // test types that do not count for the overall score
  variants: boolean; // only the best variant of each framework
  group: Facet; // of the summary
  implementation: string; // cell
  process: number | null; // cell: whose seconds are shown
}

/** No facet chosen. */
export function noFacets(): Record<Facet, string[]> {
  return { language: [], platform: [], approach: [], classification: [], database: [], orm: [], tags: [] };
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
    named: false,
    sort: "rank",
    descending: null,
    text: "",
    facets: noFacets(),
    pinned: [],
    hidden: [],
    without: [],
    variants: false,
    group: "language",
    implementation: "",
    process: null,
  };
}

/** The route in a location's hash; what it does not know is ignored. */
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
  const one = (key: string): string => values.get(key) ?? "";
  route.run ||= one("a");
  route.other = one("b");
  route.view = oneOf(VIEWS, one("view"), "table");
  route.test = one("test");
  route.load = one("load");
  route.metric = oneOf(METRICS, one("metric"), "throughput");
  route.named = route.metric === one("metric");
  const sort = one("sort");
  route.sort = oneOf(SORTS, sort.replace(/^-/, "").replace(/-asc$/, ""), "rank");
  route.descending = sort.startsWith("-") ? true : sort.endsWith("-asc") ? false : null;
  route.text = one("q");
  for (const facet of FACETS) route.facets[facet] = values.getAll(facet);
  route.pinned = values.getAll("pin");
  route.hidden = values.getAll("hide");
  route.without = values.getAll("without");
  route.variants = one("variants") === "best";
  route.group = oneOf(FACETS, one("group"), "language");
  route.implementation = one("impl");
  route.process = /^\d+$/.test(one("process")) ? Number(one("process")) : null;
  return route;
}

/** The hash of a route: only what differs from the defaults, in a fixed order, so that equal views have equal links. */
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
  if (route.named || route.metric !== "throughput") put("metric", route.metric);
  if (route.sort !== "rank" || route.descending !== null)
    put(
      "sort",
      route.descending === true ? `-${route.sort}` : route.descending === false ? `${route.sort}-asc` : route.sort,
    );
  put("q", route.text);
  for (const facet of FACETS) for (const value of route.facets[facet]) values.append(facet, value);
  for (const value of route.pinned) put("pin", value);
  for (const value of route.hidden) put("hide", value);
  for (const value of route.without) put("without", value);
  if (route.variants) put("variants", "best");
  if (route.group !== "language") put("group", route.group);
  put("impl", route.implementation);
  if (route.process !== null) put("process", String(route.process));
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

function oneOf<Value extends string>(allowed: readonly Value[], value: string, otherwise: Value): Value {
  return allowed.find((item) => item === value) ?? otherwise;
}
