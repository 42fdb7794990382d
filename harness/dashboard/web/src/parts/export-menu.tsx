// Export of what is shown: its figures, or a drawing of them.
import { render } from "preact";
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";
import { Drawing, type DrawnRow } from "./drawing";
import { Menu } from "./menu";

type Save = (svg: SVGSVGElement, name: string) => unknown;

interface Props {
  title: string;
  cells: () => Cells;
  draw: (save: Save) => void; // hands the drawing over
}

export function ExportMenu({ title, cells, draw }: Props) {
  return (
    <Menu label="Export" align="right">
      <div class="choices">
        <button type="button" onClick={() => saveCsv(cells(), title)}>
          CSV
        </button>
        <button type="button" onClick={() => saveJson(cells(), title)}>
          JSON
        </button>
        <button type="button" onClick={() => draw(saveSvg)}>
          SVG
        </button>
        <button type="button" onClick={() => draw(savePng)}>
          PNG
        </button>
      </div>
    </Menu>
  );
}

/** The export of a table, whose rows are drawn for it as bars. */
export function BarsExport({ title, cells, drawn }: Omit<Props, "draw"> & { drawn: () => Bars }) {
  const draw = (save: Save): void => {
    const holder = document.createElement("div");
    holder.className = "drawing";
    document.body.append(holder);
    render(<Drawing {...drawn()} />, holder);
    const svg = holder.querySelector("svg");
    void Promise.resolve(svg && save(svg, title)).finally(() => {
      render(null, holder);
      holder.remove();
    });
  };
  return <ExportMenu title={title} cells={cells} draw={draw} />;
}

interface Bars {
  heading: string;
  rows: DrawnRow[];
}
