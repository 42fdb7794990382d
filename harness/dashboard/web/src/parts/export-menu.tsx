// Export of what is shown: its figures, or a drawing of its bars.
import { render } from "preact";
import { type Cells, saveCsv, saveJson, savePng, saveSvg } from "../export";
import { Drawing, type DrawnRow } from "./drawing";
import { Menu } from "./menu";

interface Props {
  title: string;
  cells: () => Cells;
  drawn: () => { heading: string; rows: DrawnRow[] };
}

export function ExportMenu({ title, cells, drawn }: Props) {
  const draw = (keep: (svg: SVGSVGElement, name: string) => unknown): void => {
    const holder = document.createElement("div");
    holder.className = "drawing";
    document.body.append(holder);
    render(<Drawing {...drawn()} />, holder);
    const svg = holder.querySelector("svg");
    void Promise.resolve(svg && keep(svg, title)).finally(() => {
      render(null, holder);
      holder.remove();
    });
  };
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
