"""Parsing perf's stacks and drawing flame graphs."""

from xml.etree import ElementTree

import pytest

from harness import cli
from harness.extras.profiler.perf_profile import flame_graph, parse_perf

PERF = """node   123/124   7.1:
\tffffffff81000000 tcp_sendmsg+0x10 ([kernel.kallsyms])
\t          400100 handle<T> (/usr/bin/node)

node 9 123/123 7.2:
\t          b04b [unknown] (/usr/lib/libc.so.6)

"""


def test_perf_stacks_are_reversed_and_kernel_frames_marked() -> None:
    stacks = parse_perf(PERF)
    assert stacks == {("node", "handle<T>", "tcp_sendmsg [k]"): 1, ("node 9", "[libc.so.6]"): 1}


def test_frame_widths_show_shares_and_names_are_escaped() -> None:
    root = ElementTree.fromstring(flame_graph({("a", "x<T>"): 3, ("a", "y [k]"): 1}, "t & u"))  # noqa: S314 - our own
    widths = {}
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text or "", group[1]
        widths[title.partition(":")[0]] = float(box.attrib["width"])
    assert widths == {"a": 1200.0, "x<T>": 900.0, "y [k]": 300.0}


def test_profiler_refuses_other_machines(capsys: pytest.CaptureFixture[str]) -> None:
    where = [f"--{role}-host=app" for role in ("server", "database", "client")]
    assert cli.main(["--test", "express", "--type", "json", "--profiler", *where]) == 2
    assert "--profiler cannot be used with other machines" in capsys.readouterr().err
