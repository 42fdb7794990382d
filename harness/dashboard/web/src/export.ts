// Exports tables as CSV or JSON, and charts as SVG or PNG in the colours of the current theme.

export type Cell = string | number | boolean | null;
export interface Cells {
  columns: string[];
  rows: Cell[][];
}

/** Format cells as CSV (RFC 4180). A leading apostrophe prevents spreadsheets from evaluating text as a formula. */
export function csv({ columns, rows }: Cells): string {
  const field = (value: Cell): string => {
    if (value === null) return "";
    if (typeof value !== "string") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** Convert each row to an object with the column names as keys. */
export function objects({ columns, rows }: Cells): Record<string, Cell>[] {
  return rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index] ?? null])));
}

export function saveCsv(cells: Cells, name: string): void {
  save(new Blob([csv(cells)], { type: "text/csv;charset=utf-8" }), `${fileName(name)}.csv`);
}

export function saveJson(cells: Cells, name: string): void {
  save(new Blob([JSON.stringify(objects(cells), null, 1)], { type: "application/json" }), `${fileName(name)}.json`);
}

export function saveSvg(svg: SVGSVGElement, name: string): void {
  save(new Blob([standalone(svg)], { type: "image/svg+xml" }), `${fileName(name)}.svg`);
}

/** Save a chart as PNG at twice the displayed size, so that it is sharp in print. */
export async function savePng(svg: SVGSVGElement, name: string): Promise<void> {
  const address = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = svg.width.baseVal.value * 2;
    canvas.height = svg.height.baseVal.value * 2;
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(2, 2);
    context.drawImage(image, 0, 0);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob) save(blob, `${fileName(name)}.png`);
  } finally {
    URL.revokeObjectURL(address);
  }
}

const EXPORTED_STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "opacity",
  "fill-opacity",
  "font-family",
  "font-size",
  "font-weight",
];

/** Return a drawing as an SVG document that needs no style sheet: attributes contain the computed styles. */
function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true);
  if (!(copy instanceof SVGSVGElement)) return "";
  const originals = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const copies = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  originals.forEach((original, index) => {
    const style = getComputedStyle(original);
    const target = copies[index];
    if (!target) return;
    for (const property of EXPORTED_STYLES) target.setAttribute(property, style.getPropertyValue(property));
    target.removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of [
    ["width", "100%"],
    ["height", "100%"],
    ["fill", getComputedStyle(document.body).backgroundColor],
  ] as const)
    background.setAttribute(key, value);
  copy.prepend(background);
  return new XMLSerializer().serializeToString(copy);
}

function fileName(name: string): string {
  return (
    name
      .normalize("NFKD")
      .replace(/[^A-Za-z0-9._-]+/g, "-")
      .replace(/^[-.]+|[-.]+$/g, "")
      .slice(0, 80) || "tfb"
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
