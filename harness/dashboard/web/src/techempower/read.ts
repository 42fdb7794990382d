// Functions that read values from an untrusted file. Values of the wrong type count as missing.

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

/** Convert a duration from wrk, for example ``841.23us`` or ``1.02s``, to seconds. */
export function duration(value: unknown): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s|m|h)\s*$/.exec(text(value));
  const unit = match?.[2] ? UNITS[match[2]] : undefined;
  return match?.[1] && unit ? Number(match[1]) * unit : null;
}
