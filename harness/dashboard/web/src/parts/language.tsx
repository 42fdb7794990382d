// An implementation's language, as a coloured dot before the name and as text below it. No information depends on the
// colour alone.
import type { ImplementationInfo } from "../documents";
import { foldCase, NO_FACT } from "../filter";

/** The ten most frequent languages among TechEmpower's implementations. All other languages share a colour. */
export const LANGUAGES = ["Java", "PHP", "Python", "JavaScript", "C#", "Go", "Rust", "Kotlin", "Ruby", "C++"] as const;
const ALIASES: Record<string, string> = { typescript: "javascript" };

/** Return the CSS class for a language's dot. A language has the same colour and shape in every run. */
export function languageClass(info: ImplementationInfo | null): string {
  const key = foldCase(info?.language ?? "");
  const index = LANGUAGES.findIndex((language) => foldCase(language) === (ALIASES[key] ?? key));
  return index < 0 ? "language-other" : `language-${index}`;
}

export function LanguageDot({ info }: { info: ImplementationInfo | null }) {
  return info?.language ? <i class={`dot ${languageClass(info)}`} aria-hidden="true" /> : null;
}

/** A legend of the implementations' languages and their colours. */
export function LanguageLegend({ infos }: { infos: readonly ImplementationInfo[] }) {
  const byClass = new Map<string, Set<string>>();
  for (const info of infos) {
    const names = byClass.get(languageClass(info)) ?? new Set();
    byClass.set(languageClass(info), names.add(info.language || "unknown"));
  }
  return (
    <ul class="legend">
      {[...byClass].sort().map(([key, names]) => (
        <li key={key}>
          <i class={`dot ${key}`} aria-hidden="true" />
          <bdi>{[...names].sort().join(", ")}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** An implementation's language and platform. Values that repeat the name or each other are omitted. */
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
