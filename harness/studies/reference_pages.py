"""Generates README.md's examples, and the pages in docs/reference/ about keys, record files, verbs and flags.

Types, limits and defaults come from the pydantic models, and descriptions from comments on the models' fields. Run
``python -m harness.studies.reference_pages`` after you change a key, a comment or a flag.
"""

import ast
import inspect
import io
import os
import re
import time
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from cyclopts import App
from pydantic import BaseModel

from harness.cli.compare import ServiceFlags
from harness.cli.verbs import GROUPS, VERBS, application
from harness.extras.claims.claim import Claim
from harness.extras.gate.cli import SUPPORTED_FLAGS
from harness.extras.gate.compose_model import CONSENTS
from harness.paths import REPOSITORY, RESULTS
from harness.plan.benchmark_config import BenchmarkConfig, url_keys
from harness.plan.profile import Profile
from harness.plan.service import ServiceFile
from harness.records.run_folders import ROUNDS, find_run, numbered_rounds
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord
from harness.records.store import read_run
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.report import Report, terminal
from harness.report.tables import format_interval, format_ratio, sort_by_position
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking
from harness.units import format_micros, format_rate

FOLDER = REPOSITORY / "docs" / "reference"
README = REPOSITORY / "README.md"
README_TEST_TYPE, README_ROWS, README_LINES = "fortune", 8, 15
COMPARISON_FLAGS = ("base", "threshold")  # fields of ComparisonFlags that also apply to services
HEADER = "\n`python -m harness.studies.reference_pages` generates this page from the code. "
LARGE = 1e9  # the pages omit limits that are at least this large
SERVICE_FLAGS = {  # flag -> help text for services, if it differs from the help text for implementations
    "--allow": "permit Compose keys that give containers privileges on the host: SERVICE=KEY,… or KEY",
    "--profile": "measurement profile: a name in config/profiles, or a .toml file",
}
RUN_FILES = {  # files in a run's folder -> description
    "`run.json`": "a [RunInfo](#runinfo): settings, seed, status, machine, versions, builds and image digests",
    "`trials.jsonl`": "one [Trial](#trial) per line",
    "`processes.jsonl`": "one [ProcessRecord](#processrecord) per line",
    "`verdicts.jsonl`": "one [VerificationRecord](#verificationrecord) per line",
    "`ranking.json`": "a [Ranking](#ranking): estimates, intervals, ranks and ties",
    "`results.json`": "results in TechEmpower's schema, for TechEmpower's viewers",
    "`progress.json`": "what the run is currently doing, for the dashboard",
    "`logs/`": "`harness.log` (every command), and `build.log` and `p<n>.log` of each implementation",
    "`*.unfinished.jsonl`": "records of processes that an interruption ended; a resumed run starts these servers and "
    "measures them again",
    "`.origin`": "a mark that proves that you started the run on this machine",
}
RECORD_FORM = "Numbers use SI units, and field names contain the unit. Unknown values are `null`."
NAMES = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": ""}
Headings = Mapping[str, str]  # model name -> link to the model's section


def main() -> None:
    """Write the reference pages and README.md."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / f"{name}.md").write_text(page(), encoding="utf-8")
    README.write_text(readme_page(), encoding="utf-8")


# ---- pages -----------------------------------------------------------------------------------------------------------


def _service_page() -> str:
    consents = f"## Keys for `--allow`\n\n{', '.join(f'`{key}`' for key in sorted(CONSENTS))}\n"
    header = f"# tfb.toml and flags for the regression gate\n{HEADER}[gate.md](../gate.md) explains how to use them.\n"
    return "\n".join((header, *_toml_sections(ServiceFile), _service_flags(), consents))


def _profile_page() -> str:
    header = f"# Profiles\n{HEADER}A profile is a file in `config/profiles/`; `--profile` also accepts a path.\n"
    return "\n".join((header, *_toml_sections(Profile)))


def _claim_page() -> str:
    header = f"# Claim files\n{HEADER}[claims.md](../claims.md) explains how a claim is judged.\n"
    return "\n".join((header, *_toml_sections(Claim)))


def _config_page() -> str:
    guide = "[CONTRIBUTING.md](../../CONTRIBUTING.md) explains how to add an implementation.\n"
    header = f"# benchmark_config.json\n{HEADER}{guide}"
    return "\n".join((header, *_json_sections(BenchmarkConfig)))


def _records_page() -> str:
    files = "".join(f"- {names}: {about}\n" for names, about in RUN_FILES.items())
    header = f"# Record files\n{HEADER}A run's folder, `results/<run-id>/`, contains these files:\n"
    header += f"\n{files}\n{RECORD_FORM}\n"
    return "\n".join((header, *_json_sections(RunInfo, Trial, ProcessRecord, VerificationRecord, Ranking)))


def _command_page() -> str:
    header = f"# Verbs and flags\n{HEADER}[cli.md](../cli.md) explains output, exit codes and environment variables.\n"
    app = application()
    names = sorted(VERBS, key=lambda name: GROUPS.index(VERBS[name].group) if VERBS[name].group in GROUPS else 9)
    verbs = [(name, app[name]) for name in names]
    verbs += [(f"{name} {inner}", verb[inner]) for name, verb in verbs for inner in verb if inner[0] != "-"]
    return "\n".join((header, *(_verb_section(name, verb) for name, verb in verbs)))


def readme_page() -> str:
    """Return README.md with the table and the terminal output of the newest published round."""
    folder = numbered_rounds(RESULTS / ROUNDS)[-1]
    records = read_run(find_run(RESULTS, f"round-{folder.name}"))
    ranking = rank(records.info, records.trials, records.processes, records.verdicts)
    with patch.dict(os.environ, COLUMNS="110"):
        output = io.StringIO()
        terminal.export(Report(records=records, ranking=ranking, every_load=False), output)
    lines = [f"    {line}".rstrip() for line in output.getvalue().splitlines()[:README_LINES]]
    blocks = {"round": _round_table(folder.name, records.info, ranking), "output": "\n".join(lines)}
    text = README.read_text(encoding="utf-8")
    for name, block in blocks.items():
        replacement = f": {name} -->\n\n{block}\n\n<!-- end -->"
        literal = replacement.replace("\\", r"\\")
        text = re.sub(rf": {name} -->\n.*?<!-- end -->", literal, text, flags=re.DOTALL)
    return text


def _round_table(name: str, info: RunInfo, ranking: Ranking) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(info.started_at))
    rows = [
        f"| rank | implementation | µs CPU/request (95 %) | × {ranking.reference} | requests/s |",
        "|---|---|---|---|---|",
    ]
    ranked = [row for row in ranking.test_types[README_TEST_TYPE].headline.rows if row.cpu_per_request]
    for row in sort_by_position(ranked, lambda row: row.cpu_per_request)[:README_ROWS]:
        if (cpu := row.cpu_per_request) and (rate := row.throughput):
            ranks = str(cpu.rank.low) if cpu.rank.low == cpu.rank.high else f"{cpu.rank.low}–{cpu.rank.high}"
            cost = f"{format_micros(cpu.estimate.median)} {format_interval(cpu.estimate, 1e6)}"
            ratio, speed = format_ratio(cpu.to_reference), format_rate(rate.estimate.median)
            rows.append(f"| {ranks} | {row.implementation} | {cost} | {ratio} | {speed} |")
    machine = f"{info.machine.cpu_model}, {info.machine.cpus_online} CPUs, {day}, profile {info.profile}"
    about = (
        f"**[Round {name}](results/rounds/{name})**, {README_TEST_TYPE}, the first {README_ROWS} of {len(ranked)} "
        f"implementations ({machine}; [comparison with TechEmpower](docs/techempower.md#round-23-and-round-1)):"
    )
    return "\n".join((about, "", *rows))


PAGES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "benchmark-config": _config_page,
        "claims": _claim_page,
        "cli": _command_page,
        "gate": _service_page,
        "profiles": _profile_page,
        "records": _records_page,
    }
)


# ---- keys of models --------------------------------------------------------------------------------------------------


def _toml_sections(root: type[BaseModel]) -> Iterator[str]:
    """Yield a section with a Markdown table for each table of a TOML file. Parents precede nested tables."""
    pending: list[tuple[str, type[BaseModel]]] = [("", root)]
    while pending:
        heading, model = pending.pop(0)
        for name, field in model.model_fields.items():
            key = field.alias or name
            for nested in _models(field.annotation):
                path = f"{heading.strip('[]')}.{key}".strip(".")
                is_list = model.model_json_schema()["properties"][key].get("type") == "array"
                pending.append((f"[[{path}]]" if is_list else f"[{path}]", nested))
        rows = _rows(model, {})
        if heading or model.model_fields.keys() != {inner.strip("[]") for inner, _ in pending}:
            about = f"{_description(model)}\n\n" if heading else ""
            yield f"## {f'`{heading}`' if heading else 'Top level'}\n\n{about}{_table(rows)}\n"


def _json_sections(*roots: type[BaseModel]) -> Iterator[str]:
    """Yield a section with a Markdown table for each model of a JSON file, in order of first use."""
    models = list(roots)
    for model in models:  # the loop also visits the models that it appends
        inner = [each for field in model.model_fields.values() for each in _models(field.annotation)]
        models += dict.fromkeys(each for each in inner if each not in models)
    headings = {model.__name__: f"[{model.__name__}](#{model.__name__.lower()})" for model in models}
    for model in models:
        yield f"## {model.__name__}\n\n{_description(model)}\n\n{_table(_rows(model, headings))}\n"


def _description(model: type[BaseModel]) -> str:
    """Return a model's docstring as Markdown."""
    return (inspect.getdoc(model) or "").replace("``", "`")


NAMED_AFTER_FILES = ((Profile, "name"), (Claim, "name"))


def _rows(model: type[BaseModel], headings: Headings) -> list[str]:
    """Return a Markdown table row for each key of a model. ``headings`` is empty for TOML files."""
    schema = model.model_json_schema(by_alias=True)
    comments, rows, unset = field_comments(model), [], "null" if headings else "unset"
    for name, field in model.model_fields.items():
        key = field.alias or name
        about = schema["properties"][key]
        default = "required" if key in schema.get("required", ()) else _default(about.get("default"))
        default = "file name" if (model, name) in NAMED_AFTER_FILES else default
        keys = ", ".join(f"`{each}`" for each in (url_keys() if key == "urls" else (key,)))
        kind = "text" if key == "urls" else _type(about, schema.get("$defs", {}), headings)
        rows.append(f"| {keys} | {kind} | {default} | {comments[name].replace('None', unset)} |")
    return rows


def _table(rows: list[str]) -> str:
    return "\n".join(("| key | value | default | meaning |", "|---|---|---|---|", *rows))


def _models(annotation: object) -> list[type[BaseModel]]:
    """Return the models that occur in a type such as ``tuple[Request, ...]`` or ``dict[str, ValueSource]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models(inner)]


def field_comments(model: type[BaseModel]) -> dict[str, str]:
    """Return each field's comment, which is on the field's lines or directly above them."""
    text_by_field = {
        name: text
        for base in model.__bases__
        if issubclass(base, BaseModel) and base is not BaseModel
        for name, text in field_comments(base).items()
    }
    source = inspect.getsource(model)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    lines = source.splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - a model is a class
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            within = [comments[line] for line in range(node.lineno, (node.end_lineno or 0) + 1) if line in comments]
            above = node.lineno - 1
            while not within and above in comments and lines[above - 1].lstrip().startswith("#"):
                above -= 1
            texts = within or [comments[line] for line in range(above + 1, node.lineno)]
            text = " ".join(text for text in texts if not text.startswith("noqa")).replace("``", "`").rstrip("., ")
            text_by_field[node.target.id] = text[:1].upper() + text[1:]
    return text_by_field


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value and not isinstance(value, dict) else ""


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any], headings: Headings) -> str:
    """Describe the values that a JSON schema permits. A model in ``headings`` is shown as a link to its section."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return headings.get(name) or _type(definitions[name], definitions, headings)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(filter(None, (_type(each, definitions, headings) for each in choices))))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("prefixItems")
        return (
            f"{len(items)} values: {_type(items[0], definitions, headings)}"
            if items
            else f"list of {_type(schema['items'], definitions, headings)}"
        )
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"table of {_type(values, definitions, headings)}" if isinstance(values, dict) and values else "table"
    low, high = schema.get("minimum"), schema.get("maximum")
    is_limited = low is not None and high is not None and max(-low, high) < LARGE
    limits = f" {low:,.0f} to {high:,.0f}" if is_limited else ""
    return f"{NAMES[kind]}{limits}" if kind else "any JSON value"


# ---- verbs and flags -------------------------------------------------------------------------------------------------


def _verb_section(name: str, verb: App) -> str:
    """Return a verb's description, examples and table of flags."""
    text = inspect.cleandoc(verb.help or "").replace("``", "`")
    about, _, rest = text.partition("For example:\n")
    examples, _, after = rest.partition("\n\n")
    block = "\n".join(f"    {line.strip()}" for line in examples.splitlines())
    prose = (paragraph.strip().replace("<", "&lt;") for paragraph in (about, after))
    paragraphs = "\n\n".join(filter(None, (next(prose), block, next(prose))))
    rows = []
    for argument in verb.assemble_argument_collection():
        names = [flag for flag in argument.names if not flag.startswith(("--no-", "--empty-")) or flag == argument.name]
        flags = ", ".join(f"`{' '.join(filter(None, (flag, argument.parameter.metavar)))}`" for flag in names)
        if choices := sorted(argument.get_choices() or ()):
            flags += f" ({' or '.join(f'`{choice}`' for choice in choices)})"
        rows += [f"| {flags} | {' '.join((argument.parameter.help or '').split())} |"] if argument.show else []
    return f"## `{name}`\n\n{paragraphs}\n\n{_flag_table(rows)}\n"


def _service_flags() -> str:
    """Return a table of the ``compare`` flags that apply to services."""
    names = {*COMPARISON_FLAGS, *SUPPORTED_FLAGS, *(field.name for field in fields(ServiceFlags))}
    flags = {f"--{name.replace('_', '-')}" for name in names}
    rows = [
        f"| `{name}` | {SERVICE_FLAGS.get(name) or ' '.join((each.parameter.help or '').split())} |"
        for each in application()["compare"].assemble_argument_collection()
        for name in flags.intersection(each.names)
    ]
    return f"## Flags for `./tfb compare --base REV`\n\n{_flag_table(sorted(rows))}\n"


def _flag_table(rows: list[str]) -> str:
    return "\n".join(("| flag | meaning |", "|---|---|", *rows))


if __name__ == "__main__":
    main()
