// Shows how thoroughly implementations were verified: how many checks passed before the load, and how many responses
// were checked under load.
import type { Row } from "../documents";
import { count } from "../format";
import { Tip } from "./basics";

/** Return the amount of verification as text, or an empty string if the rows were not verified. */
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

/** A check mark with a tooltip that shows how much was verified. */
export function VerifiedMark({ row }: { row: Row }) {
  const text = verifiedText([row]);
  if (!text || row.reason) return null;
  return (
    <Tip label={`Verified: ${text}`} class="verified" tip={`Verified: ${text}.`}>
      ✓
    </Tip>
  );
}

/** A sentence that says how thoroughly the implementations were verified, over all test types of the rows. */
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
