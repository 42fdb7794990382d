// The comparison of two runs by test type. All ratios and verdicts come from harness/stats.
import type { CellComparison, Comparison, ComparisonDocument, Effect, Row, RunDocument, Table } from "../documents";
import { ForestPlot } from "../charts/forest";
import { isNumber, micros, rate } from "../format";
import { usePage } from "../hooks";
import { label, testName } from "../load";
import { Summary } from "../parts/summary";
import { Problems } from "../parts/basics";
import { Notes } from "../parts/notes";
import { PlainTable } from "../parts/plain-table";
import { RatioFigure } from "../parts/figure";
import { Tabs } from "../parts/tabs";

interface Props {
  before: RunDocument;
  after: RunDocument;
  document: ComparisonDocument;
}

const MAX_EFFECTS = 80;

export function RunComparison({ before, after, document: { comparison, verdict } }: Props) {
  const { route, go } = usePage();
  const tests = Object.keys(before.ranking.test_types).filter((test) => Object.hasOwn(after.ranking.test_types, test));
  const test = tests.includes(route.test) ? route.test : (tests[0] ?? "");
  const [first, second] = [before, after].map((run) => run.ranking.test_types[test]?.headline);
  if (!first || !second) return <p class="empty">The runs have no test type in common.</p>;
  const metric = after.ranking.leading === "cpu" ? "cpu_per_request" : "throughput";
  const pairs = pairRows(first, second, comparison, test, metric);
  const [metricName, left, right] =
    metric === "throughput" ? ["throughput", "slower", "faster"] : ["CPU per request", "less CPU", "more CPU"];
  const floor = comparison.noise_floor?.[metric] ?? null;
  return (
    <>
      <Summary parts={verdict} />
      <Problems problems={[...before.problems, ...after.problems]} />
      <Notes notes={comparison.notes} />
      <Tabs
        label="Test types"
        panel="comparison"
        chosen={test}
        onChoose={(id) => go({ test: id })}
        tabs={tests.map((id) => ({ id, label: testName(id) }))}
      />
      <div id="comparison" role="tabpanel" aria-label={testName(test)}>
        <ForestPlot
          title={`${testName(test)}: ${metricName} after ÷ before`}
          note={
            <>
              {Math.round(comparison.confidence * 100)} % intervals. Filled squares mark differences that are
              significant after Holm's correction over all cells; differences with hollow squares may be due to chance.
              {isNumber(floor) &&
                ` The shaded band is the machine's noise floor (±${(floor * 100).toFixed(1)} %): smaller differences are noise.`}
              {pairs.length > MAX_EFFECTS &&
                ` The chart shows the first ${MAX_EFFECTS} of ${pairs.length}; the table shows all.`}
            </>
          }
          effects={pairs.slice(0, MAX_EFFECTS).flatMap(({ name, cell }) => forestEffects(name, test, cell?.[metric]))}
          left={`${left} in the second run`}
          right={`${right} in the second run`}
          floor={floor}
        />
        <ValueTable pairs={pairs} />
        <MissingRows label="Only before" names={missingNames(first, second)} />
        <MissingRows label="Only after" names={missingNames(second, first)} />
      </div>
    </>
  );
}

interface Pair {
  name: string;
  before: Row;
  after: Row;
  cell: CellComparison | undefined;
}

/**
 * Return the implementations in both runs, worst change first. Each is compared at its load in the first run's main
 * table.
 */
function pairRows(
  first: Table,
  second: Table,
  comparison: Comparison,
  test: string,
  metric: "throughput" | "cpu_per_request",
): Pair[] {
  const others = new Map(second.rows.map((row) => [row.implementation, row]));
  const cells = new Map(
    comparison.cells
      .filter((cell) => cell.test_type === test && !cell.only_in)
      .map((cell) => [`${cell.implementation}\n${label(cell.load)}`, cell]),
  );
  const change = (pair: Pair): number => {
    const ratio = pair.cell?.[metric].ratio?.value ?? Number.NaN;
    return Number.isNaN(ratio) ? Number.POSITIVE_INFINITY : metric === "throughput" ? ratio : -ratio;
  };
  return first.rows
    .flatMap((row): Pair[] => {
      const other = others.get(row.implementation);
      const load = row.load ?? other?.load;
      const cell = load ? cells.get(`${row.implementation}\n${label(load)}`) : undefined;
      return other ? [{ name: row.implementation, before: row, after: other, cell }] : [];
    })
    .sort((a, b) => change(a) - change(b));
}

function forestEffects(name: string, test: string, effect: Effect | undefined) {
  if (!effect?.ratio) return [];
  const tone = effect.verdict === "faster" ? "better" : effect.verdict === "slower" ? "worse" : "tie";
  return [{ name, detail: testName(test), ratio: effect.ratio, tone } as const];
}

function missingNames(first: Table, second: Table): string[] {
  const present = new Set(second.rows.map((row) => row.implementation));
  return first.rows.map((row) => row.implementation).filter((name) => !present.has(name));
}

function MissingRows({ label: heading, names }: { label: string; names: string[] }) {
  if (names.length === 0) return null;
  return (
    <p>
      {heading}: <bdi>{names.join(", ")}</bdi>
    </p>
  );
}

const HEADS = ["Requests/s before", "after", "Requests/s ×", "CPU µs before", "after", "CPU ×"];

function ValueTable({ pairs }: { pairs: Pair[] }) {
  return (
    <PlainTable
      label="Values of both runs"
      heads={[
        "Implementation",
        ...HEADS.map((head) => ({ number: head, class: head.includes("×") ? "" : "wide-only" })),
      ]}
      rows={pairs.map(({ name, before, after, cell }) => ({
        key: name,
        cells: [
          <>
            <bdi>{name}</bdi>
            {cell?.reason && <small class="reason"> {cell.reason}</small>}
          </>,
          <>
            {rate(before.throughput?.estimate.median)}
            <DifferentLoad row={before} other={after} />
          </>,
          <>
            {rate(after.throughput?.estimate.median)}
            <DifferentLoad row={after} other={before} />
          </>,
          ratioCell(cell?.throughput),
          ...[micros(before.cpu_per_request?.estimate.median), micros(after.cpu_per_request?.estimate.median)],
          ratioCell(cell?.cpu_per_request),
        ],
      }))}
    />
  );
}

function ratioCell(effect: Effect | undefined) {
  return {
    show: <RatioFigure ratio={effect?.ratio ?? null} />,
    class: `verdict-${(effect?.verdict ?? "cannot tell").replaceAll(" ", "-")}`,
  };
}

/** A row's load, shown only if the other run's row has a different load. The ratio refers to the first run's load. */
function DifferentLoad({ row, other }: { row: Row; other: Row }) {
  if (!row.load || !other.load || label(row.load) === label(other.load)) return null;
  return <span class="quiet"> {label(row.load)}</span>;
}
