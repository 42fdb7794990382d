"""Rewrites a side's compose project to isolate the side from this machine and from the other sides.

The sides of a comparison are base, the control copy and head. The input is the output of ``docker compose config``, in
which all includes, merges and variables are resolved. tfb copies, drops or rewrites known keys, and rejects all other
keys.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.extras.gate.compose_files import confined
from harness.runtime.limits import LOGGING, Limits

ComposeTree = Mapping[str, Any]

# fmt: off
KEPT = frozenset(
    {
        "attach", "blkio_config", "cap_drop", "command", "cpu_count", "cpu_percent",
        "cpu_period", "cpu_quota", "cpu_shares", "cpus", "cpuset", "depends_on",
        "dns", "dns_opt", "dns_search", "domainname", "entrypoint", "environment",
        "expose", "extra_hosts", "group_add", "healthcheck", "hostname", "init",
        "links", "mac_address", "platform", "read_only", "restart", "shm_size",
        "stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs",
        "tty", "ulimits", "user", "working_dir",
    }
)
# Dropped keys: tfb sets them itself, or they affect only programs outside the side's containers.
DROPPED = frozenset(
    {
        "annotations", "container_name", "deploy", "develop", "env_file", "label_file",
        "labels", "logging", "mem_limit", "mem_reservation", "mem_swappiness", "memswap_limit",
        "pids_limit", "ports", "profiles", "pull_policy", "scale",
    }
)
# Keys that give a container privileges on this machine.
RIGHTS = frozenset(
    {
        "cap_add", "cgroup_parent", "cpu_rt_period", "cpu_rt_runtime", "credential_spec", "device_cgroup_rules",
        "devices", "gpus", "isolation", "oom_kill_disable", "oom_score_adj", "privileged",
        "runtime",
    }
)
NAMESPACES = frozenset({"cgroup", "ipc", "network_mode", "pid", "userns_mode", "uts"})
OWN_NAMESPACES = {"none", "private", "shareable"}  # values that share no namespace with this machine
BUILD_KEPT = frozenset({"args", "dockerfile_inline", "extra_hosts", "no_cache", "platforms", "shm_size", "target"})
BUILD_DROPPED = frozenset(
    {
        "attest", "cache_from", "cache_to", "isolation", "labels", "provenance",
        "pull", "sbom", "tags",
    }
)
# fmt: on
BUILD_RIGHTS = frozenset({"entitlements", "privileged", "ssh"})
NETWORK_DRIVER_OPTIONS = frozenset({"com.docker.network.driver.mtu", "com.docker.network.bridge.enable_icc"})
ADDRESS_KEYS = frozenset({"ipv4_address", "ipv6_address", "link_local_ips", "driver_opts"})
CONSENTS = frozenset(
    {*RIGHTS, *NAMESPACES, "security_opt", "volumes", "build.network", *(f"build.{key}" for key in BUILD_RIGHTS)}
)
TOP_LEVEL = frozenset({"name", "networks", "secrets", "configs", "services", "version", "volumes"})
# Prefix for variables that contain secrets. It keeps a secret named PATH apart from the variable PATH.
VALUE_PREFIX = "TFB_VALUE_"
MOST_CONTAINERS = 8  # maximum number of containers per service, except for the measured service, which may have one
MOST_REFUSALS = 20  # maximum number of rejected keys that a message lists


@dataclass(frozen=True, kw_only=True)
class Separation:
    """The identity, limits and permissions of the side that ``separate_model`` isolates."""

    project: str
    service: str  # name of the measured service
    root: Path  # root of the side's copy of the repository
    labels: Mapping[str, str]
    limits: Limits  # limits of each container
    env: Mapping[str, str] = field(default_factory=dict)  # values for ``secrets.NAME.environment``
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # service ("": all) -> permitted keys


def separate_model(model: ComposeTree, separation: Separation) -> dict[str, Any]:
    """Return a model that shares no resources with this machine or with the other sides.

    Raises a UsageError that lists the rejected keys.
    """
    return _Separator(separation).whole(model)


class _Separator:
    """A compose model visitor that rewrites keys and collects the keys that tfb rejects."""

    def __init__(self, separation: Separation) -> None:
        self.given = separation
        self.refused: list[str] = []
        self.binds: list[tuple[str, Path, bool]] = []  # (key, source, whether the mount is writable)

    def whole(self, model: ComposeTree) -> dict[str, Any]:
        for key in model:
            if key not in TOP_LEVEL and not key.startswith("x-"):
                self._refuse(key, "this version of tfb does not know the key", "remove it")
        declared_services: ComposeTree = model.get("services") or {}
        if self.given.service not in declared_services:
            self._refuse(f"services.{self.given.service}", "the service does not exist", "correct service.service")
        services = {name: self._service(name, entry) for name, entry in declared_services.items()}
        whole = {
            "name": self.given.project,
            "services": services,
            "networks": {name: self._network(name, entry or {}) for name, entry in self._used(model, "networks")},
            "volumes": {name: self._volume(name, entry or {}) for name, entry in self._used(model, "volumes")},
            "secrets": {name: self._file("secrets", name, entry) for name, entry in self._used(model, "secrets")},
            "configs": {name: self._file("configs", name, entry) for name, entry in self._used(model, "configs")},
        }
        self._require_fixed_binds()
        if self.refused:
            more = len(self.refused) - MOST_REFUSALS
            lines = [*self.refused[:MOST_REFUSALS], *([f"- and {more} more"] if more > 0 else [])]
            raise UsageError("the compose file cannot be used for a comparison:\n" + "\n".join(lines))
        return whole

    def _refuse(self, key: str, why: str, what: str) -> None:
        self.refused.append(f"- {key[:200]}: {why[:500]}; {what[:300]}")

    def _consented(self, service: str, key: str, reason: str) -> bool:
        """Return whether ``--allow`` permits the key. If it does not, reject the key."""
        allowed = self.given.allowed
        if key in allowed.get(service, frozenset()) | allowed.get("", frozenset()):
            return True
        self._refuse(f"services.{service}.{key}", reason, f"remove it, or consent with --allow {service}={key}")
        return False

    # ---- services ----------------------------------------------------------------------------------------------------

    def _service(self, name: str, entry: ComposeTree) -> dict[str, Any]:
        separated = {key: value for key, value in entry.items() if key in KEPT and value is not None}
        separated["environment"] = set_only(entry.get("environment"))
        checks: Mapping[str, Callable[[str, Any], Any]] = {
            "build": self._build,
            "image": self._image,
            "networks": self._networks,
            "post_start": self._hooks,
            "pre_stop": self._hooks,
            "security_opt": self._security,
            "volumes": self._mounts,
            "volumes_from": self._volumes_from,
            **dict.fromkeys(("secrets", "configs"), lambda _, value: value),
        }
        for key, value in entry.items():
            if value in (None, False, "", [], {}) or key in KEPT | DROPPED:
                continue
            if key in checks:
                separated[key] = checks[key](name, value)
            elif key in NAMESPACES:
                separated |= self._namespace(name, key, str(value))
            elif key not in RIGHTS:
                self._refuse(f"services.{name}.{key}", "this version of tfb does not know the key", "remove it")
            elif self._consented(name, key, "it gives the container privileges on this machine"):
                separated[key] = value
        return separated | self._limits(name, entry)

    def _limits(self, name: str, entry: ComposeTree) -> dict[str, Any]:
        """Return the keys that tfb sets for a service, such as limits and labels.

        The memory and pid limits are the lower of tfb's value and the compose file's value.
        """
        deploy = entry.get("deploy") or {}
        resources = deploy.get("resources") or {}
        limits = resources.get("limits") or {}
        if (resources.get("reservations") or {}).get("devices"):
            self._refuse(f"services.{name}.deploy", "it reserves devices on this machine", "remove the reservation")
        count = max(int(entry.get("scale") or 1), int(deploy.get("replicas") or 1))
        most = 1 if name == self.given.service else MOST_CONTAINERS
        if count > most:
            self._refuse(f"services.{name}.scale", f"{count} containers are too many", f"use at most {most}")
        memory = min((*_sizes(entry.get("mem_limit"), limits.get("memory")), self.given.limits.memory_bytes))
        pids = min((*_sizes(entry.get("pids_limit"), limits.get("pids")), self.given.limits.pids))
        own: dict[str, Any] = {"mem_limit": str(memory), "memswap_limit": str(memory), "pids_limit": pids}
        own |= {"logging": LOGGING, "labels": dict(self.given.labels), "pull_policy": "never"}
        own |= {"scale": count} if count > 1 else {}
        own |= {"cpus": limits["cpus"]} if limits.get("cpus") and "cpus" not in entry else {}
        return own

    def _namespace(self, name: str, key: str, value: str) -> dict[str, str]:
        if value.startswith("service:") or value in OWN_NAMESPACES:
            return {key: value}
        if key == "network_mode" and value in ("bridge", "default"):
            return {}  # drop the key, because the side's private network has the same effect
        if value == "host" and self._consented(name, key, "it shares a namespace with this machine"):
            return {key: value}
        if value != "host":
            why = f"{value!r} is not in this compose file"
            self._refuse(f"services.{name}.{key}", why, "use a service in this file (service:NAME), or remove it")
        return {}

    def _image(self, name: str, value: str) -> str:
        if not value[0].isalnum():
            self._refuse(f"services.{name}.image", f"{value!r} is not an image name", "correct it")
        return value

    def _security(self, name: str, value: list[str]) -> list[str]:
        harmless = {"no-new-privileges", "no-new-privileges:true", "no-new-privileges=true"}
        if not set(value) <= harmless:
            self._consented(name, "security_opt", "it may weaken the container's isolation from this machine")
        return value

    def _hooks(self, name: str, value: list[ComposeTree]) -> list[dict[str, Any]]:
        if any(hook.get("privileged") for hook in value):
            self._consented(name, "privileged", "a privileged hook has full control of this machine")
        return [{**hook, "environment": set_only(hook.get("environment"))} for hook in value]

    def _networks(self, name: str, value: Mapping[str, ComposeTree | None]) -> Mapping[str, ComposeTree | None]:
        for network, entry in value.items():
            for key in ADDRESS_KEYS & {key for key, each in (entry or {}).items() if each}:
                where = f"services.{name}.networks.{network}.{key}"
                self._refuse(where, "the sides run at the same time and cannot use the same address", "remove it")
        return value

    def _volumes_from(self, name: str, value: list[str]) -> list[str]:
        for source in value:
            if source.startswith("container:"):
                where = f"services.{name}.volumes_from"
                self._refuse(where, f"{source!r} is not in this compose file", "use a volume in this file")
        return value

    def _mounts(self, name: str, value: list[ComposeTree]) -> list[ComposeTree]:
        return [kept for mount in value if (kept := self._mount(name, mount)) is not None]

    def _mount(self, name: str, mount: ComposeTree) -> ComposeTree | None:
        kind, location = mount.get("type"), f"services.{name}.volumes"
        if kind in ("volume", "tmpfs"):
            return mount
        if kind != "bind":
            self._refuse(
                location, f"the sides would share the data in a mount of type {kind!r}", "use a volume in this file"
            )
            return None
        source, read_only = Path(mount["source"]), bool(mount.get("read_only"))
        if (mount.get("bind") or {}).get("propagation", "rprivate") not in ("private", "rprivate"):
            self._refuse(location, f"mounts in {source} would propagate to this machine", "remove bind.propagation")
        if confined(source, self.given.root):
            source = source.resolve()  # resolve now, so later changes to links do not affect the mount
            self.binds.append((location, source, not read_only))
        elif not read_only:
            why = f"{source} is outside the side's copy of the repository, so the sides would write to the same files"
            self._refuse(location, why, "use a volume in this file, or a folder in the repository")
        else:
            self._consented(name, "volumes", f"{source} is outside the repository")
        create = bool((mount.get("bind") or {}).get("create_host_path")) and confined(source, self.given.root)
        return {**mount, "source": str(source), "bind": {"create_host_path": create}}

    # ---- builds ------------------------------------------------------------------------------------------------------

    def _build(self, name: str, build: ComposeTree) -> dict[str, Any]:
        location = f"services.{name}.build"
        separated = {key: value for key, value in build.items() if key in BUILD_KEPT and value}
        separated["args"] = set_only(build.get("args"))
        context = self._inside(f"{location}.context", str(build.get("context") or ""))
        separated["context"] = str(context)
        if file := build.get("dockerfile"):
            separated["dockerfile"] = str(self._inside(f"{location}.dockerfile", str(context / file)))
        for key, value in build.items():
            if not value or key in BUILD_KEPT | BUILD_DROPPED | {"context", "dockerfile"}:
                continue
            if key == "additional_contexts":
                separated[key] = {each: self._context(f"{location}.{key}", str(of)) for each, of in value.items()}
            elif (key == "network" and str(value) in ("none", "default")) or key in ("secrets", "ulimits"):
                separated[key] = value
            elif key not in BUILD_RIGHTS | {"network"}:
                self._refuse(f"{location}.{key}", "this version of tfb does not know the key", "remove it")
            elif self._consented(name, f"build.{key}", "it gives the build access to this machine or to credentials"):
                separated[key] = value
        return separated

    def _context(self, where: str, value: str) -> str:
        if value.startswith(("docker-image://", "service:")):
            return value
        return str(self._inside(where, value))

    def _inside(self, where: str, path: str) -> Path:
        if not path.startswith("/") or "://" in path:
            self._refuse(where, f"{path!r} is remote", "build from a folder in the repository")
        elif not confined(Path(path), self.given.root):
            self._refuse(where, f"{path} is outside the side's copy of the repository", "move it to the repository")
        return Path(path).resolve()

    # ---- resources of all services ----------------------------------------------------------------------------------

    @staticmethod
    def _used(model: ComposeTree, kind: str) -> Iterator[tuple[str, Any]]:
        """Yield (name, entry) for each resource of a kind that a service uses. The default network counts as used.

        ``kind`` is "networks", "volumes", "secrets" or "configs".
        """
        names = {"default"} if kind == "networks" else set[str]()
        for service in (model.get("services") or {}).values():
            for each in (*(service.get(kind) or ()), *((service.get("build") or {}).get(kind) or ())):
                names.add(str(each.get("source")) if isinstance(each, Mapping) else str(each))
        for name, entry in {**({"default": {}} if kind == "networks" else {}), **(model.get(kind) or {})}.items():
            if name in names:
                yield name, entry

    def _refuse_external(self, where: str, entry: ComposeTree) -> None:
        if entry.get("external"):
            why = f"{entry.get('name')!r} exists outside this compose file, so the sides would share it"
            self._refuse(f"{where}.external", why, "remove the key, so that tfb creates a resource for each side")

    def _network(self, name: str, entry: ComposeTree) -> dict[str, Any]:
        location = f"networks.{name}"
        self._refuse_external(location, entry)
        if entry.get("driver") not in (None, "bridge", "default"):
            reason = f"a network with the driver {entry['driver']!r} is shared with this machine"
            self._refuse(f"{location}.driver", reason, "remove the key, so that tfb creates a bridge for each side")
        options = entry.get("driver_opts") or {}
        if not set(options) <= NETWORK_DRIVER_OPTIONS:
            reason = (
                f"{', '.join(sorted(set(options) - NETWORK_DRIVER_OPTIONS))} could refer to a network on this machine"
            )
            self._refuse(f"{location}.driver_opts", reason, "remove it")
        kept = {"internal": True} if entry.get("internal") else {}
        # Drop a fixed subnet, because three sides cannot use the same subnet. _networks rejects fixed addresses.
        own = {"name": f"{self.given.project}_{name}", "driver": "bridge", "labels": dict(self.given.labels)}
        return {**own, **kept, **({"driver_opts": options} if options else {})}

    def _volume(self, name: str, entry: ComposeTree) -> dict[str, Any]:
        location = f"volumes.{name}"
        self._refuse_external(location, entry)
        if entry.get("driver") not in (None, "local", "default"):
            self._refuse(f"{location}.driver", f"{entry['driver']!r} may store data outside this machine", "remove it")
        options = entry.get("driver_opts") or {}
        if options and options.get("type") != "tmpfs":
            self._refuse(f"{location}.driver_opts", "it mounts data that the sides would share", "remove it")
        own = {"name": f"{self.given.project}_{name}", "labels": dict(self.given.labels)}
        return {**own, **({"driver_opts": options} if options else {})}

    def _file(self, kind: str, name: str, entry: ComposeTree) -> dict[str, Any]:
        location = f"{kind}.{name}"
        self._refuse_external(location, entry)
        for key in ("driver", "template_driver"):
            if entry.get(key):
                self._refuse(
                    f"{location}.{key}", "an external program provides the value", "use a file in the repository"
                )
        if variable := entry.get("environment"):
            if variable not in self.given.env:
                why = f"Docker Compose would read {variable} from the caller's environment"
                self._refuse(f"{location}.environment", why, f"set {variable} in service.env in tfb.toml")
            return {"environment": f"{VALUE_PREFIX}{variable}"}
        if file := entry.get("file"):
            source = self._inside(f"{location}.file", str(file))
            self.binds.append((location, source, False))
            return {"file": str(source)}
        return {"content": entry.get("content", "")}

    def _require_fixed_binds(self) -> None:
        """Reject mount sources below a writable mount, because a container could replace them with links."""
        for where, source, _ in self.binds:
            for other, above, writable in self.binds:
                if writable and above in source.parents:
                    why = f"a container could replace {source} with a link, because {other} mounts {above} writable"
                    self._refuse(where, why, "mount the parent folder read-only (:ro), or mount a different folder")


def set_only(variables: object) -> dict[str, Any]:
    """Return the variables that have a value. Docker Compose would take the rest from the caller's environment."""
    pairs = variables.items() if isinstance(variables, Mapping) else ()
    return {name: value for name, value in pairs if value is not None}


def _sizes(*values: str | int | None) -> tuple[int, ...]:
    """Return the limits as numbers. Omit missing limits, and the values 0 and -1, which mean unlimited."""
    return tuple(number for value in values if value and (number := int(value)) > 0)
