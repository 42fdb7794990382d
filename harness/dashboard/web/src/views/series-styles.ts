// Assigns line colours, dash patterns and markers to implementations. In a run with at most 16 implementations, each
// implementation keeps its style in all charts.
import type { RunDocument } from "../documents";
import { type SeriesStyle, seriesStyle } from "../charts/palette";
import type { RankedRow } from "../table";

export type StyleFor = (name: string) => SeriesStyle;

export function assignStyles(doc: RunDocument, list: readonly RankedRow[]): StyleFor {
  const all = doc.run.implementations.map((info) => info.name);
  const names = all.length <= 16 ? all : list.map((entry) => entry.name);
  const styles = new Map(names.map((name, index) => [name, seriesStyle(index)]));
  return (name) => styles.get(name) ?? seriesStyle(0);
}
