"""Files shared by several implementations are identical copies, so a fix must be applied to all copies."""

import re
from pathlib import Path

import pytest

from harness.paths import REPOSITORY

FRAMEWORKS = REPOSITORY / "frameworks"
VERTX = ("Java/vertx-web", "Java/vertx-web-4")
BLOCKING = ("Java/resteasy", "Java/wildfly")
RECORDS = ("helidon", "quarkus", "resteasy", "spring", "vertx-virtual", "vertx-web", "vertx-web-4", "wildfly")
NODE = ("JavaScript/express", "JavaScript/fastify")
# File name -> folders whose copies must be identical.
SHARED = {
    "FanOut.java": [f"Java/{name}" for name in RECORDS],
    "Message.java": [f"Java/{name}" for name in RECORDS],
    # In Quarkus, these classes are entities of an object mapper instead.
    "Fortune.java": [f"Java/{name}" for name in RECORDS if name != "quarkus"],
    "World.java": [f"Java/{name}" for name in RECORDS if name != "quarkus"],
    "FortunesPage.java": ["Java/helidon", "Java/vertx-virtual", *VERTX, *BLOCKING],
    "FortunesPageWriter.java": BLOCKING,
    "BufferOutput.java": ["Java/vertx-virtual", *VERTX],
    "fortunes.mustache": ["Java/helidon", "Java/spring", "Java/vertx-virtual", *VERTX, *BLOCKING],
    "fortunes.eta": ["JavaScript/es4x", *NODE],
    "server.js": NODE,
    "start.sh": [*NODE, "JavaScript/express-orders"],
    ".npmrc": ["JavaScript/es4x", *NODE, "JavaScript/express-orders"],
    "rustfmt.toml": ["Rust/axum", "Rust/floor"],
}
# vertx-web-4's README explains why these files differ from vertx-web's. All other Java files are identical.
DIFFERENT = {"Main.java", "ServerVerticle.java", "WorldSelect.java", "WaitingHandlers.java"}


def only_copy(folder: str, name: str) -> Path:
    (path,) = (path for path in (FRAMEWORKS / folder).rglob(name) if not {"target", "node_modules"} & {*path.parts})
    return path


@pytest.mark.parametrize("name", SHARED)
def test_copies_of_shared_files_are_identical(name: str) -> None:
    texts = {folder: only_copy(folder, name).read_bytes() for folder in SHARED[name]}
    first, *others = texts
    assert [folder for folder in others if texts[folder] != texts[first]] == [], f"differs from {first}"


def test_vertx_generations_share_their_code() -> None:
    five, four = ({path.name: path.read_bytes() for path in (FRAMEWORKS / at / "src").rglob("*.java")} for at in VERTX)
    assert five.keys() == four.keys()
    assert {name for name in five if five[name] != four[name]} == DIFFERENT


def test_development_lock_contains_the_product_lock() -> None:
    """For ``./tfb check``, the launcher installs only the development lock, so that must include the product's."""
    product, development = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (REPOSITORY / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert product.keys() <= development.keys()
    assert {name: version for name, version in product.items() if development[name] != version} == {}
