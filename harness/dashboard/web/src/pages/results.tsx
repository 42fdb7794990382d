// The results of a run: tabs of test types, views of each, and what the route chooses of them.
import { useMemo } from "preact/hooks";
import type { RunDocument } from "../documents";
import { usePage, useWanted } from "../hooks";
import { label, testName } from "../load";
import { Answer } from "../parts/answer";
import { Waiting } from "../parts/basics";
import { Tabs } from "../parts/tabs";
import { byName } from "../table";
import { About } from "./about";
import { Overall } from "./overall";
import { TestView } from "./test-view";
import { OrderOperations } from "../views/order-operations";
import { OrderRanking } from "../views/orders";
import { mayHaveLatency, ordersOf, OVERALL, testTabs, viewTabs } from "./views";

const PLACE = 2; // the part of an answer that the heading above says already

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
  const needsLoads = (route.load !== "" || route.view === "load") && test !== OVERALL && test !== "";
  const details = useWanted(
    `test ${route.run} ${test}#${version}`,
    needsLoads ? () => source.test(route.run, test) : null,
  );
  const infos = useMemo(() => byName(run), [run]);
  if (tabs.length === 0)
    return run.status === "running" || route.view !== "about" ? (
      <p class="empty">
        {run.status === "running"
          ? "Nothing has been measured yet: the ranking appears with the first process."
          : "This run has no ranking: nothing was measured."}
      </p>
    ) : (
      <About doc={doc} />
    );
  const atLoad =
    details.state === "ready"
      ? details.value?.tables.find((table) => table.load && label(table.load) === route.load)
      : undefined;
  const table = route.load === "" ? headline : (atLoad ?? null);
  const views = viewTabs(doc, test, headline, mayHaveLatency(doc, test));
  const view = views.find(({ id }) => id === route.view)?.id ?? "table";
  const orders = ordersOf(doc, test);
  const others = (route.load && !orders) || (test === OVERALL && route.without.length); // than what the answer is of
  const said = others ? undefined : doc.sentences[test]?.[route.metric];
  return (
    <>
      <Tabs
        label="Test types"
        panel="results"
        chosen={test}
        onChoose={(id) => go({ test: id, load: "" })}
        tabs={tabs.map((id) => ({ id, label: id === OVERALL ? "Overall" : testName(id) }))}
      />
      <div id="results" role="tabpanel" aria-label={test === OVERALL ? "Overall" : testName(test)} class="results">
        {view !== "about" && <Answer parts={said?.filter((_, part) => part !== PLACE)} />}
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
          ) : test === OVERALL ? (
            <Overall doc={doc} infos={infos} view={view} version={version} />
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
              loaded={details.state === "ready" ? { state: "failed", message: "this load has no table" } : details}
              what={`load ${route.load}`}
            />
          )}
        </div>
      </div>
    </>
  );
}
