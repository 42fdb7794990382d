// Shows how thoroughly implementations were verified: the number of checks before the load, and the number of responses
// checked under load.
import type { Row } from "../documents";
import { count } from "../format";
import { Tip } from "./basics";

/** Describe the number of checks and of responses checked under load. Return an empty string if both are zero. */
export function verifiedText(rows: readonly Pick<Row, "checks" | "responses_checked">[]): string {
  const checks = rows.map((row) => row.checks).filter((number) => number > 0);
  const responses = rows.reduce((sum, row) => sum + row.responses_checked, 0);
  const [least, most] = [Math.min(...checks), Math.max(...checks)];
  const parts = [
    checks.length === 0
      ? ""
      : `${least === most ? most : `${least} to ${most}`} check${most === 1 ? "" : "s"}${rows.length > 1 ? " each" : ""}`,
    responses === 0 ? "" : `${count(responses)} response${responses === 1 ? "" : "s"} under load`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** A check mark with a tooltip that shows how many checks passed and how many responses were checked. */
export function VerifiedMark({ row }: { row: Row }) {
  const text = verifiedText([row]);
  if (!text || row.reason) return null;
  return (
    <Tip label={`Verified: ${text}`} class="verified" tip={`Verified: ${text}.`}>
      ✓
    </Tip>
  );
}

/** A line that shows how thoroughly the implementations were verified. Counts are summed over test types. */
export function VerifiedLine({ rows }: { rows: readonly Row[] }) {
  const sums = new Map<string, Pick<Row, "checks" | "responses_checked">>();
  for (const row of rows) {
    const sum = sums.get(row.implementation) ?? { checks: 0, responses_checked: 0 };
    const { checks, responses_checked } = row.reason ? { checks: 0, responses_checked: 0 } : row;
    sums.set(row.implementation, {
      checks: sum.checks + checks,
      responses_checked: sum.responses_checked + responses_checked,
    });
  }
  const text = verifiedText([...sums.values()]);
  return text ? (
    <p class="verified-line quiet">
      <span aria-hidden="true">✓</span> Verified: {text}.
    </p>
  ) : null;
}
