"""``python -m harness.benchmarks.tries``: whole runs on two copies of one server and on one that costs 10 % more.

One run measures the three in every block, as any run does: verified, warmed, gated. Each try then begins at a block of
its own and takes further blocks until the profile's stopping rule is content, around the end of the run where need be;
the first looks of all tries are thus of different blocks. A try of the copies should come out as a tie.

With ``--duets`` each try is so many starts of duets of its own, decided as the ranking decides them: the plain server
with its copy, with the slower one, and with itself for the bias.

With ``--turns`` one process of each stays up and is measured in turns, as in the default run, and each try is so many
rounds of its own, decided by the paired t of its rounds: an order of these processes, from a warm start. Of
implementations a run says less: what fresh processes differ by comes on top.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from rich.console import Console

from harness.benchmarks import spinning, trials
from harness.benchmarks.command import command
from harness.benchmarks.trials import METRICS, Metric
from harness.cli.arguments import parser
from harness.cli.settings import settings
from harness.errors import Exit, UsageError
from harness.plan import profile as profiles
from harness.plan.config import Settings
from harness.plan.profile import Replication
from harness.records.models import Closed, Sample
from harness.run import progress, workflow
from harness.run.duets import Duet
from harness.stats import duet
from harness.stats.model import Ranking

PLAIN, COPY, SLOWER = "spin", "spin-copy", "spin-slower"
TEST_TYPE = "json"
CONNECTIONS = 64
LEVEL = Closed(connections=CONNECTIONS)
CALIBRATION_SECONDS = 2.0
TURNS_SETUP_SECONDS, TURNS_OVERHEAD_SECONDS = 60.0, 0.35  # of a run in turns, and of each of its windows


@dataclass(frozen=True, kw_only=True)
class Try:
    """How one try came out: by metric ``first``, ``second`` (which of the two is better) or ``tie``."""

    found: dict[Metric, str]
    replicates: int


def main(argv: Sequence[str]) -> int:
    """Calibrate, run, replay, print a Markdown table."""
    p = argparse.ArgumentParser(prog="python -m harness.benchmarks.tries", description=__doc__)
    p.add_argument("--tries", type=int, default=20)
    p.add_argument("--blocks", type=int, default=100, help="of the run that the tries are taken from (default 100)")
    p.add_argument("--profile", default="standard")
    p.add_argument("--duration", type=int, default=2, help="seconds of a sample (default 2)")
    p.add_argument("--warm-up", type=float, default=2.0, help="at most so many seconds (default 2)")
    p.add_argument("--more", type=float, default=10.0, help="per cent of CPU that the third needs more (default 10)")
    p.add_argument("--pin", action="store_true", help="the first CPU serves, the others load (default: all share all)")
    p.add_argument(
        "--duets",
        type=int,
        default=0,
        metavar="STARTS",
        help="instead of blocks: tries of so many starts of duets each (the profile's default is 6)",
    )
    p.add_argument(
        "--turns",
        type=int,
        default=0,
        metavar="ROUNDS",
        help="instead of blocks: tries of so many rounds each of servers that stay up",
    )
    p.add_argument("--without-copy", action="store_true", help="with --turns: without the copy")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--results", help="another results folder")
    options = p.parse_args(list(argv))
    rule = profiles.load(options.profile).replication
    if not options.duets and not options.turns and options.blocks < max(rule.maximum, options.tries):
        raise UsageError(
            f"--blocks {options.blocks}: {options.tries} tries of profile {options.profile}, which may take "
            f"{rule.maximum} replicates, need at least {max(rule.maximum, options.tries)}"
        )
    with tempfile.TemporaryDirectory(prefix="tfb-tries-") as scratch:
        site = spinning.Site.on(CONNECTIONS, pinned=options.pin or options.duets > 0)
        rounds = round(options.more / 100 * spinning.calibrate(site, CALIBRATION_SECONDS, options.warm_up))
        write_implementations(Path(scratch), rounds, copy=not options.without_copy)
        chosen = _settings(options, Path(scratch), site)
        outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=False)), pairs)
    samples = outcome.records.samples
    if options.turns:
        text = turns_report(options, samples, rounds)
    elif options.duets:
        text = duet_report(options, samples, rule.confidence, rounds)
    else:
        text = report(options, samples, rule, rounds)
    Console(soft_wrap=True, markup=False, highlight=False).print(text)
    return Exit.OK if not outcome.failures else Exit.FAILED


def pairs(_: Ranking) -> tuple[Duet, ...]:
    """The plain server with its copy, with the slower one, and with itself, whatever the blocks say."""
    return tuple(Duet(first=PLAIN, second=other, test_type=TEST_TYPE, level=LEVEL) for other in (COPY, SLOWER, PLAIN))


def write_implementations(folder: Path, rounds: int, *, copy: bool = True) -> None:
    """A frameworks folder with the server, its copy where it is wanted, and the slower one."""
    home = folder / "JavaScript" / PLAIN
    home.mkdir(parents=True)
    tests = {
        title: {
            "json_url": "/json",
            "language": "JavaScript",
            "platform": "Node.js",
            "local": {
                "requires": {"node": ">=20"},
                "run": ["node", str(spinning.PROGRAM)],
                "env": {"SPIN": str(spin)},
            },
        }
        for title, spin in (("default", 0), ("copy", 0), ("slower", rounds))
        if copy or title != "copy"
    }
    document = {"framework": PLAIN, "tests": [tests]}
    (home / "benchmark_config.json").write_text(json.dumps(document, indent=2), encoding="utf-8")


def _settings(options: argparse.Namespace, frameworks: Path, site: spinning.Site) -> Settings:
    """A run of the profile with short windows and a fixed number of blocks, or of so many rounds in turns."""
    if options.turns:
        return _in_turns(options, frameworks)
    blocks = 1 if options.duets else options.blocks
    words = [
        *("--test", "run", "--type", TEST_TYPE, "--runtime", "local", "--frameworks", str(frameworks)),
        *("--order", "duet" if options.duets else "blocks"),
        *("--profile", options.profile, "--duration", str(options.duration), "--replicates", str(blocks)),
        *("--concurrency-levels", str(CONNECTIONS), "--seed", str(options.seed), "--reference", PLAIN),
        *(("--results", options.results) if options.results else ()),
    ]
    chosen = settings(parser().parse_args(words), ("bench-tries", *words))
    short = {
        "primer_seconds": 0.0,
        "minimum_seconds": min(1.0, options.warm_up),
        "cap_seconds": options.warm_up,
        "jit_cap_seconds": options.warm_up,
    }
    changed: dict[str, object] = {"warm_up": chosen.profile.warm_up.model_copy(update=short)}
    if options.duets:
        starts = options.tries * options.duets
        changed["duets"] = chosen.profile.duets.model_copy(update={"starts": starts, "seconds": options.duration})
    if site.server_cpus and site.other_cpus and not options.duets:  # --order duet halves the CPUs itself
        changed |= {"server_cpus": _list(site.server_cpus), "other_cpus": _list(site.other_cpus)}
    return replace(chosen, profile=chosen.profile.model_copy(update=changed))


def _in_turns(options: argparse.Namespace, frameworks: Path) -> Settings:
    """The default profile with one process each and no sweep, for as long as its rounds take."""
    servers = 2 if options.without_copy else 3
    windows = options.tries * options.turns * servers
    seconds = TURNS_SETUP_SECONDS + windows * (options.duration + TURNS_OVERHEAD_SECONDS)
    words = [
        *("--test", "run", "--type", TEST_TYPE, "--runtime", "local", "--frameworks", str(frameworks)),
        *("--profile", "quick", "--duration", str(options.duration), "--time", f"{seconds:.0f}s"),
        *("--concurrency-levels", str(CONNECTIONS), "--seed", str(options.seed), "--reference", PLAIN),
        *(("--results", options.results) if options.results else ()),
    ]
    chosen = settings(parser().parse_args(words), ("bench-tries", *words))
    assert chosen.profile.rounds is not None  # noqa: S101 - quick has them
    alike = chosen.profile.rounds.model_copy(update={"every_level": True, "processes": 1})
    return replace(chosen, profile=chosen.profile.model_copy(update={"rounds": alike}))


def turns_report(options: argparse.Namespace, samples: Sequence[Sample], rounds: int) -> str:
    """How the rounds of each try decide by themselves, and what all of them together show."""
    kept = [sample for sample in samples if sample.rankable and sample.round is not None]
    numbers = sorted({sample.round for sample in kept if sample.round is not None})
    tries = [numbers[at : at + options.turns] for at in range(0, len(numbers), options.turns)]
    tries = [each for each in tries if len(each) == options.turns][: options.tries]
    seconds = 2 * options.turns * options.duration
    lines = [
        f"{len(tries)} tries of {options.turns} rounds, windows of {options.duration} s: {seconds:g} s of load a pair; "
        f"{rounds:,} rounds of spinning for {options.more:g} % more CPU",
        "",
        "| pair | metric | tie | first better | second better | second ÷ first over all |",
        "|---|---|---|---|---|---|",
    ]
    names = {sample.implementation for sample in kept}
    for second in (name for name in (COPY, SLOWER) if name in names):
        for metric in METRICS:
            values = {
                name: {s.round or 0: float(v) for s in kept if s.implementation == name and (v := getattr(s, metric))}
                for name in (PLAIN, second)
            }
            found = [_better(values, second, each, metric) for each in tries]
            counts = " | ".join(str(found.count(word)) for word in ("tie", PLAIN, second))
            lines.append(f"| {PLAIN}, {second} | {metric} | {counts} | {_of_rounds(values, second, numbers)} |")
    return "\n".join(lines)


def _better(values: Mapping[str, Mapping[int, float]], second: str, numbers: Sequence[int], metric: Metric) -> str:
    """Which one is better by these rounds, at 95 %; otherwise a tie."""
    own = [{number: of[number] for number in numbers if number in of} for of in (values[PLAIN], values[second])]
    ratio = trials.paired_ratio(*own)
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return "tie"
    more_is_better = metric == "throughput"
    return second if (ratio.value > 1) == more_is_better else PLAIN


def _of_rounds(values: Mapping[str, Mapping[int, float]], second: str, numbers: Sequence[int]) -> str:
    own = [{number: of[number] for number in numbers if number in of} for of in (values[PLAIN], values[second])]
    ratio = trials.paired_ratio(*own)
    return f"{ratio.value:.3f}× [{ratio.low or math.nan:.3f}, {ratio.high or math.nan:.3f}]"


def _list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))


def play(samples: Sequence[Sample], first: str, second: str, rule: Replication, tries: int) -> list[Try]:
    """Tries of one pair, each from a block of its own on."""
    blocks = sorted({sample.block for sample in samples})
    by_block = {b: [s for s in samples if s.block == b and s.implementation in (first, second)] for b in blocks}
    found = []
    for number in range(tries):
        begin = number * len(blocks) // tries
        drawn = [
            [sample.model_copy(update={"block": i, "replicate": i}) for sample in by_block[block]]
            for i, block in enumerate((blocks[begin:] + blocks[:begin])[: rule.maximum])
        ]
        rows, used = trials.play(drawn, (first, second), rule)
        words = {1: "first", -1: "second", 0: "tie"}
        found.append(
            Try(found={metric: words[trials.decision(rows, first, metric)] for metric in METRICS}, replicates=used)
        )
    return found


def duet_report(options: argparse.Namespace, samples: Sequence[Sample], confidence: float, rounds: int) -> str:
    """How the duets of each try decide, as the ranking decides them, and what all of them together show."""
    played = [sample for sample in samples if sample.duet_partner is not None]
    starts = sorted({sample.block for sample in played})
    alpha = (1 - confidence) * duet.ERROR_SHARE
    tries = []
    for number in range(options.tries):
        mine = set(starts[number * options.duets : (number + 1) * options.duets])
        tries.append(duet.decide_all([s for s in played if s.block in mine], alpha=alpha))
    matched = {names: found for (*_, names), found in duet.match(played).items()}
    lines = [
        f"{options.tries} tries of {options.duets} starts of duets, samples of {options.duration} s, warm-up up to "
        f"{options.warm_up:g} s; {rounds:,} rounds of spinning for {options.more:g} % more CPU",
        "",
        "| pair | metric | tie | first better | second better | second ÷ first over all |",
        "|---|---|---|---|---|---|",
    ]
    for other in (COPY, SLOWER):
        names = (PLAIN, other)
        for metric in METRICS:
            found = [getattr(decided, metric).get((TEST_TYPE, LEVEL), {}).get(names, "tie") for decided in tries]
            counts = " | ".join(str(found.count(word)) for word in ("tie", *names))
            effect = duet.order(duet.turns(matched.get(names, []), other, metric))
            lines.append(f"| {PLAIN}, {other} | {metric} | {counts} | {_effect(effect)} |")
    for metric in METRICS:
        itself = duet.bias(matched.get((PLAIN, PLAIN), []), metric)
        lines.append(f"| {PLAIN} with itself | {metric} | | | | {_effect(itself)} |")
    return "\n".join(lines)


def _effect(order: duet.Order | None) -> str:
    if order is None:
        return "–"
    return f"{math.expm1(order.effect):+.1%} ± {order.bound(0.95) - abs(order.effect):.1%} in {order.starts} starts"


def report(options: argparse.Namespace, samples: Sequence[Sample], rule: Replication, rounds: int) -> str:
    """The figures as Markdown."""
    kept = [sample for sample in samples if sample.rankable]
    contended = sum(1 for sample in kept if any(g.name == "contended" and g.word for g in sample.gates))
    lines = [
        f"{options.tries} tries of a run of {len({s.block for s in samples})} blocks, profile {options.profile}"
        f"{', one CPU for the server' if options.pin else ''}, with "
        f"samples of {options.duration} s and warm-up up to {options.warm_up:g} s; looks at "
        f"{', '.join(map(str, rule.looks))} replicates; {rounds:,} rounds of spinning for {options.more:g} % more CPU; "
        f"{len(samples)} samples, {len(samples) - len(kept)} kept out by gates, {contended} contended",
        "",
        "| pair | metric | tie | first better | second better | replicates a try | throughput ratio | CPU ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for second in (COPY, SLOWER):
        tries = play(kept, PLAIN, second, rule, options.tries)
        sizes = " | ".join(_ratio(kept, second, metric) for metric in METRICS)
        for metric in METRICS:
            counts = [sum(one.found[metric] == word for one in tries) for word in ("tie", "first", "second")]
            taken = f"{mean(one.replicates for one in tries):.1f}"
            lines.append(f"| {PLAIN}, {second} | {metric} | {' | '.join(map(str, counts))} | {taken} | {sizes} |")
    return "\n".join(lines)


def _ratio(samples: Sequence[Sample], second: str, metric: Metric) -> str:
    """The second over the first over all blocks, paired, with its 95 % interval."""
    values = {
        name: {s.block: float(value) for s in samples if s.implementation == name and (value := getattr(s, metric))}
        for name in (PLAIN, second)
    }
    found = trials.paired_ratio(values[PLAIN], values[second])
    return f"{found.value:.3f}×" + (f" [{found.low:.3f}, {found.high:.3f}]" if found.low and found.high else "")


if __name__ == "__main__":
    command(main)
