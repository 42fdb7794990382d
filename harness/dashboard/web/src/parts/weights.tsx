// Which test types count for the overall score, and how much; in the URL, so that a link shows the same score.
import { usePage } from "../hooks";
import { testName } from "../load";
import { Menu } from "./menu";

const DATABASE = new Set(["db", "query", "fortune", "update"]);

export function Weights({ tests, weights }: { tests: string[]; weights: Readonly<Record<string, number>> }) {
  const { go } = usePage();
  const set = (next: Record<string, number>): void =>
    go({ weights: Object.fromEntries(Object.entries(next).filter(([, weight]) => weight !== 1)) }, "replace");
  const only = (keep: (test: string) => boolean): void =>
    set(Object.fromEntries(tests.map((test) => [test, keep(test) ? 1 : 0])));
  const counting = tests.filter((test) => (weights[test] ?? 0) > 0).length;
  const mixed = tests.some((test) => DATABASE.has(test)) && tests.some((test) => !DATABASE.has(test));
  return (
    <Menu label={`Score: ${counting} of ${tests.length} tests`} align="right">
      <div class="weights">
        <div class="filter-acts">
          <button type="button" onClick={() => only(() => true)}>
            All
          </button>
          <button type="button" onClick={() => only(() => false)}>
            None
          </button>
          {mixed && (
            <>
              <button type="button" onClick={() => only((test) => DATABASE.has(test))}>
                With database
              </button>
              <button type="button" onClick={() => only((test) => !DATABASE.has(test))}>
                Without database
              </button>
            </>
          )}
        </div>
        {tests.map((test) => (
          <div class="weight" key={test}>
            <label class="check">
              <input
                type="checkbox"
                checked={(weights[test] ?? 0) > 0}
                onChange={(event) => set({ ...weights, [test]: event.currentTarget.checked ? 1 : 0 })}
              />
              {testName(test)}
            </label>
            <input
              type="number"
              min="0"
              max="100"
              step="0.5"
              value={weights[test] ?? 1}
              aria-label={`Weight of ${testName(test)}`}
              onChange={(event) => {
                const weight = event.currentTarget.valueAsNumber;
                if (Number.isFinite(weight) && weight >= 0) set({ ...weights, [test]: weight });
              }}
            />
          </div>
        ))}
      </div>
    </Menu>
  );
}
