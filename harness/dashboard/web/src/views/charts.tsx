// The charts of a test type, each of what the filter leaves; a line chart draws the first few.
import type { RunDocument, TestDocument } from "../documents";
import { usePage } from "../hooks";
import type { View } from "../route";
import type { Line } from "../table";
import { Latency } from "./latency";
import { LoadCurve } from "./load";
import { looksOf } from "./looks";
import { Pairs } from "./pairs";

const MOST_LINES = 8;

interface Props {
  view: View;
  list: Line[]; // shown
  doc: RunDocument;
  test: string;
  details: TestDocument | null;
  version: number;
}

export function Charts({ view, list: shown, doc, test, details, version }: Props) {
  const { route } = usePage();
  const list = shown.filter((line) => line.figure);
  if (list.length === 0) return <p class="empty">Nothing that matches the filter has been measured.</p>;
  const looks = looksOf(doc, list);
  const few = list.filter((line, index) => index < MOST_LINES || route.pinned.includes(line.name));
  const rest =
    few.length < list.length ? ` ${few.length} of ${list.length} are drawn: pin or filter to choose others.` : "";
  switch (view) {
    case "load":
      return <LoadCurve list={few} looks={looks} details={details} doc={doc} test={test} rest={rest} />;
    case "latency":
      return <Latency few={few} list={list} looks={looks} doc={doc} test={test} rest={rest} version={version} />;
    default:
      return <Pairs list={list} doc={doc} test={test} />;
  }
}
