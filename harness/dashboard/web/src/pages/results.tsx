// A run's results: tabs for the test types and their views, and the selected view.
import { useMemo } from "preact/hooks";
import type { RunDocument } from "../documents";
import { usePage, useOptionalDocument } from "../hooks";
import { label } from "../load";
import { Summary } from "../parts/summary";
import { CommonFlags, Waiting } from "../parts/basics";
import { SelectionBar } from "../parts/selection";
import { Tabs } from "../parts/tabs";
import { scorable } from "../scores";
import { flagsOfRun, infosByName } from "../table";
import { About } from "./about";
import { Overall } from "./overall";
import { TestView } from "./test-view";
import { OrderOperations } from "../views/order-operations";
import { OrderRanking } from "../views/orders";
import { SelectedRows } from "../views/selected-rows";
import { isScore, mayHaveLatency, orderResults, scoredGroup, tabLabel, testTabs, viewTabs } from "./view-tabs";

const ENVIRONMENT_SENTENCE = 2; // index of the summary sentence that names the machine; the heading already shows it

interface Props {
  doc: RunDocument;
  version: number;
}

export function Results({ doc, version }: Props) {
  const { source, route, go } = usePage();
  const { run, ranking } = doc;
  const tabs = testTabs(doc);
  const test = tabs.includes(route.test) ? route.test : (tabs[0] ?? "");
  const headline = ranking.test_types[test]?.headline ?? null;
  const needsLoads = (route.load !== "" || route.view === "load") && !isScore(test) && test !== "";
  const details = useOptionalDocument(
    `test ${route.run} ${test}#${version} ${route.baseline}`,
    needsLoads ? () => source.test(route.run, test, route.baseline) : null,
  );
  const infos = useMemo(() => infosByName(run), [run]);
  const runFlags = useMemo(() => flagsOfRun(ranking), [ranking]);
  if (tabs.length === 0)
    return run.status === "running" || route.view !== "about" ? (
      <p class="empty">
        {run.status === "running"
          ? "Nothing has been measured yet. The ranking appears after the first process."
          : "This run has no ranking because nothing was measured."}
      </p>
    ) : (
      <About doc={doc} />
    );
  const tableAtLoad =
    details.state === "ready"
      ? details.value?.tables.find((table) => table.load && label(table.load) === route.load)
      : undefined;
  const table = route.load === "" ? headline : (tableAtLoad ?? null);
  const views = viewTabs(doc, test, headline, {
    latency: mayHaveLatency(doc, test),
    selected: route.selected.length > 1,
  });
  const view = views.find(({ id }) => id === route.view)?.id ?? "table";
  const orders = orderResults(doc, test);
  // The summary covers the headline loads and all test types, so it is hidden for other selections.
  const partial =
    (route.load && !orders) ||
    (isScore(test) && scorable(ranking, scoredGroup(test)).some((each) => route.excludedTests.includes(each)));
  const sentences = partial ? undefined : doc.sentences[test]?.[route.metric];
  return (
    <>
      <Tabs
        label="Test types"
        panel="results"
        chosen={test}
        onChoose={(id) => go({ test: id, load: "" })}
        tabs={tabs.map((id) => ({ id, label: tabLabel(id) }))}
      />
      <div id="results" role="tabpanel" aria-label={tabLabel(test)} class="results">
        {view !== "about" && (
          <>
            <Summary parts={sentences?.filter((_, part) => part !== ENVIRONMENT_SENTENCE)} />
            <CommonFlags flags={runFlags} scope="run" />
          </>
        )}
        <Tabs
          quiet
          label="Views"
          panel="view"
          chosen={view}
          onChoose={(id) => {
            const chosen = views.find((item) => item.id === id);
            if (chosen) go({ view: chosen.id });
          }}
          tabs={views}
        />
        <div id="view" role="tabpanel" aria-label={views.find(({ id }) => id === view)?.label ?? ""}>
          {view === "about" ? (
            <About doc={doc} />
          ) : view === "selected" ? (
            <SelectedRows doc={doc} infos={infos} test={test} group={scoredGroup(test)} table={table} />
          ) : isScore(test) ? (
            <Overall doc={doc} infos={infos} group={scoredGroup(test)} view={view} version={version} />
          ) : orders && view === "latency" ? (
            <OrderOperations orders={orders} />
          ) : orders ? (
            <OrderRanking doc={doc} orders={orders} infos={infos} />
          ) : table ? (
            <TestView
              doc={doc}
              infos={infos}
              table={table}
              test={test}
              view={view}
              details={details.state === "ready" ? details.value : null}
              version={version}
            />
          ) : (
            <Waiting
              loaded={details.state === "ready" ? { state: "failed", message: "this load was not measured" } : details}
              subject={`load ${route.load}`}
            />
          )}
        </div>
        {view !== "about" && view !== "selected" && !orders && <SelectionBar />}
      </div>
    </>
  );
}
