// A cell's validity checks, and the checks that the responses failed during verification.
import type { Trial, VerificationRecord } from "../documents";
import { count, isNumber, significant } from "../format";
import { label, trialName } from "../load";
import { number, PlainTable } from "./plain-table";

export function ValidityChecks({ trials }: { trials: Trial[] }) {
  const names = [...new Set(trials.flatMap((trial) => trial.validity.map((check) => check.name)))];
  if (names.length === 0) return null;
  return (
    <details>
      <summary>Validity checks: measured and allowed values</summary>
      <PlainTable
        label="Validity checks"
        heads={[...["Check", number("Allowed")], ...trials.map((trial) => number(trialName(trial)))]}
        rows={names.map((name) => ({
          key: name,
          cells: [
            name,
            formatValue(trials.flatMap((trial) => trial.validity).find((check) => check.name === name)?.threshold),
            ...trials.map((trial) => {
              const check = trial.validity.find((item) => item.name === name);
              const passed = check?.outcome === "pass";
              return {
                show: check ? `${formatValue(check.value)}${passed ? "" : ` ${check.outcome}`}` : "–",
                class: `outcome-${check?.outcome ?? "pass"}`,
              };
            }),
          ],
        }))}
      />
    </details>
  );
}

function formatValue(value: number | null | undefined): string {
  return isNumber(value) ? significant(value) : "–";
}

export function Verification({
  verdicts,
  trials,
  passedOmitted,
}: {
  verdicts: VerificationRecord[];
  trials: Trial[];
  passedOmitted: boolean; // published rounds omit passed checks
}) {
  const findings = verdicts.flatMap((verdict) =>
    verdict.results.filter((result) => result.outcome !== "pass").map((result) => ({ verdict, result })),
  );
  const loadFindings = trials.flatMap((trial) =>
    (trial.evidence?.objections ?? []).map((result) => ({ trial, result })),
  );
  const checks = verdicts.reduce((sum, verdict) => sum + verdict.results.length, 0);
  const onlyFindings = passedOmitted && checks === findings.length;
  const processes = `${verdicts.length} process${verdicts.length === 1 ? "" : "es"}`;
  return (
    <section aria-labelledby="verification">
      <h3 id="verification">Verification</h3>
      {verdicts.length === 0 ? (
        <p>This test type has not been verified.</p>
      ) : (
        <p>
          {onlyFindings
            ? `Checks over ${processes}`
            : `${count(checks)} check${checks === 1 ? "" : "s"} over ${processes}`}
          : {findings.length === 0 ? "all passed." : `${findings.length} did not pass.`}
          {onlyFindings && " The published round omits passed checks."}
        </p>
      )}
      {[
        ...findings.map(({ verdict, result }) => ({ where: `process ${verdict.process + 1}`, result })),
        ...loadFindings.map(({ trial, result }) => ({
          where: `under load, ${trialName(trial)}, ${label(trial.load)}`,
          result,
        })),
      ].map(({ where, result }, index) => (
        <div class={`finding ${result.outcome}`} key={index}>
          <p>
            <strong>{result.outcome}</strong> · <code>{result.check}</code> · rule {result.rule} · {where}
          </p>
          {result.message && (
            <p>
              <bdi>{result.message}</bdi>
            </p>
          )}
          {(result.expected !== null || result.actual !== null) && (
            <dl class="diff">
              <div>
                <dt>Expected</dt>
                <dd>
                  <pre tabIndex={0}>{result.expected ?? "–"}</pre>
                </dd>
              </div>
              <div>
                <dt>Actual</dt>
                <dd>
                  <pre tabIndex={0}>{result.actual ?? "–"}</pre>
                </dd>
              </div>
            </dl>
          )}
        </div>
      ))}
      {checks > 0 && !onlyFindings && (
        <details>
          <summary>All checks</summary>
          <ul class="checks">
            {verdicts.flatMap((verdict) =>
              verdict.results.map((result, index) => (
                <li key={`${verdict.process} ${index}`} class={`outcome-${result.outcome}`}>
                  P{verdict.process + 1} {result.outcome}: <code>{result.check}</code> ({result.rule})
                </li>
              )),
            )}
          </ul>
        </details>
      )}
    </section>
  );
}
