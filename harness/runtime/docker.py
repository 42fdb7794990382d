"""The Docker runtime: the shared PostgreSQL, implementations and load generators, each in its container."""

import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import BuildError, EngineFullError, EnvironmentLacksError, ServerDiedError, StartError, TfbError
from harness.host import process
from harness.plan.discovery import Implementation
from harness.plan.dockerfile import base_images_of_file
from harness.records import safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Endpoint, Server, images, techempower_container
from harness.runtime.compose import (
    DATABASE,
    FOLDER,
    LOADGEN,
    SERVER,
    STAND_IN_LABEL,
    UP_SECONDS,
    WRK,
    Project,
    client_environment,
    disk_full_hint,
    docker,
    engine_version,
    inspect,
    start_error,
)
from harness.runtime.container import Container
from harness.runtime.database import ADMIN_ROLE
from harness.runtime.database.embedded import free_port
from harness.runtime.database.in_container import ContainerType, DockerDatabase
from harness.runtime.generator import GeneratorProgram, run_generator
from harness.runtime.limits import Limits
from harness.runtime.local import BUILD_SECONDS, require_free_port
from harness.runtime.readiness import wait_until_ready
from harness.runtime.upstream import upstream_for

logger = logging.getLogger("tfb.docker")

NOFILE = 20000  # compose.yaml's
DATABASE_IMAGE, WRK_IMAGE, LOADGEN_IMAGE = "tfb/database", "tfb/wrk", "tfb/loadgen"
GENERATORS = {"wrk": WRK_IMAGE, "loadgen": LOADGEN_IMAGE}
IMAGE_VARIABLES = {  # service of compose.yaml -> its variable for the image
    DATABASE: "TFB_DATABASE_IMAGE",
    SERVER: "TFB_SERVER_IMAGE",
    WRK: "TFB_WRK_IMAGE",
    LOADGEN: "TFB_LOADGEN_IMAGE",
    "tfb-meter": "TFB_METER_IMAGE",
}
BASE = "debian:trixie-slim"
NO_REGISTRY = re.compile(r"failed to resolve source metadata|pull access denied|failed to do request")


@dataclass(kw_only=True)
class DockerRuntime:
    """Builds images and runs containers through compose; sees the same interface as the local runtime."""

    project: Project
    logs: Path
    server_port: int | None = None
    force_rm: bool = False
    environment: str = ""  # what the builds of upstream folders are told of where the results come from
    alone: bool = False  # one server at a time: an upstream folder among them knows one database and one name for it
    database_host: str | None = None  # a PostgreSQL that exists
    name: str = "docker"
    accounts: dict[str, str] = field(default_factory=dict, init=False)  # as their images say
    _images: dict[str, str] = field(default_factory=dict, init=False)  # tag -> id of what was built under it
    _tags: list[tuple[str, str]] = field(default_factory=list, init=False)  # tags of this run alone, with their id
    _tools: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def side_by_side(self) -> bool:
        """Each in a compose project of its own; on a bridge they would not reach the database's."""
        return self.server_port is None and not self.project.bridge and not self.alone

    @property
    def network(self) -> str:
        """A bridge of the run's own for all of it, as soon as one implementation needs that."""
        return "bridge" if self.project.bridge else "host"

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build the image; a failure is in the result, with the log's last lines. Raises EngineFullError."""
        recipe, folder, tag = implementation.dockerfile, implementation.folder, image_tag(implementation)
        if not recipe.exists():
            return BuildRecord(status="skipped", reason=f"{recipe} does not exist")
        safe_write.make_folder(log.parent)
        began, reason = time.monotonic(), ""
        where = {"TFB_SERVER_CONTEXT": str(folder), "TFB_SERVER_DOCKERFILE": str(recipe), "TFB_SERVER_LABEL": tag}
        try:
            self._build(
                SERVER, tag, log, where, techempower_container.build_arguments(implementation, self.environment)
            )
        except BuildError as error:
            reason = str(error)
            if techempower_container.is_techempower_folder(implementation) and NO_REGISTRY.search(reason):
                reason += f"\nNo registry gives its base image: docker/bootstrap-base --for {folder} makes a stand-in"
        image = None if reason else inspect("image", self.image_id(tag))
        return BuildRecord(
            status="failed" if reason else "ok",
            reason=reason,
            duration=time.monotonic() - began,
            log=f"logs/{implementation.name}/{log.name}",
            commands=(f"docker compose build {SERVER}",),
            tools={"docker": engine_version()},
            image=tag,
            image_digest=str(image["Id"]) if image else None,
            image_bytes=int(image["Size"]) if image else None,
            stand_ins=tuple(name for name in base_images_of_file(recipe) if is_stand_in(name)),
        )

    def prepare(self) -> None:
        """The base image and those of database and wrk; raises BuildError, StartError, EngineFullError."""
        log = self.logs / "images.log"
        if inspect("image", BASE) is None:
            done = process.run([str(FOLDER / "bootstrap-base")], seconds=BUILD_SECONDS, log=log)
            if done.status != 0:
                raise BuildError(f"the base image {BASE} could not be made:\n{process.tail(log)}\nlog: {log}")
        for service, tag in ((DATABASE, DATABASE_IMAGE), (WRK, WRK_IMAGE)):
            self._build(service, tag, log, {})
        self._look_inside()

    def _build(self, service: str, tag: str, log: Path, more: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        """Build an image under a tag of this run alone, then give it the usual tag.

        Another run may move the usual tag at any time, so that containers are started from the id.
        """
        if images.is_foreign(tag):
            raise BuildError(
                f"the image {tag} exists, and tfb did not build it: give it another name (docker tag {tag} OTHER, "
                f"docker image rm {tag})"
            )
        unique = f"{tag}{images.RUN_TAG}{self.project.token}"
        try:
            variables = {**more, IMAGE_VARIABLES[service]: unique}
            done = self.project.build(*arguments, service, seconds=BUILD_SECONDS, log=log, more=variables)
            how = f"failed ({process.describe_status(done.status)})" if done.status else ""
        except process.CommandTimeoutError:
            how = f"was not done after {BUILD_SECONDS:.0f} s and was stopped"
        if how:
            last = process.tail(log)
            kind = EngineFullError if disk_full_hint(last) else BuildError
            raise kind(f"building the image {tag} {how}:\n{last}\nlog: {log}\n{disk_full_hint(last)}".rstrip())
        identity = str((inspect("image", unique) or {}).get("Id", ""))
        if not identity or docker("image", "tag", unique, tag).status != 0:
            raise BuildError(f"the image {tag} was built, and the engine does not have it any more\nlog: {log}")
        self._tags.append((unique, identity))
        self._images[tag] = identity
        images.record_tag(unique, identity, temporary=True)
        images.record_tag(tag, identity)

    def image_id(self, tag: str) -> str:
        """Return the id of what this run built under a tag, whatever the tag names by now."""
        return self._images.get(tag, tag)

    def _look_inside(self) -> None:
        """Versions of wrk and PostgreSQL, as their images say."""
        for image, program in ((WRK_IMAGE, "wrk"), (DATABASE_IMAGE, "postgres")):
            alone = ("run", "--rm", *self.project.labels(), "--network", "none", "--entrypoint", program)
            done = docker(*alone, *Limits().flags, self.image_id(image), "--version", seconds=UP_SECONDS)
            version = re.search(rf"^{program}\D*(\d+(?:\.\d+)+)", done.stdout, re.MULTILINE)
            if version is None:
                raise start_error(done.stdout.strip()[-500:], f"the container of {program} does not start")
            self._tools[program] = version[1]

    def database(self) -> AbstractContextManager[DockerDatabase]:
        """The shared PostgreSQL for the length of the run."""
        return self._database("127.0.0.1", self.project, Container, owned=self.alone)

    @contextmanager
    def _database(
        self, host: str, project: Project, container: ContainerType, *, owned: bool = False
    ) -> Iterator[DockerDatabase]:
        """At this address of the project's machine; the container is removed on the way out."""
        port, password = free_port(), secrets.token_urlsafe(12)
        address = DatabaseAddress(host=host, port=port, admin_user=ADMIN_ROLE, admin_password=password)
        own = {"TFB_DATABASE_PORT": str(port), "TFB_DATABASE_LISTEN": host, "ADMIN_PASSWORD": password}
        own["TFB_DATABASE_IMAGE"] = self.image_id(DATABASE_IMAGE)
        project = replace(project, variables={**project.variables, **own})
        database = None
        try:
            database = DockerDatabase(project, address, self.logs / "database.log", container, owned=owned)
            yield database
        finally:
            self.remove_all()
            if database:
                database.close()

    def remove_all(self) -> None:
        """Remove what carries the run's label."""
        self.project.remove_all()

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """A fresh container that has answered once; stopped and removed on the way out, its log kept."""
        theirs = techempower_container.is_techempower_folder(implementation)
        port = implementation.entry.port if theirs else self.server_port or free_port()
        if self.server_port and not theirs:
            require_free_port(port)
        # On a bridge, containers do not see this machine's loopback address, on which the upstream listens.
        upstream = None if self.project.bridge else upstream_for(implementation)
        unit = f"{self.project.name}-{port}" if self.side_by_side else self.project.name
        safe_write.append(log, private=True).close()  # exists before the container does
        with ExitStack() as stack:
            stack.callback(self.project.remove, SERVER, unit)
            began = time.monotonic()
            try:
                if theirs:
                    found = self._run_as_toolset(implementation)
                else:
                    variables = self._variables(implementation, database, port)
                    variables |= {"UPSTREAM_URL": upstream.url} if upstream else {}
                    found = self._up(self.project, variables, log.with_suffix(".compose.log"), unit)
                container = Container(implementation.name, found, log)
                stack.callback(container.stop)
                # On a bridge a server answers at an address of its own.
                endpoint = Endpoint(host=container.address() or "127.0.0.1", port=port)
                server = Server(implementation=implementation, endpoint=endpoint, meter=container, upstream=upstream)
                server.startup_time = wait_until_ready(server, ready_path, began)
            except (StartError, ServerDiedError) as error:
                said = f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}"
                if theirs and "privileged" not in implementation.allowed:
                    said += f"\nTechEmpower's toolset runs it as --allow {implementation.name}=privileged does"
                raise StartError(said) from error
            yield server

    def _variables(self, implementation: Implementation, database: DatabaseAddress, port: int) -> dict[str, str]:
        """Of compose.yaml, for a server; on a bridge, the run's own database goes by its name there."""
        own = self.project.bridge and database.admin_user
        return {
            "TFB_SERVER_IMAGE": self.image_id(image_tag(implementation)),
            "TFB_SERVER_PORT": str(port),
            "TFB_SERVER_COMMAND": implementation.entry.docker_cmd or "",
            "TFB_DATABASE_ADDRESS": DATABASE if own else database.host,
            "TFB_DATABASE_PORT": str(database.port),
            "TFB_DATABASE_INNER_PORT": "5432" if own else str(database.port),
            "TFB_DATABASE_NAME": database.name,
            "TFB_DATABASE_USER": database.user,
            "TFB_DATABASE_PASSWORD": database.password,
        }

    def _up(self, project: Project, variables: Mapping[str, str], log: Path, unit: str) -> str:
        """The id of the server's container, which compose has started."""
        arguments = ("up", "--detach", "--no-build", "--no-deps", "--force-recreate", SERVER)
        done = project.run(*arguments, seconds=UP_SECONDS, log=log, more=variables, project=unit)
        if done.status != 0:
            raise start_error(process.tail(log))
        return project.container(SERVER, unit)

    def _run_as_toolset(self, implementation: Implementation) -> str:
        """As TechEmpower's toolset starts it, in a container without privileges beyond those consented to."""
        arguments = techempower_container.run_arguments(
            implementation,
            image=self.image_id(image_tag(implementation)),
            network=self.project.network,
            labels=self.project.labels(SERVER),
            limits=self.project.variables,
            database_host=self.database_host,
        )
        done = docker(*arguments, seconds=UP_SECONDS)
        if done.status != 0:
            raise start_error(done.stdout.strip()[-500:])
        return done.stdout.strip().splitlines()[-1]

    def own_generator(self) -> str:
        """Its name; the image is built at the first call."""
        if LOADGEN_IMAGE not in self._images:
            self._build(LOADGEN, LOADGEN_IMAGE, self.logs / "images.log", {})
        return "loadgen"

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[GeneratorProgram]:
        """A container of its own for this one load; raises EnvironmentLacksError for a generator without an image.

        ``folder`` has the same path in the container, where it belongs to whoever runs the harness.
        """
        name = Path(program).name
        if name not in GENERATORS:
            raise EnvironmentLacksError(f"the load generator {name} has no image: use --runtime local with it")
        if name == "loadgen":
            self.own_generator()
        # `docker run` alone hands signals on and waits for the result: `docker compose run` leaves wrk running,
        # `docker start --attach` ends without its output.
        command = [
            *("docker", "run", "--rm", "--init", "--pull", "never", "--network", "host"),
            *(("--interactive",) if waits_for_go else ()),
            *(("--volume", f"{folder}:{folder}", "--user", f"{os.getuid()}:{os.getgid()}") if folder else ()),
            *self.project.labels(),
            *self.limits(),
            *(self.image_id(GENERATORS[name]), *arguments),
        ]
        return run_generator(command, waits_for_go=waits_for_go, env=client_environment())

    def limits(self) -> Sequence[str]:
        """What compose.yaml says of a load generator's container."""
        variables = self.project.variables
        return (
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--ulimit", f"nofile={variables.get('TFB_NOFILE', NOFILE)}"),
            *("--cpuset-cpus", variables.get("TFB_WRK_CPUS", "")),
            *Limits().flags,
        )

    def versions(self) -> dict[str, str]:
        """Engine, wrk and PostgreSQL, as their images say, and which images those are."""
        used = {name: images.image_digest(self.image_id(name)) for name in (BASE, DATABASE_IMAGE, WRK_IMAGE)}
        return {"docker": engine_version(), **self._tools, **{f"image {name}": each for name, each in used.items()}}

    def close(self) -> None:
        """Remove the run's containers, networks and tags and, with ``--force-rm``, the images that it built.

        Log what to do if the engine does not answer: the program ends here, and nothing catches an error.
        """
        try:
            self.remove_all()
            tags = [*self._tags, *(self._images.items() if self.force_rm else ())]
            for image, reason in [stays for tag in tags for stays in images.remove_tag(*tag)]:
                logger.warning("the image %s stays: %s", image, reason)
        except TfbError as error:
            logger.warning(
                "the run's containers could not be removed: %s; once the engine answers, ./tfb clean --leftovers does",
                error,
            )


def is_stand_in(image: str) -> bool:
    """Whether the image of this name is made of Debian packages instead (docker/stand-ins)."""
    labels = ((inspect("image", image) or {}).get("Config") or {}).get("Labels") or {}
    return STAND_IN_LABEL in labels


def image_tag(implementation: Implementation) -> str:
    """The image of an implementation; a name that holds what a tag may not has one that no other has."""
    name = implementation.name
    tag = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"
    return f"tfb/{tag}" if tag == name else f"tfb/{tag}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
