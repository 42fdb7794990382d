"""Every figure that a generator prints stands in the load's result, one client's or several together."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import LoadError
from harness.host import crates, process
from harness.measure.loadgen import Load, LoadResult, own, registry
from harness.measure.loadgen.own import Distribution, InTime, Own, Total, as_latency, merge, merge_distributions
from harness.measure.loadgen.registry import at_rates, promptly, scenarios
from harness.measure.loadgen.scenario import Scenario, prepared
from harness.measure.loadgen.wrk import Wrk, merged, merged_latency
from harness.plan.profile import LatencyRules
from harness.records.models import Errors, Latency
from harness.records.orders import ArrivalTimes, OperationTimes
from harness.tests.measure.loadgen.test_own import LOAD, READY, URL, distribution, output, total
from harness.tests.measure.loadgen.test_scenario import document, operation, printed
from harness.tests.measure.loadgen.test_wrk import LINE

FAULTS = dict(zip(own.Faults.model_fields, (1, 2, 4, 8, 16, 32, 64, 128, 256), strict=True))
# connect 1, write 2, closed 4, timeout 8, framing 16, dropped 32, status 64, length 128, body 256


def times(*cells: tuple[int, int]) -> Distribution:
    return Distribution.model_validate(distribution(*cells))


def test_a_request_is_as_long_as_its_line_and_headers() -> None:
    load = Load(url="http://app:81/q?x=1", host="app", accept="*/*", seconds=1, connections=1, threads=1)
    text = "GET /q?x=1 HTTP/1.1\r\nHost: app\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n"
    assert load.request_bytes == len(text)
    assert replace(load, url="http://app:81").request_bytes == len(text) - len("q?x=1")
    assert replace(load, accept="é").request_bytes == len(text) - 1


def test_all_figures_of_a_closed_loop_are_handed_on() -> None:
    closed = total(
        loop="closed", rate=None, latency=None, lag=None, service=distribution((2_000_000, 1000)), errors=FAULTS
    )
    assert Own().result(LOAD, output(READY, closed)) == LoadResult(
        duration=2.0,
        requests=998,
        bytes=5000,
        errors=Errors(connect=1, read=4 + 16 + 32 + 128 + 256, write=2, timeout=8 + 4 + 3, status=64),
        latency=as_latency(times((2_000_000, 1000)), "closed-loop, service time"),
        cpu_seconds=0.5,
        wait_seconds=0.01,
    )
    assert Own().result(LOAD, output(READY, {**closed, "service": None})).latency is None


def test_a_distribution_is_told_in_seconds() -> None:
    cells = distribution((1_000_000, 3), (5_000_000, 1))
    cells["percentiles_ns"] = {point: place * 1_000_000 for place, point in enumerate(own.PERCENTILES, 1)}
    cells["mean_ns"], cells["stdev_ns"] = 2e6, 3e6
    found = as_latency(Distribution.model_validate(cells))
    assert found.mean == pytest.approx(0.002)
    assert (found.basis, round(found.stdev, 9), round(found.min, 9), round(found.max, 9)) == (
        "open-loop, intended send time", 0.003, 0.001, 0.005,
    )  # fmt: skip
    assert {point: round(value, 9) for point, value in found.percentiles.items()} == {
        point: place / 1000 for place, point in enumerate(own.PERCENTILES, 1)
    }
    assert [(round(value, 9), count) for value, count in found.histogram] == [(0.001, 3), (0.005, 1)]


def test_an_open_loop_s_own_figures_are_unknown_where_it_does_not_tell_them() -> None:
    counted = Own(rate=1.0).result(LOAD, output(READY, total(latency=None, service=None, lag=None))).at_rate
    assert counted is not None
    assert (counted.service, counted.lag_p99, counted.lag_max, counted.late(0.1)) == (None, None, None, 0)
    lag = distribution((50_000, 990), (900_000, 10))
    lag["percentiles_ns"] = {**lag["percentiles_ns"], "99": 70_000}
    lagging = Own(rate=1.0).result(LOAD, output(READY, total(lag=lag))).at_rate
    assert lagging is not None
    assert lagging.lag_p99 == pytest.approx(70e-6)
    assert lagging.lag_max == pytest.approx(900e-6)
    assert lagging.late(0.001) == 0  # at the goal itself nobody is late
    assert lagging.late(0.000999) == 1000
    assert lagging.sent_late is not None
    assert [lagging.sent_late(seconds) for seconds in (0.00004, 0.0001, 0.001)] == [1000, 10, 0]
    assert counted.sent_late is not None
    assert counted.sent_late(0.0) == 0


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.25, 1e-3), (0.5, 1e-3), (0.51, 2e-3), (0.75, 2e-3), (0.76, 9e-3), (1.0, 9e-3)]
)
def test_a_quantile_is_the_time_that_a_share_does_not_exceed(share: float, seconds: float) -> None:
    found = times((1_000_000, 2), (2_000_000, 1), (9_000_000, 1))
    assert found.quantile(share) == pytest.approx(seconds)


def test_a_distribution_without_all_its_cells_ends_with_its_maximum() -> None:
    assert times((1_000_000, 2)).model_copy(update={"count": 9, "max_ns": 7_000_000}).quantile(1.0) == pytest.approx(
        7e-3
    )


def test_lines_that_are_not_the_generator_s_are_passed_over_and_each_interval_is_kept() -> None:
    interval = {
        **{key: value for key, value in total().items() if key in own.Counts.model_fields},
        "kind": "interval", "index": 0, "start_ns": 0, "end_ns": 1, "seconds": 1.0, "cpu_seconds": 0.1,
    }  # fmt: skip
    text = "starting\n" + output(READY, interval, {**interval, "index": 1}, {"kind": "drain"}, total(7))
    (found,) = own.reports(text, URL)
    assert [each.index for each in found.intervals] == [0, 1]
    assert (found.ready.pid, found.total.received) == (5, 7)
    second = output(READY, {**interval, "index": 9}, total(8))
    assert [[each.index for each in one.intervals] for one in own.reports(text + second, URL)] == [[0, 1], [9]]


@pytest.mark.parametrize("text", [output(total()), "x" * 600])
def test_output_without_a_beginning_is_told_with_its_last_words(text: str) -> None:
    with pytest.raises(LoadError) as none:
        own.read(text, URL)
    assert str(none.value) == f"loadgen printed no result for {URL}: {text.strip()[-500:]}"


def test_a_line_that_is_not_as_documented_is_shown_as_far_as_it_fits() -> None:
    with pytest.raises(LoadError) as wrong:
        own.read('{"kind": "total", "x": "' + "y" * 400 + '"}', URL)
    assert str(wrong.value) == (
        f"loadgen printed a line for {URL} that is not as documented: " + ('{"kind": "total", "x": "' + "y" * 400)[:300]
    )


def test_as_much_as_is_allowed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = output(READY, total())
    monkeypatch.setattr(own, "MAX_LINES", 2)
    monkeypatch.setattr(own, "MAX_LINE_BYTES", max(len(line) for line in lines.splitlines()))
    assert own.read(lines, URL).total.received == 1000
    with pytest.raises(LoadError, match=rf"^loadgen printed more than 2 lines or \d+ bytes in one for {URL}$"):
        own.read(lines + "\n\n", URL)


def test_no_load_lasts_no_time() -> None:
    with pytest.raises(LoadError, match=f"^loadgen reports no duration for {URL}$"):
        own.read(output(READY, total(seconds=-1.0)), URL)
    assert own.read(output(READY, total(seconds=0.5)), URL).total.seconds == 0.5


def test_figures_that_no_load_has_are_an_error() -> None:
    text = output(READY, total(), READY, total(latency={**distribution((1, 1)), "count": -1000}))
    with pytest.raises(LoadError, match=f"^loadgen printed figures for {URL} that no load has: "):
        Own().result(LOAD, text)
    lacking = distribution((1_000_000, 10))
    del lacking["percentiles_ns"]["99"]
    with pytest.raises(LoadError, match="that no load has: '99'"):
        Own().result(LOAD, output(READY, total(latency=lacking)))


def test_all_figures_of_several_generators_are_theirs_together() -> None:
    names = [name for name, field in own.Counts.model_fields.items() if field.annotation is int]
    each = {name: 2**place for place, name in enumerate(names)}
    one = Total.model_validate(
        {**total(), **each, "start_ns": 50, "end_ns": 90, "drain_seconds": 0.5, "service": distribution((1_000, 5)),
         "lag": distribution((3_000, 2)), "statuses": {"200": 5, "500": 1}, "errors": FAULTS}
    )  # fmt: skip
    two = Total.model_validate(
        {**total(), "start_ns": 40, "end_ns": 80, "seconds": 1.5, "drain_seconds": 0.25, "rate": 250.0, "unsent": 10,
         "unfinished": 20, "cpu_seconds": 0.25, "run_queue_wait_seconds": 0.5, "connections": 3, "threads": 1,
         "service": None, "lag": distribution((5_000, 2)), "statuses": {"200": 7, "404": 2},
         "in_time": {"received": 1, "successes": 2, "bytes_in": 3}}
    )  # fmt: skip
    both = merge([one, two])
    assert {name: getattr(both, name) for name in names} == {name: each[name] + getattr(two, name) for name in names}
    assert (both.start_ns, both.end_ns, both.seconds, both.drain_seconds) == (40, 90, 2.0, 0.5)
    assert (both.rate, both.unsent, both.unfinished, both.connections, both.threads) == (750.0, 13, 24, 67, 3)
    assert (both.cpu_seconds, both.run_queue_wait_seconds, both.stopped_by) == (0.75, 0.51, "duration")
    assert both.in_time == InTime(received=999, successes=998, bytes_in=5003)
    assert both.statuses == {"200": 12, "500": 1, "404": 2}
    assert both.errors == own.Faults(**{name: count + 1 for name, count in FAULTS.items()})
    assert both.depth == 1
    assert both.service == merge_distributions([one.service])
    assert both.lag == merge_distributions([one.lag, two.lag])
    assert both.latency == merge_distributions([one.latency, two.latency])
    closed = [part.model_copy(update={"rate": None, "run_queue_wait_seconds": None}) for part in (one, two)]
    assert (merge(closed).rate, merge(closed).run_queue_wait_seconds) == (None, None)
    mixed = [one, two.model_copy(update={"run_queue_wait_seconds": None})]
    assert merge(mixed).run_queue_wait_seconds is None


@pytest.mark.parametrize("pipeline", [1, 16])
def test_each_of_several_clients_has_a_latency_where_their_load_has_one(pipeline: int) -> None:
    closed = total(loop="closed", rate=None, latency=None, service=distribution((2_000_000, 1000)))
    found = Own().result(replace(LOAD, pipeline=pipeline), output(READY, closed, READY, closed))
    assert [part.latency is not None for part in (found, *found.parts)] == [pipeline == 1] * 3


@pytest.mark.parametrize("change", [{"loop": "closed"}, {"depth": 2}])
def test_loads_that_differ_are_not_one(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^loads of different kinds do not merge$"):
        merge([Total.model_validate(total()), Total.model_validate(total(**change))])
    with pytest.raises(ValueError, match=r"^nothing to merge$"):
        merge([])


def test_a_merged_distribution_has_extremes_percentiles_and_cells_of_all() -> None:
    one, two = times((1_000, 3), (4_000, 1)), times((500, 1), (4_000, 2), (9_000, 3))
    found = merge_distributions([one, None, two])
    assert found is not None
    assert (found.min_ns, found.max_ns, found.count) == (500, 9_000, 10)
    assert found.distribution_ns == ((500, 1), (1_000, 3), (4_000, 3), (9_000, 3))
    assert found.percentiles_ns == {
        "50": 4_000, "75": 9_000, "90": 9_000, "95": 9_000, "99": 9_000, "99.9": 9_000, "99.99": 9_000,
    }  # fmt: skip
    assert found.hdr_v2 is None


def test_the_command_line_has_every_word_in_its_place() -> None:
    generator = Own(rate=0.5, arrivals="uniform", seed=3, start_at_once=False, extra=("-x",), prefix=("chrt", "1"))
    words = list(generator.arguments(LOAD))
    assert words[:2] == ["chrt", "1"]
    assert words[2:8:2] == ["--header"] * 3
    assert words[8:] == [
        "--connections", "64", "--threads", "2", "--depth", "1", "--duration", "15", "--timeout", "8", "--seed", "3",
        "--rate", "0.5", "--arrivals", "uniform", "-x", URL,
    ]  # fmt: skip
    assert (generator.waits_for_go, generator.timeout_seconds) == (True, 16.0)
    assert (Own().waits_for_go, Own().program) == (False, "loadgen")
    assert "--rate" not in Own().arguments(LOAD)


@pytest.mark.parametrize("chrt", [None, "/usr/bin/chrt"])
@pytest.mark.parametrize("status", [0, 1])
def test_a_generator_has_priority_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, chrt: str | None, status: int
) -> None:
    asked: list[Any] = []

    def run(words: Any, *, seconds: float) -> SimpleNamespace:
        asked.append((words, seconds))
        return SimpleNamespace(status=status)

    monkeypatch.setattr(shutil, "which", {"chrt": chrt}.get)
    monkeypatch.setattr(process, "run", run)
    expected = ("/usr/bin/chrt", ("--rr", "1", "/x/gen")) if chrt and status == 0 else ("/x/gen", ())
    assert promptly("/x/gen") == expected
    assert asked == ([(["/usr/bin/chrt", "--rr", "1", "true"], 10)] if chrt else [])


@pytest.mark.parametrize("runtime", ["docker", "local"])
@pytest.mark.parametrize("realtime", [True, False])
def test_loads_at_rates_and_scenarios_have_the_rules_words(
    monkeypatch: pytest.MonkeyPatch, runtime: str, realtime: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(crates, "loadgen", lambda: Path("/built/loadgen"))
    monkeypatch.setattr(registry, "promptly", lambda program: ("chrt", ("--rr", program)))
    started = {
        ("docker", True): ("loadgen", ()),
        ("docker", False): ("loadgen", ()),
        ("local", True): ("chrt", ("--rr", "/built/loadgen")),
        ("local", False): ("/built/loadgen", ()),
    }[runtime, realtime]
    rules = LatencyRules(drain_seconds=1.5, spin_microseconds=20.0, realtime=realtime)
    assert at_rates(runtime, rules)(250.0, 9) == Own(
        rate=250.0, seed=9, start_at_once=False, program=started[0], prefix=started[1],
        extra=("--drain-seconds", "1.5", "--spin", "20"),
    )  # fmt: skip
    found = scenarios(runtime, 3.5, realtime=realtime)({"use_cases": []}, 9, tmp_path)
    assert found == Scenario(folder=tmp_path, seed=9, drain_seconds=3.5, program=started[0], prefix=started[1])
    if realtime:
        assert scenarios(runtime)({}, 1, tmp_path) == Scenario(
            folder=tmp_path, seed=1, drain_seconds=2.0, program=started[0], prefix=started[1]
        )


def test_all_figures_of_arrivals_are_handed_on() -> None:
    lag = distribution((20_000, 70), (90_000, 7))
    lag["percentiles_ns"] = {**lag["percentiles_ns"], "99": 30_000}
    found = Scenario().result(LOAD, printed(lag=lag))
    played = found.played
    assert played is not None
    assert (found.duration, found.bytes, found.cpu_seconds) == (8.0, 9000, 0.25)
    assert found.latency == played.latency
    assert played.refused == 2
    assert played.lag_p99 == pytest.approx(30e-6)
    assert played.lag_max == pytest.approx(90e-6)
    create, read = (times((value, count)) for value, count in ((2_000_000, 37), (2_000_000, 36)))
    service = times((1_000_000, 37))
    assert played.operations[0] == OperationTimes(
        use_case="shop", operation="create order", due=40, answered=37, errors=Errors(timeout=1, status=2),
        latency=as_latency(create), service=as_latency(service, "closed-loop, service time"),
    )  # fmt: skip
    assert (played.operations[1].operation, played.operations[1].latency) == ("read order", as_latency(read))
    whole = as_latency(times((4_000_000, 36)))
    assert played.use_cases == (ArrivalTimes(use_case="shop", due=40, done=36, latency=whole),)


def test_what_nobody_answered_has_no_times() -> None:
    case = {**document()["use_cases"][0], "done": 0, "failed": 40, "unfinished": 0, "response_time": None}
    nothing = printed(
        operations=[operation("create order", 0, status=40)],
        use_cases=[case],
        arrivals_done=0,
        arrivals_failed=40,
        unfinished=0,
        lag=None,
    )
    found = Scenario().result(LOAD, nothing)
    played = found.played
    assert played is not None
    assert (found.latency, played.lag_p99, played.lag_max) == (None, None, None)
    assert (played.operations[0].latency, played.operations[0].service, played.use_cases[0].latency) == (None,) * 3
    assert found.requests == 40


def test_errors_of_all_operations_add_up_and_what_was_refused_is_of_the_connections() -> None:
    one = operation("create order", 30, status=2, timeout=1, read=3, write=4)
    two = operation("read order", 36, unfinished=1, read=5)
    found = Scenario().result(LOAD, printed(operations=[one, two]))
    assert found.errors == Errors(connect=2, read=8, write=4, timeout=2, status=2)
    assert found.requests == 30 + 36 + 2
    assert found.played is not None
    assert found.played.requests_unfinished == 1


def test_a_scenario_s_command_line_has_every_word_in_its_place(tmp_path: Path) -> None:
    generator = Scenario(folder=tmp_path, seed=3, drain_seconds=2.5, prefix=("chrt", "1"))
    assert list(generator.arguments(LOAD)) == [
        "chrt", "1", "--scenario", f"{tmp_path}/plan.json", "--answers", f"{tmp_path}/answers.jsonl", "--wait-for-go",
        "--header", "Host: tfb-server", "--header", "Accept: */*", "--header", "Connection: keep-alive",
        "--connections", "64", "--threads", "2", "--seconds", "15", "--timeout", "8", "--seed", "3",
        "--drain-seconds", "2.5", "http://127.0.0.1:8080",
    ]  # fmt: skip
    assert generator.timeout_seconds == 10.5
    assert Scenario().arguments(LOAD)[:4] == ["--scenario", "plan.json", "--answers", "answers.jsonl"]
    kept = prepared(generator, {"é": 1}, 4, tmp_path)
    assert kept == replace(generator, seed=4, folder=tmp_path)
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == {"é": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no JSON", "loadgen printed no result for {url}: no JSON"),
        ("x" * 600, "loadgen printed no result for {url}: " + "x" * 500),
        ('{"operations": 3}', 'loadgen printed a line for {url} that is not as documented: {{"operations": 3}}'),
        (printed(seconds=-1.0), "loadgen reports no duration for {url}"),
        (printed(arrivals_due=41), "loadgen's counts for {url} do not add up: 41 arrivals, 40 ended"),
        (
            printed(use_cases=[{**document()["use_cases"][0], "due": 41}]),
            "loadgen's counts for {url} do not add up: 40 arrivals, 40 ended",
        ),
    ],
)
def test_what_a_scenario_printed_instead_is_told(text: str, message: str) -> None:
    with pytest.raises(LoadError) as refused:
        Scenario().result(LOAD, text)
    assert str(refused.value) == message.format(url=URL)


def test_a_scenario_of_half_a_second_is_one_and_its_figures_must_be_a_load_s() -> None:
    assert Scenario().result(LOAD, printed(seconds=0.5)).duration == 0.5
    lacking = distribution((20_000, 77))
    del lacking["percentiles_ns"]["99"]
    with pytest.raises(LoadError, match=f"^loadgen printed figures for {URL} that no load has: '99'$"):
        Scenario().result(LOAD, printed(lag=lacking))


def wrk(**changes: Any) -> LoadResult:
    return Wrk().result(LOAD, json.dumps({**LINE, **changes}))


def test_all_figures_of_wrk_are_handed_on() -> None:
    latency = wrk().latency
    assert wrk() == LoadResult(
        duration=2.0, requests=1000, bytes=154_000, errors=Errors(connect=1, read=2, write=3, status=4, timeout=5),
        latency=latency, cpu_seconds=0.5,
    )  # fmt: skip
    assert latency is not None
    assert latency.basis == "closed-loop, wrk-corrected"
    assert [latency.mean, latency.stdev, latency.min, latency.max] == pytest.approx([250.5e-6, 10e-6, 100e-6, 9e-3])
    generator = Wrk()
    assert (generator.program, generator.waits_for_go, generator.folder, generator.timeout_seconds) == (
        "wrk", False, None, 8.0,
    )  # fmt: skip


def test_wrk_s_seconds_are_whole_ones_and_a_depth_of_two_is_pipelined() -> None:
    words = list(Wrk().arguments(replace(LOAD, seconds=1.2, pipeline=2)))
    assert words[6:] == [
        "--latency", "-d", "2", "-c", "64", "--timeout", "8", "-t", "2", "-s", "pipeline.lua", LOAD.url, "--", "2",
    ]  # fmt: skip
    assert Wrk().result(replace(LOAD, pipeline=2), json.dumps(LINE)).latency is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration_us": 0}, "wrk reports no duration for {url}: "),
        ({"bytes": -1}, "wrk's result for {url} is not what report.lua prints: "),
    ],
)
def test_what_wrk_prints_instead_is_shown(changes: dict[str, Any], message: str) -> None:
    line = json.dumps({**changes, **{key: value for key, value in LINE.items() if key not in changes}})
    with pytest.raises(LoadError) as refused:
        Wrk().result(LOAD, line)
    assert str(refused.value) == message.format(url=LOAD.url) + line[:300]
    with pytest.raises(LoadError) as none:
        Wrk().result(LOAD, "x" * 600)
    assert str(none.value) == f"wrk printed no result for {LOAD.url}: {'x' * 500}"


@pytest.mark.parametrize(("read", "understood"), [(64, True), (65, False)])
def test_wrk_that_understands_no_answer_closes_each_connection_again_and_again(read: int, understood: bool) -> None:
    errors = {**LINE["errors"], "read": read}  # type: ignore[dict-item]
    if understood:
        assert wrk(requests=0, errors=errors).requests == 0
        return
    with pytest.raises(LoadError) as refused:
        wrk(requests=0, errors=errors)
    assert str(refused.value) == (
        f"wrk understood no response of {LOAD.url}: 65 connections were closed, or answered with what its parser "
        "refuses although HTTP may allow it (a tab behind Content-Length, say): --generator loadgen measures with "
        "another"
    )
    assert wrk(requests=1, errors=errors).requests == 1


def test_several_clients_of_wrk_are_one_load_by_their_rates() -> None:
    one = wrk()
    two = wrk(requests=500, duration_us=500_000, bytes=7, cpu_seconds=0.25, errors=dict.fromkeys(LINE["errors"], 10))  # type: ignore[call-overload]
    found = merged([one, two])
    assert found == LoadResult(
        duration=1.0,  # 500 and 1,000 a second
        requests=1500,
        bytes=154_007,
        errors=Errors(connect=11, read=12, write=13, status=14, timeout=15),
        latency=merged_latency([one.latency, two.latency], 2),  # type: ignore[list-item]
        cpu_seconds=0.75,
        parts=(one, two),
    )
    assert merged([one]) is one
    idle = replace(one, requests=0)
    assert merged([idle, replace(idle, duration=3.0)]).duration == 3.0
    assert merged([one, replace(two, latency=None)]).latency is None


def latency(*cells: tuple[float, int]) -> Latency:
    return Latency(
        basis="closed-loop, wrk-corrected", mean=1.0, stdev=0.0, min=cells[0][0], max=cells[-1][0],
        percentiles=dict.fromkeys(("1", "50", "75", "99"), 0.0), histogram=cells,
    )  # fmt: skip


def test_percentiles_of_several_clients_are_of_all_their_responses() -> None:
    found = merged_latency([latency((1.0, 2), (2.0, 1)), latency((2.0, 1), (3.0, 1))], 2)
    assert found is not None
    assert found.percentiles == {"1": 1.0, "50": 2.0, "75": 2.0, "99": 3.0}  # the 1st, 3rd, 4th and 5th of five
    assert found.basis == "closed-loop, wrk-corrected"
    assert merged_latency([latency((1.0, 1))], 1) is not None
