// A test type's charts for the implementations that match the filter. Line charts show the first eight and all pinned
// implementations.
import type { RunDocument, TestDocument } from "../documents";
import { usePage } from "../hooks";
import type { View } from "../route";
import type { RankedRow } from "../table";
import { Latency } from "./latency";
import { LoadCurve } from "./load-curve";
import { assignStyles } from "./series-styles";
import { Pairs } from "./pairs";
import { Scatter } from "./scatter";

const MAX_LINES = 8;

interface Props {
  view: View;
  list: RankedRow[]; // rows that match the filter
  doc: RunDocument;
  test: string;
  details: TestDocument | null;
  version: number;
}

export function Charts({ view, list: visible, doc, test, details, version }: Props) {
  const { route } = usePage();
  const list = visible.filter((entry) => entry.figure);
  if (list.length === 0) return <p class="empty">No matching implementation has been measured.</p>;
  const styleFor = assignStyles(doc, list);
  const drawn = list.filter((entry, index) => index < MAX_LINES || route.pinned.includes(entry.name));
  const omittedNote =
    drawn.length < list.length ? ` ${drawn.length} of ${list.length} are shown; pin or filter to select others.` : "";
  switch (view) {
    case "load":
      return (
        <LoadCurve list={drawn} styleFor={styleFor} details={details} doc={doc} test={test} omittedNote={omittedNote} />
      );
    case "latency":
      return (
        <Latency
          drawn={drawn}
          list={list}
          styleFor={styleFor}
          doc={doc}
          test={test}
          omittedNote={omittedNote}
          version={version}
        />
      );
    case "scatter":
      return <Scatter list={list} doc={doc} test={test} />;
    default:
      return <Pairs list={list} doc={doc} test={test} />;
  }
}
