"""``./tfb run --profiler``: one server under one load, sampled; the flame graph lies beside what the load measured."""

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.sax.saxutils import escape
from zlib import crc32

from harness.console import SafeConsole
from harness.errors import LoadError, StartError, TfbError, UsageError
from harness.experiment.generators import LoadRun
from harness.experiment.generators.registry import GENERATORS
from harness.experiment.modes import built
from harness.experiment.preparation import choose_work
from harness.extras.profiler import profilers
from harness.host import ownership
from harness.plan.config import Settings
from harness.plan.discovery import Implementation
from harness.records.models import Load
from harness.runtime import Endpoint, Runtime, Server

BESIDE_SECONDS = 2.0  # of load before and after the profiler looks
FOLDER = "profiles"
WIDTH, ROW, MARGIN = 1200.0, 17, 34  # pixels of the flame graph


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """What was written, and the figures of the same load."""

    folder: Path
    figures: Mapping[str, object]


def profile(settings: Settings, seconds: float) -> Profiled:
    """Build, start, warm, load and sample one implementation on one test type.

    Raises EnvironmentLacksError where no profiler is here, before anything is built.
    """
    profilers.chosen()
    selected = choose_work(settings)
    if len(selected.implementations) != 1 or len(selected.candidates[0].test_types) != 1:
        raise UsageError("./tfb profile NAME --type TYPE: one implementation and one test type")
    console = SafeConsole(stderr=True)
    problems: list[str] = []
    ((kind, levels),) = selected.candidates[0].test_types.items()
    level = max(levels, key=lambda each: (each.queries or 0, -abs(each.connections - 64)))
    with built(settings, selected, console, problems) as (runtime, database, ready, logs):
        if not ready:
            raise TfbError("\n".join(problems))
        implementation = _with_names(ready[0])
        database.restore()
        log = logs / implementation.name / "profile.log"
        path = implementation.ready_path
        with runtime.start(implementation, database.address, log, ready_path=path) as server:
            return _sample(settings, runtime, server, kind, level, seconds)


def _with_names(implementation: Implementation) -> Implementation:
    """Its variables, and those by which runtimes name their compiled frames."""
    local = implementation.entry.local
    if local is None:
        return implementation
    named = dict(profilers.NAMED_FRAMES)
    for key, value in local.env.items():
        named[key] = f"{value} {named[key]}" if key in named else value
    entry = implementation.entry.model_copy(update={"local": local.model_copy(update={"env": named})})
    return replace(implementation, entry=entry)


def _sample(settings: Settings, runtime: Runtime, server: Server, kind: str, level: Load, seconds: float) -> Profiled:
    test_type = server.implementation.test_types[kind]
    generator = GENERATORS[settings.profile.generator](runtime)
    endpoint: Endpoint = server.endpoint

    def load(length: float) -> tuple[int, float]:
        """Responses and seconds of one closed loop."""
        asked = LoadRun(
            url=endpoint.url(test_type.path(server.implementation.urls[kind], level)),
            host=endpoint.host,
            accept=test_type.accept,
            load=level,
            seconds=length,
            threads=min(2, level.connections),
            seed=settings.seed,
        )
        with ownership.scratch("tfb-load-") as folder:
            arguments, waits = generator.arguments(asked, folder), generator.waits_for_go
            with runtime.generator(generator.program, arguments, waits_for_go=waits, folder=folder) as running:
                running.begin()
                if running.wait(length + 15) is None:
                    raise LoadError(f"the load generator was not done {length + 15:.0f} s after its start")
                result = generator.result(asked, running.output())
        return result.requests - result.errors.status, result.duration

    load(8.0)
    before = server.meter.read()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = settings.results / FOLDER / f"{stamp}-{server.implementation.name}-{kind}"
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load, seconds + 2 * BESIDE_SECONDS)
        time.sleep(BESIDE_SECONDS)
        seen = profilers.record(before.pids or server.meter.read().pids, seconds, folder)
        responses, took = loading.result()
    after = server.meter.read()
    if not seen.stacks:
        raise StartError("the profiler saw nothing: the server used no CPU while it looked")
    figures = {
        "implementation": server.implementation.name,
        "test_type": kind,
        "load": level.label,
        "profiler": seen.tool,
        "samples": sum(seen.stacks.values()),
        "kernel_share": round(_kernel(seen.stacks), 4),
        "requests_per_second": responses / took,
        "cpu_seconds_per_request": (after.cpu_seconds - before.cpu_seconds) / max(1, responses),
    }
    title = f"{server.implementation.name}, {kind} at {level.label}, {seen.tool}"
    (folder / "flame.svg").write_text(flame_graph(seen.stacks, title), encoding="utf-8")
    (folder / "stacks.txt").write_text(folded(seen.stacks), encoding="utf-8")
    (folder / "sample.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return Profiled(folder=folder, figures=figures)


def _kernel(stacks: profilers.Stacks) -> float:
    """Share of the samples whose innermost frame is the kernel's."""
    inside = sum(count for stack, count in stacks.items() if stack[-1].endswith("[k]"))
    return inside / (sum(stacks.values()) or 1)


@dataclass
class _Node:
    samples: int = 0
    inner: dict[str, "_Node"] = field(default_factory=dict)


def folded(stacks: profilers.Stacks) -> str:
    """One line a stack, ``outer;inner count``: what other flame graph programs read."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def flame_graph(stacks: profilers.Stacks, title: str) -> str:
    """The stacks as SVG, widths in shares of all samples; every frame has name, samples and share as a tooltip."""
    root = _Node()
    for stack, count in stacks.items():
        root.samples += count
        node = root
        for frame in stack:
            node = node.inner.setdefault(frame, _Node())
            node.samples += count
    boxes = list(_boxes(root, 0.0, 0, root.samples or 1))
    depth = max((level for level, *_ in boxes), default=0) + 1
    height = MARGIN + depth * ROW + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" '
        f'height="{height}" font-family="monospace" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="6" y="20" font-size="13">{escape(title)}, {root.samples} samples</text>',
        *(_box(*box, root.samples or 1, height) for box in boxes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _boxes(node: _Node, left: float, level: int, total: int) -> Iterator[tuple[int, float, float, str, int]]:
    """(level, left, width, frame, samples) of all frames wide enough to be seen, siblings by name."""
    for name, inner in sorted(node.inner.items()):
        width = WIDTH * inner.samples / total
        if width >= 0.3:  # pixels: what is narrower cannot be seen
            yield level, left, width, name, inner.samples
            yield from _boxes(inner, left, level + 1, total)
        left += width


def _box(level: int, left: float, width: float, name: str, samples: int, total: int, height: int) -> str:
    top = height - 8 - (level + 1) * ROW
    letters = int(width / 6.7) - 1  # pixels of a letter
    text = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    shown = f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(text)}</text>' if text else ""
    tip = escape(f"{name}: {samples} samples, {samples / total:.1%}")
    return (
        f'<g><title>{tip}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{_colour(name)}" rx="1"/>{shown}</g>'
    )


def _colour(name: str) -> str:
    """The kernel blue, everything else a warm hue of its name."""
    spread = crc32(name.encode())
    if name.endswith("[k]"):
        return f"hsl({205 + spread % 25},55%,{68 + spread % 12}%)"
    return f"hsl({15 + spread % 40},80%,{62 + spread % 14}%)"
