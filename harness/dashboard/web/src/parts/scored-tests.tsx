// A menu that selects the test types for the overall score. The URL contains the selection, so links keep it.
import { usePage } from "../hooks";
import { testName } from "../load";
import { Menu } from "./menu";

export function ScoredTests({ tests, counting }: { tests: string[]; counting: readonly string[] }) {
  const { route, go } = usePage();
  return (
    <Menu label={`Score: ${counting.length} of ${tests.length} tests`}>
      <div class="choices">
        {tests.map((test) => (
          <label class="check" key={test}>
            <input
              type="checkbox"
              checked={counting.includes(test)}
              onChange={() =>
                go(
                  {
                    excludedTests: counting.includes(test)
                      ? [...route.excludedTests, test]
                      : route.excludedTests.filter((other) => other !== test),
                  },
                  "replace",
                )
              }
            />
            {testName(test)}
          </label>
        ))}
      </div>
    </Menu>
  );
}
