// A summary by language, platform or any other facet: the implementations in each group, with the group's best
// implementation and median value.
import type { ImplementationInfo } from "../documents";
import { StripChart } from "../charts/strips";
import { facetValues, foldCase } from "../filter";
import { percent } from "../format";
import { usePage } from "../hooks";
import { FACET_NAMES } from "../parts/filters";
import { number, PlainTable } from "../parts/plain-table";
import { FACETS } from "../route";

export interface Member {
  name: string;
  info: ImplementationInfo | null;
  value: number; // metric value or score
  share: number; // share of the best
}

interface Props {
  members: Member[];
  lowerIsBetter: boolean;
  metric: string; // name of the metric
  subject: string; // name of the test type or of the overall score
  format: (value: number) => string;
  tickUnit?: number | undefined;
}

export function Groups({ members, lowerIsBetter, metric, subject, format, tickUnit }: Props) {
  const { route, go } = usePage();
  const groups = grouped(members, route.group, lowerIsBetter);
  const name = FACET_NAMES[route.group].toLowerCase();
  return (
    <>
      <div class="toolbar">
        <label>
          <span>Summary by</span>
          <select
            value={route.group}
            onChange={(event) => {
              const group = FACETS.find((facet) => facet === event.currentTarget.value);
              if (group) go({ group });
            }}
          >
            {FACETS.map((facet) => (
              <option key={facet} value={facet}>
                {FACET_NAMES[facet].toLowerCase()}
              </option>
            ))}
          </select>
        </label>
      </div>
      <StripChart
        title={`${subject}: ${metric} by ${name}`}
        note={`Each tick is an implementation, the highlighted tick is the best in its group, and the dot is the group's median. ${lowerIsBetter ? "Lower is better." : "Higher is better."} Groups contain different sets of implementations.`}
        strips={groups.map((group) => ({
          name: group.name,
          members: group.members.map((member) => ({ name: member.name, value: member.value })),
          median: group.median,
        }))}
        label={metric}
        format={format}
        tickUnit={tickUnit}
      />
      <PlainTable
        cards
        label={`${subject} by ${name}`}
        heads={[
          ...[FACET_NAMES[route.group], number("Implementations"), "Best"],
          ...[`Best ${metric}`, "% of best", "Median"].map(number),
        ]}
        rows={groups.map((group) => ({
          key: group.name,
          cells: [
            ...[group.name, group.members.length, group.members[0]?.name],
            ...[format(group.members[0]?.value ?? 0), percent(group.members[0]?.share), format(group.median)],
          ],
        }))}
      />
    </>
  );
}

interface Group {
  name: string;
  members: Member[]; // best first
  median: number;
}

/** Group members by a facet, with the best member's group first. A member with several tags is in several groups. */
export function grouped(members: readonly Member[], facet: (typeof FACETS)[number], lowerIsBetter: boolean): Group[] {
  const byKey = new Map<string, Group>();
  const direction = lowerIsBetter ? 1 : -1;
  for (const member of [...members].sort((a, b) => direction * (a.value - b.value)))
    for (const value of facetValues(member.info, facet)) {
      const group = byKey.get(foldCase(value)) ?? { name: value, members: [], median: 0 };
      group.members.push(member);
      byKey.set(foldCase(value), group);
    }
  return [...byKey.values()].map((group) => ({
    ...group,
    median: median(group.members.map((member) => member.value)),
  }));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return ((low ?? 0) + (high ?? 0)) / 2;
}
