"""All errors of tfb with their exit codes. Each message explains the next step."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of ``./tfb``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    CANNOT_TELL = 4  # compare: the measurements do not support a verdict
    INTERRUPTED = 130


class TfbError(Exception):
    """Base class of errors that a user can act on."""

    exit_code = Exit.FAILED


class UsageError(TfbError):
    """A command line with an unknown name, or with values that do not fit together."""

    exit_code = Exit.USAGE


class ConfigError(TfbError):
    """An invalid configuration file; the message names the file, the key and the allowed values."""

    exit_code = Exit.USAGE


class PluginError(TfbError):
    """A plugin cannot be loaded: names the plugin and the package that installed it."""


class EnvironmentLacksError(TfbError):
    """A missing tool or permission of the machine; the message names the command that provides it."""

    exit_code = Exit.ENVIRONMENT


class BuildError(TfbError):
    """A build that failed or timed out. The message contains the last lines and the path of the log."""


class StartError(TfbError):
    """A server or a database that exited or did not respond while it was starting."""


class ServerDiedError(TfbError):
    """A server that exited after a successful start."""


class MachineLostError(TfbError):
    """A machine of the run that no longer responds. The run can continue only when the machine is available again."""

    exit_code = Exit.ENVIRONMENT


class EngineFullError(MachineLostError):
    """A Docker engine whose disk is full. It cannot start containers until space is freed."""


class DatabaseDiedError(TfbError):
    """A database that exited or lost sessions during a measurement, for which no server is at fault."""


class LoadError(TfbError):
    """A load generator that failed or printed no result."""


class StoreError(TfbError):
    """Results that cannot be written or read. The message names the file."""


class ChangedRecordsError(StoreError):
    """Records that another program changed during the run."""
