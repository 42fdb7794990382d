"""Samples a server under load with perf for ``./tfb run --profiler``. Writes a flame graph and summary figures."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape
from zlib import crc32

from harness.errors import EnvironmentLacksError, LoadError, StartError, TfbError, UsageError
from harness.experiment.generators import LoadRun
from harness.experiment.generators.registry import GENERATORS
from harness.experiment.modes import build_servers
from harness.experiment.observe import Observation, ObservedLoad, observe
from harness.experiment.progress import Display, ProgressTracker
from harness.experiment.selection import make_plan
from harness.experiment.trial_builder import throughput_and_cpu
from harness.host import ownership, process
from harness.host.clock import SYSTEM_CLOCK
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Settings
from harness.records import safe_write
from harness.records.loads import Load
from harness.runtime import Database, Runtime, Server, endpoint_of
from harness.verify.checks.registry import draw_requests

SECONDS = 10.0  # duration of sampling
BESIDE_SECONDS = 2.0  # the load starts this long before sampling, and ends this long after it
HERTZ = 499  # samples per second on each CPU; a prime number, so that sampling does not synchronise with timers
SLACK_SECONDS = 60.0  # time that perf and jcmd may take in addition to the sampling
FOLDER = "profiles"  # subfolder of the results folder
WIDTH, ROW, MARGIN = 1200.0, 17, 34  # dimensions of the flame graph in pixels
# Environment variables that make runtimes report the names of compiled functions to perf.
NAMED_FRAMES: Mapping[str, str] = {
    "JAVA_TOOL_OPTIONS": "-XX:+PreserveFramePointer",
    "NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack",
    "PYTHONPERFSUPPORT": "1",
    "DOTNET_PerfMapEnabled": "1",
}

Stacks = dict[tuple[str, ...], int]  # stack of frames, outermost first -> number of samples


def profile(settings: Settings) -> Mapping[str, object]:
    """Profile an implementation under a test type's load. Return the figures that sample.json contains.

    Raises UsageError unless the settings select a single implementation and test type. Raises EnvironmentLacksError if
    perf cannot sample processes.
    """
    if settings.hosts.uses_remote_machines:
        raise UsageError("--profiler cannot be used with other machines: perf samples only processes on this machine")
    _require_perf()
    selected = make_plan(settings)
    if len(selected.implementations) != 1 or len(selected.candidates[0].test_types) != 1:
        raise UsageError("--profiler requires a single implementation and type: ./tfb run NAME --type TYPE --profiler")
    progress = ProgressTracker(Display(quiet=settings.quiet))
    ((kind, levels),) = selected.candidates[0].test_types.items()
    level = max(levels, key=lambda each: (each.queries or 0, -abs(each.connections - 64)))
    with build_servers(settings, selected, progress) as servers:
        (selected_implementation,) = selected.implementations
        if servers.builds[selected_implementation.name].status != "ok":
            raise TfbError("\n".join(progress.problems))
        implementation, address = _with_names(selected_implementation), servers.database.address
        servers.database.restore()
        log, path = servers.logs.log(implementation.name, "profile"), implementation.ready_path
        with servers.runtime.start(implementation, address, log, ready_path=path) as server:
            return _sample(settings, servers.runtime, servers.database, server, kind, level)


def _with_names(implementation: Implementation) -> Implementation:
    """Return the implementation with ``NAMED_FRAMES`` added to the environment."""
    local = implementation.entry.local
    if local is None:
        return implementation
    variables = dict(NAMED_FRAMES)
    for key, value in local.env.items():
        variables[key] = f"{value} {variables[key]}" if key in variables else value
    entry = implementation.entry.model_copy(update={"local": local.model_copy(update={"env": variables})})
    return replace(implementation, entry=entry)


def _sample(
    settings: Settings, runtime: Runtime, database: Database, server: Server, kind: str, level: Load
) -> Mapping[str, object]:
    test_type = server.implementation.test_types[kind]
    generator = GENERATORS[settings.profile.generator](runtime)

    def load(length: float) -> Observation:
        """Run a closed loop for ``length`` seconds."""
        load_run = LoadRun(
            url=endpoint_of(server, test_type).url(test_type.request_target(server.implementation.urls[kind], level)),
            host=server.endpoint.authority,
            accept=test_type.accept,
            tls_fixed=test_type.tls,
            requests=draw_requests(server, test_type, settings.seed),
            load=level,
            seconds=length,
            threads=min(2, level.connections),
            seed=settings.seed,
        )
        with ownership.make_scratch_folder("tfb-load-") as folder:
            load = ObservedLoad(server=server, database=database, generator=generator, run=load_run, folder=folder)
            return observe(runtime, SYSTEM_CLOCK, load, lambda _: None)

    load(8.0)
    names = {pid: name for pid in server.program.read().pids if (name := _name(pid))}
    if not names:
        raise StartError(f"{server.implementation.name}: the server exited during the warm-up")
    with ownership.make_scratch_folder("tfb-perf-") as scratch, ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load, SECONDS + 2 * BESIDE_SECONDS)
        time.sleep(BESIDE_SECONDS)
        _record(names, scratch / "perf.data")
        # Wait for the end of the load, because ``_stacks`` makes a JVM write a file, which uses CPU.
        observation = loading.result()
        stacks = _stacks(names, scratch / "perf.data")
    if not stacks:
        raise StartError(f"{server.implementation.name}: perf took no samples, because the server used no CPU")
    throughput, cpu = throughput_and_cpu(observation.result, observation.server.cpu_seconds)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    folder = settings.results.resolve() / FOLDER / f"{stamp}-{server.implementation.name}-{kind}"
    kernel = sum(count for stack, count in stacks.items() if stack[-1].endswith("[k]"))
    figures = {
        "folder": str(folder),
        "implementation": server.implementation.name,
        "test_type": kind,
        "load": level.label,
        "profiler": f"perf, cpu-clock at {HERTZ} Hz",
        "samples": sum(stacks.values()),
        "kernel_share": round(kernel / sum(stacks.values()), 4),  # fraction of samples in kernel code
        "requests_per_second": throughput,
        "cpu_seconds_per_request": cpu,
    }
    title = f"{server.implementation.name}, {kind} at {level.label}, {figures['profiler']}"
    safe_write.make_folder(folder)
    safe_write.replace(folder / "flame.svg", flame_graph(stacks, title).encode())
    safe_write.replace(folder / "sample.json", f"{json.dumps(figures, indent=2)}\n".encode())
    return figures


def _require_perf() -> None:
    """Raise EnvironmentLacksError with a remedy if perf is missing or is not permitted to sample processes."""
    attempt = None
    if shutil.which("perf"):
        attempt = process.run(["perf", "record", "-e", "cpu-clock", "-o", "/dev/null", "true"], seconds=20)
    if attempt is None or attempt.status != 0:
        problem = f"cannot sample processes: {attempt.stdout.strip()[-200:]}" if attempt else "is not installed"
        raise EnvironmentLacksError(
            f"perf {problem}\nRun apt-get install linux-perf (or linux-tools for your kernel). perf requires root, "
            "or kernel.perf_event_paranoid set to 1 or less"
        )


def _record(pids: Iterable[int], data: Path) -> None:
    """Sample the processes with perf for ``SECONDS``. Raises LoadError if perf fails."""
    command = ["perf", "record", "-e", "cpu-clock", "-F", str(HERTZ), "-g", "-o", str(data)]
    command += ["-p", ",".join(map(str, pids)), "--", "sleep", f"{SECONDS:.0f}"]
    done = process.run(command, seconds=SECONDS + SLACK_SECONDS)
    if done.status != 0:
        raise LoadError(f"perf record failed ({process.describe_status(done.status)}): {done.stdout.strip()[-300:]}")


def _stacks(names: Mapping[int, str], data: Path) -> Stacks:
    """Return the stacks that perf recorded. ``names`` maps process ids to names. Raises LoadError if perf fails."""
    program = shutil.which("jcmd")
    for pid, name in names.items():
        if name == "java" and program:
            # Make the JVM write the names of compiled methods to a file that perf reads.
            process.run([program, str(pid), "Compiler.perfmap"], seconds=SLACK_SECONDS)
    command = ["perf", "script", "-i", str(data), "-F", "comm,pid,tid,time,ip,sym,dso"]
    text = process.run(command, seconds=SLACK_SECONDS * 3)
    if text.status != 0:
        raise LoadError(f"perf script failed: {text.stdout.strip()[-300:]}")
    return parse_perf(text.stdout)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def parse_perf(text: str) -> Stacks:
    """Parse the output of ``perf script``.

    Each sample consists of a header line, the stack frames (innermost first) and an empty line.
    """
    stacks: Counter[tuple[str, ...]] = Counter()
    name = ""
    frames: list[str] = []
    for line in (*text.splitlines(), ""):
        if not line.strip():
            if name:
                stacks[name, *reversed(frames)] += 1
            name, frames = "", []
        elif not name and not line.startswith("\t"):
            name = re.split(r"\s+\d+/\d+\s", line.strip(), maxsplit=1)[0] or "?"
        elif match := re.match(r"\s*[0-9a-f]+\s+(.+?)(?:\+0x[0-9a-f]+)?\s+\((.*)\)\s*$", line):
            symbol, library = match[1], match[2]
            if symbol == "[unknown]":
                symbol = f"[{Path(library).name}]"
            kernel = library.startswith(("[kernel", "[guest.kernel"))
            frames.append(f"{symbol} [k]" if kernel else symbol)
    return dict(stacks)


def flame_graph(stacks: Stacks, title: str) -> str:
    """Return an SVG flame graph with tooltips. A frame's width is proportional to the number of samples."""
    total = sum(stacks.values())
    boxes = list(_boxes(sorted(stacks.items()), 0, 0.0, WIDTH / max(1, total)))
    height = MARGIN + ROW * (1 + max((level for level, *_ in boxes), default=0)) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" '
        f'height="{height}" font-family="monospace" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="6" y="20" font-size="13">{escape(title)}, {total} samples</text>',
    ]
    for level, left, samples, name in boxes:
        top, width = height - 8 - (level + 1) * ROW, WIDTH * samples / total
        letters = int(width / 6.7) - 1  # a letter is about 6.7 pixels wide
        text = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
        kernel, spread = name.endswith("[k]"), crc32(name.encode())
        colour = f"hsl({205 + spread % 25},55%,72%)" if kernel else f"hsl({15 + spread % 40},80%,68%)"
        lines.append(
            f"<g><title>{escape(f'{name}: {samples} samples, {samples / total:.1%}')}</title>"
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" fill="{colour}" rx="1"/>'
            f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(text)}</text></g>'
        )
    return "\n".join((*lines, "</svg>\n"))


def _boxes(
    stacks: Sequence[tuple[tuple[str, ...], int]], level: int, left: float, scale: float
) -> Iterator[tuple[int, float, int, str]]:
    """Yield (level, left edge in pixels, number of samples, name) for each visible frame.

    ``stacks`` must be sorted, and their ``level`` outermost frames must be equal. ``scale`` is in pixels per sample.
    """
    deeper = [each for each in stacks if len(each[0]) > level]
    for name, group in groupby(deeper, key=lambda each: each[0][level]):
        inner = list(group)
        samples = sum(count for _, count in inner)
        if samples * scale >= 0.3:  # frames narrower than 0.3 pixels are invisible
            yield level, left, samples, name
            yield from _boxes(inner, level + 1, left, scale)
        left += samples * scale
