"""``python -m harness.tests.doubles.score_fixture``: rankings that the page's own arithmetic is held against.

One invented run ranked by harness.stats, and the same over some test types. The page's tests compare to 1e-9.
"""

import json

from harness.stats.ranking import rank
from harness.tests.doubles.invented import REAL, SPEEDS, finished, implementation, simulated

SUBSET = ("json", "fortune")


def fixture() -> dict[str, object]:
    """The fixture's content."""
    found = simulated(SPEEDS, processes=4, failing={("es4x", "update")})
    whole = finished(found, "fixture", [implementation(row) for row in REAL], started_at=0.0)
    info, trials = whole.info, whole.trials
    ranking = rank(info, trials, [], [])
    some = info.model_copy(update={"loads": {kind: info.loads[kind] for kind in SUBSET}})
    subset = rank(some, [trial for trial in trials if trial.test_type in SUBSET], [], [])
    headlines = {kind: test.model_copy(update={"tables": ()}) for kind, test in ranking.test_types.items()}
    return {
        "ranking": ranking.model_copy(update={"test_types": headlines}).model_dump(mode="json"),
        "subset": {"test_types": SUBSET, "scores": [score.model_dump(mode="json") for score in subset.overall]},
    }


if __name__ == "__main__":
    print(json.dumps(fixture(), indent=1))
