"""tfb's errors and their exit codes. Each message suggests a remedy."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``./tfb``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    CANNOT_TELL = 4  # compare: the measurements do not support a verdict
    UNTESTABLE = 125  # compare --bisect: git bisect skips the commit
    INTERRUPTED = 130


class TfbError(Exception):
    """Base class of errors that a user can act on."""

    exit_code = Exit.FAILED


class UsageError(TfbError):
    """Invalid input from the user, such as an unknown name or conflicting values."""

    exit_code = Exit.USAGE


class ConfigError(TfbError):
    """An invalid configuration file. The message names the file, the key and the allowed values."""

    exit_code = Exit.USAGE


class PluginError(TfbError):
    """A plugin that cannot be loaded. The message names the plugin and the distribution that contains it."""


class EnvironmentLacksError(TfbError):
    """A missing tool or permission. The message explains how to provide it."""

    exit_code = Exit.ENVIRONMENT


class BuildError(TfbError):
    """A build that failed or timed out. The message contains the path and the last lines of the build log."""


class StartError(TfbError):
    """A server or a database that exited or did not respond during startup."""


class ServerDiedError(TfbError):
    """A server that exited after a successful start."""


class MachineLostError(TfbError):
    """A machine that stopped responding during a run. The run can continue only when the machine is available again."""

    exit_code = Exit.ENVIRONMENT


class EngineFullError(MachineLostError):
    """A Docker engine with a full disk. It cannot start containers until disk space is freed."""


class DatabaseDiedError(TfbError):
    """A database that exited or ended sessions during a measurement. The measured server is not at fault."""


class LoadError(TfbError):
    """A load generator that failed or printed no result."""


class StoreError(TfbError):
    """Results that cannot be written or read. The message names the file."""


class ChangedRecordsError(StoreError):
    """Records that a different program changed during the run."""
