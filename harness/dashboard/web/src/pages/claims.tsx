// The page with verdicts on claims from talks: a filterable table, then each claim's details, grouped by talk.
import { useEffect, useMemo } from "preact/hooks";
import type { ClaimVerdict } from "../documents";
import {
  claimedValue,
  countByVerdict,
  filterClaims,
  groupByTalk,
  leadingStatement,
  measuredValue,
  VERDICT_MEANINGS,
} from "../claim-verdicts";
import { href, useDocument, usePage } from "../hooks";
import { Waiting } from "../parts/basics";
import { ClaimDetails, VerdictLabel } from "../parts/claim-details";
import { CopyLink } from "../parts/copy-link";
import { number, PlainTable } from "../parts/plain-table";
import { SearchField } from "../parts/search-field";

export function ClaimsPage() {
  const { source, route } = usePage();
  const loaded = useDocument("claims", () => source.claims());
  const verdicts = useMemo(() => (loaded.state === "ready" ? loaded.value.verdicts : []), [loaded]);
  useEffect(() => {
    if (route.claim) document.getElementById(`claim-${route.claim}`)?.scrollIntoView();
  }, [route.claim, verdicts]);
  if (loaded.state !== "ready") return <Waiting loaded={loaded} subject="the claims" />;
  const { problem } = loaded.value;
  const shown = filterClaims(verdicts, route);
  return (
    <>
      <div class="heading">
        <h1>Claims</h1>
        <CopyLink />
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {verdicts.length === 0 ? (
        !problem && (
          <p class="empty">
            No claim has been measured yet. Run <code>./tfb claims run</code>.
          </p>
        )
      ) : (
        <>
          <p>Each verdict holds only for the machine on which it was measured.</p>
          <ClaimFilter verdicts={verdicts} />
          {shown.length === 0 ? <p class="empty">No claims match the filter.</p> : <VerdictTable verdicts={shown} />}
          {groupByTalk(shown).map(([talk, members]) => (
            <section key={talk} class="talk">
              <h2>
                <bdi>{talk}</bdi>
              </h2>
              {members.map((verdict) => (
                <ClaimDetails key={verdict.claim} verdict={verdict} />
              ))}
            </section>
          ))}
        </>
      )}
    </>
  );
}

function ClaimFilter({ verdicts }: { verdicts: readonly ClaimVerdict[] }) {
  const { route, go } = usePage();
  return (
    <div class="toolbar" role="group" aria-label="Filter">
      <label>
        <span>Verdict</span>
        <select value={route.verdict} onChange={(event) => go({ verdict: event.currentTarget.value, claim: "" })}>
          <option value="">all verdicts ({verdicts.length})</option>
          {countByVerdict(verdicts)
            .filter(([, count]) => count > 0)
            .map(([verdict, count]) => (
              <option key={verdict} value={verdict} title={VERDICT_MEANINGS[verdict]}>
                {verdict} ({count})
              </option>
            ))}
        </select>
      </label>
      <SearchField
        value={route.text}
        placeholder="Filter: vert.x latency"
        onInput={(text) => go({ text, claim: "" }, "replace")}
      />
    </div>
  );
}

/** A table of claims with links to their details. Each row shows the statement that decided the verdict. */
function VerdictTable({ verdicts }: { verdicts: readonly ClaimVerdict[] }) {
  const { route } = usePage();
  const rows = verdicts.map((verdict) => {
    const statement = leadingStatement(verdict);
    return {
      key: verdict.claim,
      cells: [
        <VerdictLabel key="verdict" verdict={verdict.verdict} />,
        <>
          <a href={href({ ...route, claim: verdict.claim })}>
            <bdi>{verdict.title}</bdi>
          </a>
          <div class="quiet">
            <bdi>{verdict.talk}</bdi>
          </div>
        </>,
        statement?.name ?? "–",
        statement ? claimedValue(statement) : "–",
        statement ? measuredValue(statement) : "–",
      ],
    };
  });
  const heads = ["Verdict", "Claim", "Statement", number("Claimed"), number("Measured")];
  return <PlainTable label="Verdicts" heads={heads} rows={rows} header={1} cards />;
}
