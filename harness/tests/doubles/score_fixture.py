"""``python -m harness.tests.doubles.score_fixture``: rankings that the page's own arithmetic is held against.

One invented run ranked by harness.stats, and the same over some test types. The page's tests compare to 1e-9.
"""

import json

from harness.stats.ranking import rank
from harness.tests.doubles.invented import REAL, Maker, implementation

SUBSET = ("json", "fortune")


def fixture() -> dict[str, object]:
    """The fixture's content."""
    maker = Maker("fixture", [implementation(row) for row in REAL], processes=4, seed=42)
    info = maker.info(started_at=0.0)
    trials = maker.trials({("es4x", "update")})
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
