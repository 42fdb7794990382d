// Exact amounts of money: strings with two decimals in JSON, BigInt cents in calculations.

/** Parses "12.50" as 1250n. */
export const cents = (text) => BigInt(text.replace('.', ''));

/** Formats 1250n as "12.50". */
export function money(cents) {
  const digits = String(cents).padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
