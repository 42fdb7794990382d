"""Stacks as text and as a picture."""

from xml.etree import ElementTree

from harness.extras.profiler import flame_graph, folded
from harness.extras.profiler.profilers import parse_folded, parse_perf

PERF = """node   123/124   7.1:
\tffffffff81000000 tcp_sendmsg+0x10 ([kernel.kallsyms])
\t          400100 handle<T> (/usr/bin/node)

node 9 123/123 7.2:
\t          b04b [unknown] (/usr/lib/libc.so.6)

"""


def test_perf_s_stacks_are_turned_around_and_the_kernel_is_marked() -> None:
    assert parse_perf(PERF) == {("node", "handle<T>", "tcp_sendmsg [k]"): 1, ("node 9", "[libc.so.6]"): 1}


def test_folded_stacks_are_read_as_they_are_written() -> None:
    stacks = {("a", "b c"): 3, ("a",): 1}
    assert parse_folded(folded(stacks)) == stacks


def test_async_profiler_s_kernel_frames_are_marked_as_perf_s_are() -> None:
    assert parse_folded("java;read_[k] 2\na_[k]b;c 1\n") == {("java", "read [k]"): 2, ("a_[k]b", "c"): 1}


def test_a_frame_is_as_wide_as_its_share_and_its_name_is_escaped() -> None:
    root = ElementTree.fromstring(flame_graph({("a", "x<T>"): 3, ("a", "y [k]"): 1}, "t & u"))  # noqa: S314 - our own
    widths = {}
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text or "", group[1]
        widths[title.partition(":")[0]] = float(box.attrib["width"])
    assert widths == {"a": 1200.0, "x<T>": 900.0, "y [k]": 300.0}
