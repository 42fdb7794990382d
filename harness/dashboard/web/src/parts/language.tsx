// A dot of the language's colour before the name, and the facts below it. The dot only helps the eye: the name is text.
import type { ImplementationInfo } from "../documents";
import { folded, NO_FACT } from "../filter";

const HUES = 12;

/** The same colour for the same language in every table. */
export function hueOf(language: string): number {
  let sum = 0;
  for (const letter of folded(language)) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}

export function LanguageDot({ info }: { info: ImplementationInfo | null }) {
  return info?.language ? <i class={`dot hue-${hueOf(info.language)}`} aria-hidden="true" /> : null;
}

/** Language and platform, without what the name or the other says already. */
export function Facts({ info, name }: { info: ImplementationInfo | null; name: string }) {
  const facts = [info?.language, info?.platform].filter(
    (fact, at, all) =>
      fact &&
      folded(fact) !== NO_FACT &&
      all.findIndex((other) => folded(other ?? "") === folded(fact)) === at &&
      fact !== name,
  );
  return (
    <>
      {facts.map((fact, index) => (
        <bdi key={index}>{fact}</bdi>
      ))}
    </>
  );
}
