"""Files that several implementations share are identical copies, so that a fix reaches all of them."""

import re
from pathlib import Path

import pytest

from harness.paths import REPOSITORY

FRAMEWORKS = REPOSITORY / "frameworks"
VERTX = ("Java/vertx-web", "Java/vertx-web-4")
BLOCKING = ("Java/resteasy", "Java/wildfly")
VERTX_NAMES = ("vertx-virtual", "vertx-web", "vertx-web-4")
RECORDS = ("helidon", "micronaut", "quarkus", "resteasy", "spring", *VERTX_NAMES, "wildfly")
NODE = ("JavaScript/express", "JavaScript/fastify")
GO = ("Go/fiber", "Go/gin", "Go/net-http")
PYTHON = ("Python/django", "Python/fastapi", "Python/starlette")
RUST = ("Rust/actix-web", "Rust/axum", "Rust/ntex")
# File name -> folders that contain identical copies.
SHARED = {
    "FanOut.java": [f"Java/{name}" for name in RECORDS],
    "Message.java": [f"Java/{name}" for name in RECORDS],
    # Quarkus uses entities of an object mapper instead.
    "Fortune.java": [f"Java/{name}" for name in RECORDS if name != "quarkus"],
    "World.java": [f"Java/{name}" for name in RECORDS if name != "quarkus"],
    "FortunesPage.java": ["Java/helidon", "Java/micronaut", "Java/vertx-virtual", *VERTX, *BLOCKING],
    "FortuneRepository.java": ["Java/helidon", "Java/micronaut", "Java/resteasy"],
    "IntegerParameter.java": [f"Java/{name}" for name in ("helidon", "micronaut", "quarkus", "spring", "wildfly")],
    "WorldRepository.java": ["Java/helidon", "Java/micronaut"],
    "WorldCache.java": ["Java/helidon", "Java/micronaut", "Java/resteasy"],
    "ConnectionCount.java": ["Java/quarkus", "Java/quarkus-orders"],
    "Item.java": [f"Java/{name}" for name in ("helidon", "quarkus", "resteasy", "spring", "vertx-web", "vertx-web-4")],
    **dict.fromkeys(("Millis.java", "QueryCount.java", "CallCount.java"), ("Java/quarkus", "Java/wildfly")),
    "FortunesPageWriter.java": BLOCKING,
    "BufferOutput.java": ["Java/vertx-virtual", *VERTX],
    "Database.java": ["Java/vertx-virtual", *VERTX],
    "WorldSelect.java": ["Java/vertx-virtual", "Java/vertx-web"],
    "fortunes.mustache": [
        *("Java/helidon", "Java/micronaut", "Java/spring", "Java/vertx-virtual"),
        *VERTX,
        *BLOCKING,
    ],
    "java.args": ["Java/helidon", "Java/micronaut", "Kotlin/ktor"],
    "fortunes.eta": ["JavaScript/es4x", *NODE],
    **dict.fromkeys(("server.js", "items.js", "database.js", "upstream.js"), NODE),
    **{key: [*NODE, "JavaScript/express-orders"] for key in ("start.sh", "workers.js")},
    ".npmrc": ["JavaScript/es4x", *NODE, "JavaScript/express-orders", "TypeScript/hono"],
    "rustfmt.toml": [*RUST, "Rust/floor"],
    **dict.fromkeys(("database.rs", "random.rs", "upstream.rs", "templates/fortunes.html"), RUST),
    **dict.fromkeys(("cache.go", "database.go", "outages.go", "random.go", "upstream.go"), GO),
    "fortunes.html": GO,
    "settings.go": ("Go/fiber", "Go/gin"),
    "settings.rs": ("Rust/actix-web", "Rust/ntex"),
    "database.py": ["Python/fastapi", "Python/starlette"],
    **dict.fromkeys(("build.sh", "draws.py"), PYTHON),
}
# vertx-web-4's README explains why these files differ from vertx-web's. All other Java files are identical.
DIFFERENT = {"Main.java", "ServerVerticle.java", "WorldSelect.java", "WaitingHandlers.java"}


def only_copy(folder: str, name: str) -> Path:
    (path,) = (
        path for path in (FRAMEWORKS / folder).rglob(name) if not {"target", "node_modules", ".venv"} & {*path.parts}
    )
    return path


def needs_orders(name: str) -> bool:
    """Return whether an order service contains the file. Its folder is absent without the extra ``orders``."""
    return any("-orders" in folder for folder in SHARED[name])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs_extra("orders") if needs_orders(name) else ()) for name in SHARED],
)
def test_copies_of_shared_files_are_identical(name: str) -> None:
    texts = {folder: only_copy(folder, name).read_bytes() for folder in SHARED[name]}
    first, *others = texts
    assert [folder for folder in others if texts[folder] != texts[first]] == [], f"differs from {first}"


def test_vertx_generations_share_their_code() -> None:
    five, four = ({path.name: path.read_bytes() for path in (FRAMEWORKS / at / "src").rglob("*.java")} for at in VERTX)
    assert five.keys() == four.keys()
    assert {name for name in five if five[name] != four[name]} == DIFFERENT


def test_development_lock_contains_the_product_lock() -> None:
    """``./tfb check`` installs only the development lock, which must therefore include the product's lock."""
    product, development = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (REPOSITORY / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert product.keys() <= development.keys()
    assert {name: version for name, version in product.items() if development[name] != version} == {}
