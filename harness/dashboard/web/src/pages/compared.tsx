// The comparison of two runs, test type by test type; every ratio and verdict is harness/stats's.
import type { CellComparison, Comparison, ComparisonDocument, Effect, Row, RunDocument, Table } from "../documents";
import { ForestPlot } from "../charts/forest";
import { isNumber, micros, rate } from "../format";
import { usePage } from "../hooks";
import { label, testName } from "../load";
import { Answer } from "../parts/answer";
import { Problems } from "../parts/basics";
import { Notes } from "../parts/notes";
import { PlainTable } from "../parts/plain-table";
import { RatioPair } from "../parts/small";
import { Tabs } from "../parts/tabs";

interface Props {
  before: RunDocument;
  after: RunDocument;
  told: ComparisonDocument;
}

const MOST = 80;

export function Compared({ before, after, told: { comparison, verdict } }: Props) {
  const { route, go } = usePage();
  const tests = Object.keys(before.ranking.test_types).filter((test) => Object.hasOwn(after.ranking.test_types, test));
  const test = tests.includes(route.test) ? route.test : (tests[0] ?? "");
  const [one, two] = [before, after].map((run) => run.ranking.test_types[test]?.headline);
  if (!one || !two) return <p class="empty">These runs have no test type in common.</p>;
  const metric = after.ranking.leading === "cpu" ? "cpu_per_request" : "throughput";
  const pairs = pairsOf(one, two, comparison, test, metric);
  const [what, left, right] =
    metric === "throughput" ? ["throughput", "slower", "faster"] : ["CPU per request", "less CPU", "more CPU"];
  const floor = comparison.noise_floor?.[metric] ?? null;
  return (
    <>
      <Answer parts={verdict} />
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
          title={`${testName(test)}: ${what} after ÷ before`}
          note={
            <>
              {Math.round(comparison.confidence * 100)} % intervals. A filled square is decided with Holm's correction
              over all cells; a hollow one may be chance.
              {isNumber(floor) &&
                ` The shaded band is the machine's noise floor (±${(floor * 100).toFixed(1)} %): smaller differences are noise.`}
              {pairs.length > MOST && ` The first ${MOST} of ${pairs.length} are drawn: the table has all.`}
            </>
          }
          effects={pairs.slice(0, MOST).flatMap(({ name, cell }) => effectOf(name, test, cell?.[metric]))}
          left={`${left} in the second run`}
          right={`${right} in the second run`}
          floor={floor}
        />
        <Figures pairs={pairs} />
        <Missing name="Only before" names={missing(one, two)} />
        <Missing name="Only after" names={missing(two, one)} />
      </div>
    </>
  );
}

interface Pair {
  name: string;
  one: Row;
  two: Row;
  cell: CellComparison | undefined;
}

/** The implementations of both, the worst change first; each at the load of the first run's headline. */
function pairsOf(
  one: Table,
  two: Table,
  comparison: Comparison,
  test: string,
  metric: "throughput" | "cpu_per_request",
): Pair[] {
  const others = new Map(two.rows.map((row) => [row.implementation, row]));
  const cells = new Map(
    comparison.cells
      .filter((cell) => cell.test_type === test)
      .map((cell) => [`${cell.implementation}\n${label(cell.load)}`, cell]),
  );
  const change = (pair: Pair): number => {
    const ratio = pair.cell?.[metric].ratio?.value ?? Number.NaN;
    return Number.isNaN(ratio) ? Number.POSITIVE_INFINITY : metric === "throughput" ? ratio : -ratio;
  };
  return one.rows
    .flatMap((row): Pair[] => {
      const other = others.get(row.implementation);
      const load = row.load ?? other?.load;
      const cell = load ? cells.get(`${row.implementation}\n${label(load)}`) : undefined;
      return other ? [{ name: row.implementation, one: row, two: other, cell }] : [];
    })
    .sort((a, b) => change(a) - change(b));
}

function effectOf(name: string, test: string, effect: Effect | undefined) {
  if (!effect?.ratio) return [];
  const tone = effect.verdict === "faster" ? "better" : effect.verdict === "slower" ? "worse" : "tie";
  return [{ name, detail: testName(test), ratio: effect.ratio, tone } as const];
}

function missing(one: Table, two: Table): string[] {
  const there = new Set(two.rows.map((row) => row.implementation));
  return one.rows.map((row) => row.implementation).filter((name) => !there.has(name));
}

function Missing({ name, names }: { name: string; names: string[] }) {
  if (names.length === 0) return null;
  return (
    <p>
      {name}: <bdi>{names.join(", ")}</bdi>
    </p>
  );
}

const HEADS = ["Requests/s before", "after", "Requests/s ×", "CPU µs before", "after", "CPU ×"];

function Figures({ pairs }: { pairs: Pair[] }) {
  return (
    <PlainTable
      label="Figures of both runs"
      heads={[
        "Implementation",
        ...HEADS.map((head) => ({ number: head, class: head.includes("×") ? "" : "wide-only" })),
      ]}
      rows={pairs.map(({ name, one, two, cell }) => ({
        key: name,
        cells: [
          <>
            <bdi>{name}</bdi>
            {cell?.reason && <small class="reason"> {cell.reason}</small>}
          </>,
          <>
            {rate(one.throughput?.estimate.median)}
            <AtLoad row={one} other={two} />
          </>,
          <>
            {rate(two.throughput?.estimate.median)}
            <AtLoad row={two} other={one} />
          </>,
          ratioOf(cell?.throughput),
          ...[micros(one.cpu_per_request?.estimate.median), micros(two.cpu_per_request?.estimate.median)],
          ratioOf(cell?.cpu_per_request),
        ],
      }))}
    />
  );
}

function ratioOf(effect: Effect | undefined) {
  return {
    show: <RatioPair ratio={effect?.ratio ?? null} />,
    class: `verdict-${(effect?.verdict ?? "cannot tell").replaceAll(" ", "-")}`,
  };
}

/** The load, where the two headlines are of different ones: the ratio is at the first run's. */
function AtLoad({ row, other }: { row: Row; other: Row }) {
  if (!row.load || !other.load || label(row.load) === label(other.load)) return null;
  return <span class="quiet"> {label(row.load)}</span>;
}
