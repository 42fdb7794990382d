// Formats numbers in SI units for display, with the same rules as harness/units.py.

export const UNKNOWN = "–";

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Format requests per second with thousands separators. */
export function rate(perSecond: number | null | undefined): string {
  if (!isNumber(perSecond)) return UNKNOWN;
  return Math.abs(perSecond) < 1e15 ? grouped.format(perSecond) : perSecond.toExponential(1);
}

/** Format a count with thousands separators. */
export const count = rate;

/** Format a number with `digits` significant digits, without an exponent unless the absolute value is below 1e-9. */
export function significant(value: number, digits = 3): string {
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-9) return value.toExponential(1);
  const power = Math.floor(Math.log10(Math.abs(value)));
  if (power >= digits - 1) return rate(value);
  return value.toFixed(Math.min(12, Math.max(0, digits - 1 - power)));
}

/** Format a duration with three digits and a suitable unit: 840 µs, 12.3 ms, 4.20 s, 3 min 05 s, 2 h 04 min. */
export function seconds(value: number | null | undefined): string {
  if (!isNumber(value)) return UNKNOWN;
  if (value < 0) return `−${seconds(-value)}`;
  if (value < 0.995e-3) return `${significant(value * 1e6)} µs`;
  if (value < 0.9995) return `${significant(value * 1e3)} ms`;
  if (value < 59.95) return `${significant(value)} s`;
  const total = Math.round(value);
  const minutes = Math.floor(total / 60);
  if (minutes < 60) return `${minutes} min ${String(total % 60).padStart(2, "0")} s`;
  return `${grouped.format(Math.floor(minutes / 60))} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Format a running duration in whole seconds: 42 s, 3 min 05 s. */
export function duration(value: number): string {
  return value < 59.5 ? `${Math.max(0, Math.round(value))} s` : seconds(value);
}

/** Format bytes in binary units: 512 B, 3.4 KiB, 131 MiB. */
export function bytes(value: number | null | undefined): string {
  if (!isNumber(value)) return UNKNOWN;
  let scaled = value;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (Math.abs(scaled) < 1000)
      return `${unit === "B" || scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)} ${unit}`;
    scaled /= 1024;
  }
  return `${scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)} GiB`;
}

/** Format seconds as microseconds with three significant digits and no unit. */
export function micros(value: number | null | undefined): string {
  return isNumber(value) ? significant(value * 1e6) : UNKNOWN;
}

/** Format a ratio: 1.12×, 0.31×, 12.4×, 0.0042×. */
export function times(value: number | null | undefined): string {
  return isNumber(value) ? `${factor(value)}×` : UNKNOWN;
}

/** Format a ratio without ×: 1.12, 0.31, 12.4, 0.0042. */
export function factor(value: number): string {
  const size = Math.abs(value);
  return size < 10 && size >= 0.095 ? value.toFixed(2) : significant(value, size < 0.095 ? 2 : 3);
}

/** Format a share as a percentage: 1.8 %, 12 %. */
export function percent(value: number | null | undefined): string {
  if (!isNumber(value)) return UNKNOWN;
  return `${Math.abs(value) < 0.0995 ? (value * 100).toFixed(1) : (value * 100).toFixed(0)} %`;
}

/** Format an interval as ``[1.08, 1.17]``, or as "" if it is missing or the bounds are equal. */
export function span(
  low: number | null | undefined,
  high: number | null | undefined,
  show: (value: number) => string,
): string {
  if (!isNumber(low) || !isNumber(high) || low === high) return "";
  const [from, to] = [show(low), show(high)];
  return `[${from}, ${to}]`;
}

/** Format a ratio as ``1.12× [1.08, 1.17]``, without the interval if there is none. */
export function timesWithInterval(ratio: { value: number; low: number | null; high: number | null } | null): string {
  if (!ratio || !isNumber(ratio.value)) return UNKNOWN;
  return [times(ratio.value), span(ratio.low, ratio.high, factor)].filter(Boolean).join(" ");
}

/** Format a rank range: ``2`` or ``2–3``. */
export function ranks(interval: { low: number; high: number } | null | undefined): string {
  if (!interval) return UNKNOWN;
  return interval.low === interval.high ? String(interval.low) : `${interval.low}–${interval.high}`;
}

/** Format epoch seconds as a local date and time without seconds. */
export function dateTime(epoch: number | null | undefined): string {
  if (!isNumber(epoch) || epoch <= 0 || epoch > 8.64e12) return UNKNOWN;
  const date = new Date(epoch * 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Format a short axis tick: 0, 500, 20k, 1.5M. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${roundToHundredths(value / 1e6)}M`;
  if (size >= 1e4) return `${roundToHundredths(value / 1e3)}k`;
  if (size >= 1 || value === 0) return roundToHundredths(value);
  return significant(value, 2);
}

function roundToHundredths(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Quote words for a POSIX shell. */
export function shell(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}
