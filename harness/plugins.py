"""Finds and loads plugins. A plugin is a class that adds verbs, test types, exporters and other objects to tfb.

An entry point in the group ``tfb.plugins`` names the class. The plugins in ``harness.extras`` also have entry points.
In a checkout, which is not an installed distribution, tfb reads these entry points from pyproject.toml.
"""

import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
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
ObjectPath = str  # "package.module:object" or "package.module"; tfb imports it only when needed
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A subcommand of ``./tfb``.

    ``target`` is a cyclopts App or a function. The function's parameters are the flags, and it returns the exit code.
    """

    target: ObjectPath
    help: str  # one line for ./tfb --help
    group: str = "results"


@dataclass(frozen=True, kw_only=True)
class PageView:
    """A page that the dashboard serves under /views and lists in the navigation."""

    target: ObjectPath  # function that receives the results folder and returns HTML
    title: str


class Plugin(Protocol):
    """Base class of plugins. A plugin overrides the attributes for the extension points that it uses.

    Each attribute maps names to the objects that the plugin adds. tfb imports the plugin's module on every start, so
    the module should import only ``harness.plugins``.
    """

    verbs: ClassVar[Mapping[str, Verb]] = {}
    test_types: ClassVar[Mapping[str, ObjectPath]] = {}  # name -> object of type harness.plan.testtypes.TestType
    # Test type -> harness.verify.checks.registry.TestTypeVerification.
    verifications: ClassVar[Mapping[str, ObjectPath]] = {}
    table_sets: ClassVar[Mapping[str, ObjectPath]] = {}  # name -> harness.runtime.database.table_sets.TableSet
    # Name -> function that takes a plan and a seed and returns a design (harness.experiment.designs).
    designs: ClassVar[Mapping[str, ObjectPath]] = {}
    # Name -> function that writes a harness.report.Report to a text file.
    exporters: ClassVar[Mapping[str, ObjectPath]] = {}
    page_views: ClassVar[Mapping[str, PageView]] = {}
    hooks: ClassVar[Mapping[str, ObjectPath]] = {}  # name of a ``Hook`` in the core -> function that implements it


@dataclass(frozen=True, kw_only=True)
class InstalledPlugin:
    """A plugin and the distribution that contains it."""

    name: str
    distribution: str
    parts: type[Plugin]  # the plugin's class

    def load(self, target: ObjectPath) -> object:
        """Import an object of the plugin. Raises PluginError if the import fails."""
        try:
            return _import(target)
        except Exception as error:  # a plugin's code may raise any exception
            raise PluginError(_explain(self.name, self.distribution, target, error)) from error


@cache
def installed() -> Sequence[InstalledPlugin]:
    """Return the plugins that can be imported. Print a warning to stderr for each failed import."""
    plugins = []
    for name, distribution, target in (*_own_entry_points(), *_installed_entry_points()):
        try:
            parts = _import_plugin(target)
        except Exception as error:  # noqa: BLE001 - third-party code may raise any exception
            _report(_explain(name, distribution, target, error))
        else:
            plugins.append(InstalledPlugin(name=name, distribution=distribution, parts=parts))
    return tuple(plugins)


class Extensions(Generic[T]):
    """The objects that plugins add to an extension point, for example exporters."""

    def __init__(self, attribute: str) -> None:
        """Select the extension point: an attribute of ``Plugin`` that plugins override, for example ``exporters``."""
        self._attribute = attribute

    def names(self) -> tuple[str, ...]:
        """Return the names of all objects without importing them."""
        return tuple(name for plugin in installed() for name in getattr(plugin.parts, self._attribute))

    def load_all(self) -> dict[str, T]:
        """Import the objects and return them by name. Print a warning for each import that fails."""
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
    """A function that the core calls and a plugin implements."""

    name: str
    purpose: str  # completes the message "no installed plugin provides ..."

    def load(self) -> T:
        """Import the function. Raises UsageError if no plugin provides the hook, or PluginError if the import fails."""
        for plugin in installed():
            if target := plugin.parts.hooks.get(self.name):
                return cast("T", plugin.load(target))
        raise UsageError(f"no installed plugin provides {self.purpose}: restore its folder in harness/extras")


def verbs(reserved: Collection[str]) -> dict[str, Verb]:
    """Return the verbs of all plugins by name. If a name is already taken, omit the verb and print a warning."""
    accepted: dict[str, Verb] = {}
    for plugin in installed():
        for name, verb in plugin.parts.verbs.items():
            if name in reserved or name in accepted:
                _report(f"plugin {plugin.name}: its verb {name!r} is ignored, because the name is taken. Rename it")
            else:
                accepted[name] = verb
    return accepted


def page_views() -> dict[str, tuple[InstalledPlugin, PageView]]:
    """Return the page views of all plugins by name."""
    return {name: (plugin, view) for plugin in installed() for name, view in plugin.parts.page_views.items()}


# ---- entry points ----------------------------------------------------------------------------------------------------


def _own_entry_points() -> Iterator[tuple[str, str, ObjectPath]]:
    """Yield (name, distribution, target) for each entry point in pyproject.toml whose package exists."""
    if INSTALLED:
        return
    declared = OWN_ENTRY_POINTS.search((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    groups = tomllib.loads(declared[0])["project"]["entry-points"] if declared else {GROUP: {}}
    for name, target in groups[GROUP].items():
        package = importlib.util.find_spec(target.partition(":")[0])
        if package and package.has_location:  # a folder without __init__.py has no location
            yield name, DISTRIBUTION, target


def _installed_entry_points() -> Iterator[tuple[str, str, ObjectPath]]:
    """Yield (name, distribution, target) for each entry point of an installed distribution.

    Import importlib.metadata only if a distribution declares plugins, because the import makes ``./tfb --help`` 50 %
    slower.
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
    value: object = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        value = getattr(value, name)
    return value


def _import_plugin(target: ObjectPath) -> type[Plugin]:
    parts = _import(target)
    if isinstance(parts, type) and Plugin in parts.__mro__:
        return parts
    raise TypeError("the entry point must name a subclass of harness.plugins.Plugin")


def _explain(name: str, distribution: str, target: ObjectPath, error: Exception) -> str:
    first_line = (str(error).splitlines() or [""])[0][:300]
    return (
        f"cannot load the plugin {name} of {distribution} from {target}: {type(error).__name__}: {first_line}. "
        f"Repair or uninstall {distribution}"
    )


def _report(problem: str) -> None:
    print(f"tfb: warning: {printable(problem)}", file=sys.stderr)
