// Which line, mark and colour an implementation has: the same in every chart of a run while there are few.
import type { RunDocument } from "../documents";
import { type Look, look } from "../charts/palette";
import type { Line } from "../table";

export type Looks = (name: string) => Look;

export function looksOf(doc: RunDocument, list: readonly Line[]): Looks {
  const all = doc.run.implementations.map((info) => info.name);
  const names = all.length <= 16 ? all : list.map((line) => line.name);
  const looks = new Map(names.map((name, index) => [name, look(index)]));
  return (name) => looks.get(name) ?? look(0);
}
