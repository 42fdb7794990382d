"""The Docker runtime: runs PostgreSQL, implementations and load generators in containers."""

import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import BuildError, EngineFullError, EnvironmentLacksError, ServerDiedError, StartError, TfbError
from harness.host import process
from harness.plan.dockerfile import base_images_of_file
from harness.plan.implementation import Implementation
from harness.provisioning import step
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
    WEBSOCKET_WITNESS,
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
from harness.runtime.inputs import prepare_inputs
from harness.runtime.limits import Limits
from harness.runtime.local import BUILD_SECONDS, require_free_port
from harness.runtime.privileges import IO_URING
from harness.runtime.readiness import wait_until_ready
from harness.runtime.upstream import upstream_for

logger = logging.getLogger("tfb.docker")

DATABASE_IMAGE, WRK_IMAGE, LOADGEN_IMAGE = "tfb/database", "tfb/wrk", "tfb/loadgen"
WEBSOCKET_IMAGE = "tfb/websocket-witness"
# Load generator -> image. In the image, the program has the load generator's name.
GENERATORS = {
    "wrk": WRK_IMAGE,
    "h2load-timed": WRK_IMAGE,
    "loadgen": LOADGEN_IMAGE,
    "websocket-witness": WEBSOCKET_IMAGE,
}
# Load generators that tfb builds only when they are needed -> services in compose.yaml.
OWN_GENERATORS = {"loadgen": LOADGEN, "websocket-witness": WEBSOCKET_WITNESS}
IMAGE_VARIABLES = {  # service in compose.yaml -> variable that names the image
    DATABASE: "TFB_DATABASE_IMAGE",
    SERVER: "TFB_SERVER_IMAGE",
    WRK: "TFB_WRK_IMAGE",
    LOADGEN: "TFB_LOADGEN_IMAGE",
    WEBSOCKET_WITNESS: "TFB_WEBSOCKET_IMAGE",
    "tfb-meter": "TFB_METER_IMAGE",
}
BASE = "debian:trixie-slim"
INPUTS_FOLDER = "/inputs"  # where compose.yaml mounts the files of ``prepare_inputs``
REGISTRY_ERROR = re.compile(r"failed to resolve source metadata|pull access denied|failed to do request")


@dataclass(kw_only=True)
class DockerRuntime:
    """A runtime that builds images and runs them with compose."""

    project: Project
    logs: Path
    server_port: int | None = None
    force_rm: bool = False
    environment: str = ""  # value of --results-environment, passed to TechEmpower folders as a build argument
    sequential: bool = False  # whether servers run sequentially, because they share a database
    database_host: str | None = None  # address of an external PostgreSQL
    name: str = "docker"
    # Always empty, because the images determine the accounts.
    accounts: dict[str, str] = field(default_factory=dict, init=False)
    _images: dict[str, str] = field(default_factory=dict, init=False)  # tag -> image id
    # (temporary tag, image id).
    _tags: list[tuple[str, str]] = field(default_factory=list, init=False)
    _tools: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def side_by_side(self) -> bool:
        """Return whether several servers can run at once.

        On a bridge network they cannot, because all containers belong to the same compose project.
        """
        return self.server_port is None and not self.project.bridge and not self.sequential

    @property
    def network(self) -> str:
        """Return the network that all containers use: ``bridge`` or ``host``."""
        return "bridge" if self.project.bridge else "host"

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build the image. If the build fails, return a record with the reason.

        Raises EngineFullError instead if the Docker engine's disk is full.
        """
        recipe, folder, tag = implementation.dockerfile, implementation.folder, image_tag(implementation)
        if not recipe.exists():
            return BuildRecord(status="skipped", reason=f"{recipe} does not exist")
        safe_write.make_folder(log.parent)
        started_at, reason = time.monotonic(), ""
        context = {"TFB_SERVER_CONTEXT": str(folder), "TFB_SERVER_DOCKERFILE": str(recipe), "TFB_SERVER_LABEL": tag}
        try:
            self._build(
                SERVER, tag, log, context, techempower_container.build_arguments(implementation, self.environment)
            )
        except BuildError as error:
            reason = str(error)
            if techempower_container.is_techempower_folder(implementation) and REGISTRY_ERROR.search(reason):
                reason += (
                    f"\nNo registry provides the base image. Build a stand-in: docker/bootstrap-base --for {folder}"
                )
        image = None if reason else inspect("image", self.image_id(tag))
        return BuildRecord(
            status="failed" if reason else "ok",
            reason=reason,
            duration=time.monotonic() - started_at,
            log=f"logs/{implementation.name}/{log.name}",
            commands=(f"docker compose build {SERVER}",),
            tools={"docker": engine_version()},
            image=tag,
            image_digest=str(image["Id"]) if image else None,
            image_bytes=int(image["Size"]) if image else None,
            stand_ins=tuple(name for name in base_images_of_file(recipe) if is_stand_in(name)),
        )

    def prepare(self) -> None:
        """Build the base, PostgreSQL and wrk images. Raises BuildError, StartError or EngineFullError."""
        log = self.logs / "images.log"
        if inspect("image", BASE) is None:
            with step(f"build the image {BASE}"):
                done = process.run([str(FOLDER / "bootstrap-base")], seconds=BUILD_SECONDS, log=log)
            if done.status != 0:
                raise BuildError(f"cannot build the base image {BASE}:\n{process.tail(log)}\nlog: {log}")
        for service, tag in ((DATABASE, DATABASE_IMAGE), (WRK, WRK_IMAGE)):
            self._build_tool(service, tag)
        self._read_versions()

    def _build_tool(self, service: str, tag: str) -> None:
        """Build the image of a program that tfb provides. Report progress only if no earlier image exists."""
        is_new = inspect("image", tag) is None
        with step(f"build the image {tag}") if is_new else nullcontext():
            self._build(service, tag, self.logs / "images.log", {})

    def _build(
        self, service: str, tag: str, log: Path, build_variables: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> None:
        """Build an image and add a tag that only this run uses, because other runs may move the usual tag."""
        if images.is_foreign(tag):
            raise BuildError(
                f"the image {tag} exists, but tfb did not build it: rename it (docker tag {tag} OTHER, "
                f"docker image rm {tag})"
            )
        unique_tag = f"{tag}{images.RUN_TAG}{self.project.token}"
        try:
            variables = {**build_variables, IMAGE_VARIABLES[service]: unique_tag}
            completed = self.project.build(*arguments, service, seconds=BUILD_SECONDS, log=log, more=variables)
            failure = f"failed ({process.describe_status(completed.status)})" if completed.status else ""
        except process.CommandTimeoutError:
            failure = f"was stopped after {BUILD_SECONDS:.0f} s"
        if failure:
            last_lines = process.tail(log)
            hint = disk_full_hint(last_lines)
            error = EngineFullError if hint else BuildError
            raise error(f"building the image {tag} {failure}:\n{last_lines}\nlog: {log}\n{hint}".rstrip())
        identity = str((inspect("image", unique_tag) or {}).get("Id", ""))
        if not identity or docker("image", "tag", unique_tag, tag).status != 0:
            raise BuildError(f"the image {tag} was built, but the engine no longer has it: run tfb again\nlog: {log}")
        self._tags.append((unique_tag, identity))
        self._images[tag] = identity
        images.record_tag(unique_tag, identity, temporary=True)
        images.record_tag(tag, identity)

    def image_id(self, tag: str) -> str:
        """Return the id of the image that this run built as ``tag``, even if a different run has moved the tag."""
        return self._images.get(tag, tag)

    def _read_versions(self) -> None:
        """Read the versions of wrk and PostgreSQL from their images."""
        for image, program in ((WRK_IMAGE, "wrk"), (DATABASE_IMAGE, "postgres")):
            run = ("run", "--rm", *self.project.labels(), "--network", "none", "--entrypoint", program)
            done = docker(*run, *Limits().flags, self.image_id(image), "--version", seconds=UP_SECONDS)
            version = re.search(rf"^{program}\D*(\d+(?:\.\d+)+)", done.stdout, re.MULTILINE)
            if version is None:
                raise start_error(done.stdout.strip()[-500:], f"the container for {program} did not start")
            self._tools[program] = version[1]

    def database(self) -> AbstractContextManager[DockerDatabase]:
        """Start the shared PostgreSQL server. Stop it at the end of the block."""
        return self._database("127.0.0.1", self.project, Container, owned=self.sequential)

    @contextmanager
    def _database(
        self, host: str, project: Project, container: ContainerType, *, owned: bool = False
    ) -> Iterator[DockerDatabase]:
        """Start PostgreSQL on the project's machine, at ``host``. Remove the container at the end of the block."""
        port, password = free_port(), secrets.token_urlsafe(12)
        address = DatabaseAddress(host=host, port=port, admin_user=ADMIN_ROLE, admin_password=password)
        variables = {"TFB_DATABASE_PORT": str(port), "TFB_DATABASE_LISTEN": host, "ADMIN_PASSWORD": password}
        variables["TFB_DATABASE_IMAGE"] = self.image_id(DATABASE_IMAGE)
        project = replace(project, variables={**project.variables, **variables})
        database = None
        try:
            database = DockerDatabase(project, address, self.logs / "database.log", container, owned=owned)
            yield database
        finally:
            self.remove_all()
            if database:
                database.close()

    def remove_all(self) -> None:
        """Remove all containers, networks and volumes that carry the run's label."""
        self.project.remove_all()

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a container and wait until the server responds. Remove the container at the end of the block."""
        techempower = techempower_container.is_techempower_folder(implementation)
        port = implementation.entry.port if techempower else self.server_port or free_port()
        if self.server_port and not techempower:
            require_free_port(port)
        # The upstream server listens on the loopback address, which containers on a bridge network cannot reach.
        upstream = None if self.project.bridge else upstream_for(implementation)
        unit = f"{self.project.name}-{port}" if self.side_by_side else self.project.name
        safe_write.append(log, private=True).close()  # make the log private before the container writes to it
        with ExitStack() as stack:
            inputs = stack.enter_context(prepare_inputs(implementation))
            stack.callback(self.project.remove, SERVER, unit)
            started_at = time.monotonic()
            try:
                if techempower:
                    container_id = self._run_as_toolset(implementation)
                else:
                    variables = self._variables(implementation, database, port)
                    variables |= {"UPSTREAM_URL": upstream.url} if upstream else {}
                    variables |= inputs.variables(INPUTS_FOLDER)
                    variables |= {"TFB_SERVER_INPUTS": str(inputs.folder)} if inputs.folder else {}
                    container_id = self._up(
                        implementation, self.project, variables, log.with_suffix(".compose.log"), unit
                    )
                container = Container(implementation.name, container_id, log)
                stack.callback(container.stop)
                # On the host's network, the container has no separate address.
                endpoint = Endpoint(host=container.address() or "127.0.0.1", port=port)
                server = Server(
                    implementation=implementation,
                    endpoint=endpoint,
                    program=container,
                    upstream=upstream,
                    inputs=inputs,
                )
                server.startup_time = wait_until_ready(server, ready_path, started_at)
            except (StartError, ServerDiedError) as error:
                message = f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}"
                if techempower and "privileged" not in implementation.allowed:
                    message += (
                        "\nTechEmpower's toolset runs privileged containers. To grant this container privileges, add "
                        f"--allow {implementation.name}=privileged"
                    )
                raise StartError(message) from error
            yield server

    def _variables(self, implementation: Implementation, database: DatabaseAddress, port: int) -> dict[str, str]:
        """Return the variables in compose.yaml that configure a server."""
        by_name = self.project.bridge and database.admin_user  # containers find the database by host name
        return {
            "TFB_SERVER_IMAGE": self.image_id(image_tag(implementation)),
            "TFB_SERVER_PORT": str(port),
            "TFB_SERVER_COMMAND": implementation.entry.docker_cmd or "",
            "TFB_DATABASE_ADDRESS": DATABASE if by_name else database.host,
            "TFB_DATABASE_PORT": str(database.port),
            "TFB_DATABASE_INNER_PORT": "5432" if by_name else str(database.port),
            "TFB_DATABASE_NAME": database.name,
            "TFB_DATABASE_USER": database.user,
            "TFB_DATABASE_PASSWORD": database.password,
        }

    def _up(
        self, implementation: Implementation, project: Project, variables: Mapping[str, str], log: Path, unit: str
    ) -> str:
        """Start the server's container with compose. Return the container's id."""
        arguments = ("up", "--detach", "--no-build", "--no-deps", "--force-recreate", SERVER)
        if IO_URING in implementation.privileges:
            project = replace(project, io_uring=True)
        done = project.run(*arguments, seconds=UP_SECONDS, log=log, variables=variables, project=unit)
        if done.status != 0:
            raise start_error(process.tail(log))
        return project.container(SERVER, unit)

    def _run_as_toolset(self, implementation: Implementation) -> str:
        """Start a container as TechEmpower's toolset does, with allowed privileges only. Return the container id."""
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

    def own_generator(self, crate: str = "loadgen") -> str:
        """Build a load generator's image, unless this run has already built it. Return the generator's name."""
        if GENERATORS[crate] not in self._images:
            self._build_tool(OWN_GENERATORS[crate], GENERATORS[crate])
        return crate

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[GeneratorProgram]:
        """Start a load generator in a container. Raises EnvironmentLacksError if the generator has no image."""
        name = Path(program).name
        if name not in GENERATORS:
            raise EnvironmentLacksError(f"the load generator {name} has no image: use --runtime local")
        if name in OWN_GENERATORS:
            self.own_generator(name)
        # Use `docker run`, because it forwards signals and waits for the result. `docker compose run` leaves wrk
        # running, and `docker start --attach` loses output.
        command = [
            *("docker", "run", "--rm", "--init", "--pull", "never", "--network", "host"),
            *(("--interactive",) if waits_for_go else ()),
            *(("--volume", f"{folder}:{folder}", "--user", f"{os.getuid()}:{os.getgid()}") if folder else ()),
            *self.project.labels(),
            *self.limits(),
            *("--entrypoint", name),
            *(self.image_id(GENERATORS[name]), *arguments),
        ]
        return run_generator(command, waits_for_go=waits_for_go, env=client_environment())

    def limits(self) -> Sequence[str]:
        """Return the arguments that apply compose.yaml's limits to a load generator's container."""
        variables = self.project.variables
        return (
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--ulimit", f"nofile={variables['TFB_NOFILE']}"),
            *("--cpuset-cpus", variables.get("TFB_WRK_CPUS", "")),
            *Limits().flags,
        )

    def versions(self) -> dict[str, str]:
        """Return the versions of the engine, wrk and PostgreSQL, and the image digests."""
        digests = {name: images.image_digest(self.image_id(name)) for name in (BASE, DATABASE_IMAGE, WRK_IMAGE)}
        return {"docker": engine_version(), **self._tools, **{f"image {name}": each for name, each in digests.items()}}

    def close(self) -> None:
        """Remove the run's containers, networks and tags, and with ``--force-rm`` also the images. Log errors."""
        try:
            self.remove_all()
            tags = [*self._tags, *(self._images.items() if self.force_rm else ())]
            for image, reason in [remaining for tag in tags for remaining in images.remove_tag(*tag)]:
                logger.warning("cannot remove the image %s: %s", image, reason)
        except TfbError as error:
            logger.warning(
                "cannot remove the run's containers: %s. Run ./tfb clean --leftovers when the engine responds",
                error,
            )


def is_stand_in(image: str) -> bool:
    """Return whether an image is a local stand-in, built from Debian packages (docker/stand-ins)."""
    labels = ((inspect("image", image) or {}).get("Config") or {}).get("Labels") or {}
    return STAND_IN_LABEL in labels


def image_tag(implementation: Implementation) -> str:
    """Return an implementation's image tag. Add a hash if the name contains characters that are invalid in tags."""
    name = implementation.name
    tag = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"
    return f"tfb/{tag}" if tag == name else f"tfb/{tag}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
