// A menu that exports the displayed data as CSV, JSON, SVG or PNG.
import { render } from "preact";
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";
import { BarDrawing, type BarRow } from "./bar-drawing";
import { Menu } from "./menu";

type Save = (svg: SVGSVGElement, name: string) => unknown;

interface Props {
  title: string;
  cells: () => Cells;
  draw: (save: Save) => void; // creates the drawing and passes it to `save`
}

export function ExportMenu({ title, cells, draw }: Props) {
  return (
    <Menu label="Export">
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

/** The export menu for a table. SVG and PNG files show the rows as bars. */
export function BarsExport({ title, cells, bars }: Omit<Props, "draw"> & { bars: () => Bars }) {
  const draw = (save: Save): void => {
    const container = document.createElement("div");
    container.className = "drawing";
    document.body.append(container);
    render(<BarDrawing {...bars()} />, container);
    const svg = container.querySelector("svg");
    void Promise.resolve(svg && save(svg, title)).finally(() => {
      render(null, container);
      container.remove();
    });
  };
  return <ExportMenu title={title} cells={cells} draw={draw} />;
}

interface Bars {
  heading: string;
  rows: BarRow[];
}
