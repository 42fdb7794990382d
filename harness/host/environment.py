"""Selects the environment variables that builds and servers inherit from the caller.

The caller's environment contains secrets (``GITHUB_TOKEN``, ``AWS_SECRET_ACCESS_KEY``), and builds and servers run
third-party code. They therefore inherit only the variables listed here or named in ``TFB_PASS_ENV``.
"""

import os
import re

PASS_VARIABLE = "TFB_PASS_ENV"  # noqa: S105 - names additional variables to inherit, separated by commas
CALLER_PREFIX = "TFB_CALLER_"  # if tfb changes the variable NAME, TFB_CALLER_NAME keeps the caller's value
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Python variables that change which code is imported. Other variables, such as PYTHONUTF8, are harmless.
PYTHON_VARIABLES = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONPLATLIBDIR"),
    *("PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONWARNINGS", "PYTHONCASEOK", "PYTHONOPTIMIZE", "PYTHON_PRESITE"),
)
# libpq's variables. For example, PGHOSTADDR would make tfb connect to the wrong database.
POSTGRES_VARIABLES = re.compile(r"PG[A-Z]+")
SERVER_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TZDIR|TMPDIR|LANG|LANGUAGE|LC_\w+|LD_LIBRARY_PATH"
    r"|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS"  # certificate authorities
    # Installation folders of toolchains.
    r"|JAVA_HOME|GRAALVM_HOME|CARGO_HOME|RUSTUP_(HOME|TOOLCHAIN)|GOROOT|GOPATH|PYENV_(ROOT|VERSION)|NVM_(DIR|BIN)"
    r"|RBENV_(ROOT|VERSION)|GEM_(HOME|PATH)|SDKMAN_DIR|ASDF_\w*DIR|DOTNET_ROOT|MIX_HOME|HEX_HOME|COMPOSER_HOME"
)
BUILD_VARIABLES = re.compile(
    # Proxies and certificates.
    r"(https?|ftp|no|all)_proxy|(HTTPS?|FTP|NO|ALL)_PROXY|(CURL|REQUESTS)_CA_BUNDLE|GIT_SSL_CA(INFO|PATH)"
    r"|NIX_SSL_CERT_FILE|CARGO_HTTP_(CAINFO|PROXY)|DENO_CERT"
    # Registries, mirrors and caches. Credentials (for example CARGO_REGISTRY_TOKEN) are excluded.
    r"|(npm_config|NPM_CONFIG)_(registry|REGISTRY|cafile|CAFILE|cache|CACHE|proxy|PROXY|https_proxy|HTTPS_PROXY"
    r"|noproxy|NOPROXY|strict_ssl|STRICT_SSL|userconfig|USERCONFIG)|YARN_(REGISTRY|CACHE_FOLDER)|COREPACK_\w+"
    r"|PIP_(INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|TRUSTED_HOST|CERT|PROXY|CONFIG_FILE|CACHE_DIR"
    r"|DEFAULT_TIMEOUT|RETRIES|DISABLE_PIP_VERSION_CHECK)|UV_(INDEX_URL|DEFAULT_INDEX|INDEX|CACHE_DIR|NATIVE_TLS)"
    r"|GO(PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE|FLAGS|CACHE|MODCACHE|TOOLCHAIN|INSECURE)|CGO_\w+"
    r"|CARGO_(NET_\w+|BUILD_JOBS|INCREMENTAL)|RUSTFLAGS|RUSTUP_(DIST_SERVER|UPDATE_ROOT|AUTO_INSTALL)"
    r"|MAVEN_(OPTS|ARGS)|M2_HOME|GRADLE_(OPTS|USER_HOME)|SBT_OPTS|JAVA_TOOL_OPTIONS|NUGET_PACKAGES|DOTNET_CLI_\w+"
    r"|COMPOSER_CACHE_DIR|HEX_(MIRROR|CACERTS_PATH)|BUNDLE_(MIRROR\w*|PATH)"
    # Compilers.
    r"|CC|CXX|CPP|LD|AR|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|PKG_CONFIG_PATH|MAKEFLAGS|DEBIAN_FRONTEND|CI"
)


def server_environment() -> dict[str, str]:
    """Return the caller's variables that servers inherit: folders, locale and certificate authorities."""
    return _select(SERVER_VARIABLES)


def build_environment() -> dict[str, str]:
    """Return the caller's variables that builds inherit.

    In addition to the servers' variables, builds inherit settings for proxies, registries and compilers.
    """
    return _select(re.compile(f"{SERVER_VARIABLES.pattern}|{BUILD_VARIABLES.pattern}"))


def helper_environment() -> dict[str, str]:
    """Return a minimal environment for the guardian, because the guardian may run as root."""
    names = ("TMPDIR", "LD_LIBRARY_PATH", "LANG")  # some Python installations need LD_LIBRARY_PATH
    return {"PATH": os.pathsep.join(SYSTEM_PATH), **{name: os.environ[name] for name in names if name in os.environ}}


def secure_process() -> None:
    """Prevent other users and the current folder from injecting code into this process.

    Remove unsafe environment variables, drop relative folders from PATH, and restrict the umask.
    """
    libpq = {name for name in os.environ if POSTGRES_VARIABLES.fullmatch(name)} - _passed_names()
    for name in (*PYTHON_VARIABLES, *libpq):
        if value := os.environ.pop(name, ""):
            os.environ.setdefault(f"{CALLER_PREFIX}{name}", value)
    os.environ["PYTHONSAFEPATH"] = "1"
    # Keep other users from changing programs that tfb builds and runs.
    os.umask(os.umask(0o077) | 0o002)
    os.environ["PATH"] = absolute_search_path()


def absolute_search_path() -> str:
    """Return PATH without relative folders, because these could belong to an untrusted repository."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder.startswith("/"))


def _select(names: re.Pattern[str]) -> dict[str, str]:
    passed = _passed_names()
    own = {name: value for name, value in os.environ.items() if names.fullmatch(name)}
    original = {name: os.environ.get(f"{CALLER_PREFIX}{name}", os.environ.get(name, "")) for name in passed}
    return own | {name: value for name, value in original.items() if value}


def _passed_names() -> set[str]:
    """Return the names of the variables that the caller lists in ``TFB_PASS_ENV``."""
    return {name.strip() for name in os.environ.get(PASS_VARIABLE, "").split(",")}
