// Reads values of a file that anybody may have written: what is of another kind is absent, never a surprise later.

export type Raw = Record<string, unknown>;

export function record(value: unknown): Raw {
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Raw {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function numbers(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((item): item is number => number(item) !== null) : [];
}

const UNITS: Record<string, number> = { us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** wrk's durations, ``841.23us`` or ``1.02s``, in seconds. */
export function duration(value: unknown): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s|m|h)\s*$/.exec(text(value));
  const unit = found?.[2] ? UNITS[found[2]] : undefined;
  return found?.[1] && unit ? Number(found[1]) * unit : null;
}
