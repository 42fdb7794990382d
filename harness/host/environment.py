"""Selects the environment variables that builds and servers inherit from the caller.

The caller's environment contains secrets (``GITHUB_TOKEN``, ``AWS_SECRET_ACCESS_KEY``), and builds and servers run
third-party code. They therefore inherit only the variables listed here and those named in ``TFB_PASS_ENV``.
"""

import os
import re
from collections.abc import Mapping

PASS_VARIABLE = "TFB_PASS_ENV"  # noqa: S105 - further names, separated by commas, for builds and servers
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Python variables that change which code is imported. PYTHONUTF8 and similar variables are harmless.
PYTHON_VARIABLES = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONPLATLIBDIR"),
    *("PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONWARNINGS", "PYTHONCASEOK", "PYTHONOPTIMIZE", "PYTHON_PRESITE"),
)
WORLD_WRITABLE = 0o002  # mode bit; other users must not be able to change programs that tfb builds and runs
# Variables of libpq. For example, PGHOSTADDR would connect tfb to a different database.
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
    """Return the caller's variables for a server: folders, language and certificate authorities."""
    return _select(SERVER_VARIABLES)


def build_environment() -> dict[str, str]:
    """Return the caller's variables for a build: a server's variables, proxies, registries and compiler settings."""
    return _select(re.compile(f"{SERVER_VARIABLES.pattern}|{BUILD_VARIABLES.pattern}"))


def helper_environment() -> dict[str, str]:
    """Return the minimal environment of the guardian, which drops privileges for children."""
    kept = ("TMPDIR", "LD_LIBRARY_PATH", "LANG")  # some Python installations need LD_LIBRARY_PATH
    return {"PATH": os.pathsep.join(SYSTEM_PATH), **{name: os.environ[name] for name in kept if name in os.environ}}


def secure_process() -> None:
    """Secure this process's environment and umask against other users and files in the current folder."""
    libpq = {name for name in os.environ if POSTGRES_VARIABLES.fullmatch(name)} - _passed_names()
    for name in (*PYTHON_VARIABLES, *libpq):
        os.environ.pop(name, None)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.umask(os.umask(0o077) | WORLD_WRITABLE)
    os.environ["PATH"] = remove_relative_folders(os.environ.get("PATH", os.defpath))


def remove_relative_folders(path: str) -> str:
    """Return a search path without relative folders."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))  # noqa: PTH117


def _select(names: re.Pattern[str]) -> dict[str, str]:
    passed = _passed_names()
    variables: Mapping[str, str] = os.environ
    return {name: value for name, value in variables.items() if names.fullmatch(name) or name in passed}


def _passed_names() -> set[str]:
    """Return the names of the variables that the caller passes on explicitly."""
    return {name.strip() for name in os.environ.get(PASS_VARIABLE, "").split(",")}
