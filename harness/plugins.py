"""Finds plugins: classes that add verbs, test types, exporters and other parts to tfb.

An entry point of the group ``tfb.plugins`` names the class. A wheel of tfb declares its own plugins
(``harness.extras``) like any other distribution. A checkout is not a distribution, so its entry points come from
pyproject.toml.
"""

import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from harness.errors import PluginError, UsageError
from harness.paths import INSTALLED, REPOSITORY
from harness.plain_text import printable

GROUP = "tfb.plugins"
DISTRIBUTION = "tfb"
OWN_ENTRY_POINTS = re.compile(
    rf'^\[project\.entry-points\."{re.escape(GROUP)}"\]\n.*?(?=^\[|\Z)', re.MULTILINE | re.DOTALL
)
ObjectPath = str  # "package.module:object" or "package.module", imported when tfb needs the object
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of ``./tfb VERB``: a function whose parameters are the flags (cyclopts) and that returns an exit code."""

    target: ObjectPath
    help: str  # a line of ./tfb --help
    group: str = "results"


@dataclass(frozen=True, kw_only=True)
class PageView:
    """A page that the dashboard serves below /views and links in its navigation."""

    target: ObjectPath  # a function from the results folder to HTML
    title: str


class Plugin(Protocol):
    """The parts that a plugin adds. A plugin derives from this class and sets the attributes that it needs.

    Keys are the names under which users select a part. tfb reads the attributes whenever it starts, so the module of
    the plugin's class should import only this module.
    """

    verbs: ClassVar[Mapping[str, Verb]] = {}
    test_types: ClassVar[Mapping[str, ObjectPath]] = {}  # of type harness.plan.testtypes.TestType
    verifications: ClassVar[
        Mapping[str, ObjectPath]
    ] = {}  # harness.verify.checks.registry.TestTypeVerification, by test type
    designs: ClassVar[Mapping[str, ObjectPath]] = {}  # functions from a plan and a seed to a harness.experiment design
    exporters: ClassVar[Mapping[str, ObjectPath]] = {}  # functions of a harness.report.Report and a text file
    page_views: ClassVar[Mapping[str, PageView]] = {}
    hooks: ClassVar[Mapping[str, ObjectPath]] = {}  # implementations of the core's ``Hook`` objects


@dataclass(frozen=True, kw_only=True)
class InstalledPlugin:
    """A plugin and where it comes from."""

    name: str
    distribution: str
    parts: type[Plugin]

    def load(self, target: ObjectPath) -> object:
        """Import an object of the plugin. Raises PluginError."""
        try:
            return _import(target)
        except Exception as error:  # code of others may raise anything
            raise PluginError(_explain(self.name, self.distribution, target, error)) from error


@cache
def installed() -> Sequence[InstalledPlugin]:
    """Return all plugins whose class can be imported, and report the others on stderr."""
    found = []
    for name, distribution, target in (*_own_entry_points(), *_installed_entry_points()):
        try:
            parts = _import_plugin(target)
        except Exception as error:  # noqa: BLE001 - code of others may raise anything
            _report(_explain(name, distribution, target, error))
        else:
            found.append(InstalledPlugin(name=name, distribution=distribution, parts=parts))
    return tuple(found)


class Extensions(Generic[T]):
    """The objects that plugins add to an extension point, for example all exporters of plugins."""

    def __init__(self, attribute: str) -> None:
        """``attribute`` is the attribute of ``Plugin`` whose values are targets."""
        self._attribute = attribute

    def names(self) -> tuple[str, ...]:
        """Return the names of all objects without importing them."""
        return tuple(name for plugin in installed() for name in getattr(plugin.parts, self._attribute))

    def load_all(self) -> dict[str, T]:
        """Import and return the objects by name; report those that cannot be imported on stderr."""
        objects: dict[str, T] = {}
        for plugin in installed():
            for name, target in getattr(plugin.parts, self._attribute).items():
                try:
                    objects[name] = cast("T", plugin.load(target))
                except PluginError as error:
                    _report(str(error))
        return objects


@dataclass(frozen=True, kw_only=True)
class Hook(Generic[T]):
    """A function that the core calls and that a plugin implements."""

    name: str
    purpose: str  # for the message when no plugin implements it

    def load(self) -> T:
        """Import the implementation. Raises UsageError without one, and PluginError if the import fails."""
        for plugin in installed():
            if target := plugin.parts.hooks.get(self.name):
                return cast("T", plugin.load(target))
        raise UsageError(f"no installed plugin provides {self.purpose}: restore its folder in harness/extras")


def verbs() -> dict[str, Verb]:
    """Return the verbs of all plugins."""
    return {name: verb for plugin in installed() for name, verb in plugin.parts.verbs.items()}


def page_views() -> dict[str, tuple[InstalledPlugin, PageView]]:
    """Return the page views of all plugins."""
    return {name: (plugin, view) for plugin in installed() for name, view in plugin.parts.page_views.items()}


# ---- entry points ----------------------------------------------------------------------------------------------------


def _own_entry_points() -> Iterator[tuple[str, str, ObjectPath]]:
    """Yield name, distribution and target of the entry points of a checkout.

    A folder of harness/extras that has been removed is not an error.
    """
    if INSTALLED:
        return
    declared = OWN_ENTRY_POINTS.search((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    groups = tomllib.loads(declared[0])["project"]["entry-points"] if declared else {GROUP: {}}
    for name, target in groups[GROUP].items():
        package = importlib.util.find_spec(target.partition(":")[0])
        if package and package.has_location:  # a folder without __init__.py has no location
            yield name, DISTRIBUTION, target


def _installed_entry_points() -> Iterator[tuple[str, str, ObjectPath]]:
    """Yield name, distribution and target of the entry points of installed distributions.

    Importing importlib.metadata takes as long as half of ``./tfb --help``. It is only imported if a distribution
    declares plugins.
    """
    if not any(_declares_plugins(Path(folder)) for folder in dict.fromkeys(sys.path)):
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        distribution = point.dist.name if point.dist else "unknown distribution"
        if INSTALLED or distribution != DISTRIBUTION:
            yield point.name, distribution, point.value


def _declares_plugins(folder: Path) -> bool:
    for pattern in ("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt"):
        for file in folder.glob(pattern):
            if f"[{GROUP}]" in file.read_text(encoding="utf-8", errors="replace"):
                return True
    return False


def _import(target: ObjectPath) -> object:
    module, _, attribute = target.partition(":")
    found: object = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        found = getattr(found, name)
    return found


def _import_plugin(target: ObjectPath) -> type[Plugin]:
    parts = _import(target)
    if isinstance(parts, type) and Plugin in parts.__mro__:
        return parts
    raise TypeError("it must name a subclass of harness.plugins.Plugin")


def _explain(name: str, distribution: str, target: ObjectPath, error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0][:300]
    return (
        f"plugin {name} of {distribution} cannot be loaded from {target}: {type(error).__name__}: {first}. "
        f"Repair or uninstall {distribution}"
    )


def _report(problem: str) -> None:
    print(f"tfb: warning: {printable(problem)}", file=sys.stderr)
