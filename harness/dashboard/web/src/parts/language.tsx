// A dot in the language's colour before the name, and facts below it. The colour only supports the text.
import type { ImplementationInfo } from "../documents";
import { foldCase, NO_FACT } from "../filter";

const HUES = 12;

/** Return the colour of a language, which is the same in every table. */
export function hueOf(language: string): number {
  let sum = 0;
  for (const letter of foldCase(language)) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}

export function LanguageDot({ info }: { info: ImplementationInfo | null }) {
  return info?.language ? <i class={`dot hue-${hueOf(info.language)}`} aria-hidden="true" /> : null;
}

/** Language and platform, without repetitions of the name or each other. */
export function LanguageFacts({ info, name }: { info: ImplementationInfo | null; name: string }) {
  const facts = [info?.language, info?.platform].filter(
    (fact, at, all) =>
      fact &&
      foldCase(fact) !== NO_FACT &&
      all.findIndex((other) => foldCase(other ?? "") === foldCase(fact)) === at &&
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
