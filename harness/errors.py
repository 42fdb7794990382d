"""Every error of the harness on one page, with its exit code; each message says what to do next."""

from enum import IntEnum


class Exit(IntEnum):
    """What ``./tfb`` answers to the shell."""

    OK = 0
    FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    CANNOT_TELL = 4  # of compare: neither slower, faster nor the same was shown
    INTERRUPTED = 130


class TfbError(Exception):
    """Base of all errors that a person can act on."""

    exit_code = Exit.FAILED


class UsageError(TfbError):
    """The command line asks for something that does not exist or does not fit."""

    exit_code = Exit.USAGE


class ConfigError(TfbError):
    """A configuration file is broken: names the file, the key and what is allowed."""

    exit_code = Exit.USAGE


class PluginError(TfbError):
    """A plugin cannot be loaded: names the plugin and the package that installed it."""


class EnvironmentLacksError(TfbError):
    """The machine lacks a tool or right: names it and the command that mends it."""

    exit_code = Exit.ENVIRONMENT


class BuildError(TfbError):
    """An implementation's build failed or timed out: carries the last lines and the path of its log."""


class StartError(TfbError):
    """A server or the database exited, or never answered."""


class ServerDiedError(TfbError):
    """A server that had answered is gone in the middle of its work."""


class MachineLostError(TfbError):
    """A machine of the run answers no more: names it; nothing can be measured until it is back."""

    exit_code = Exit.ENVIRONMENT


class EngineFullError(MachineLostError):
    """The disk of the Docker engine is full: nothing can be started until there is room."""


class DatabaseDiedError(TfbError):
    """PostgreSQL ended, or lost its sessions, in the middle of somebody's work, who is not to blame for it."""


class LoadError(TfbError):
    """The load generator failed or printed no result."""


class StoreError(TfbError):
    """Results could not be written or read: names the file and what is wrong with it."""


class ChangedRecordsError(StoreError):
    """Another program changed the records of a run while the run was going on."""
