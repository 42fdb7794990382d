"""./tfb init: what it finds in a folder is a tfb.toml that can be read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit
from harness.plan import service


@pytest.mark.parametrize(
    ("name", "text", "start", "language"),
    [
        ("package.json", '{"scripts": {"start": "node app.js"}}', "node app.js", ""),
        ("package.json", "not JSON", "node server.js", ""),
        ("package.json", '{"scripts": {"start": "NODE_ENV=production node app.js"}}', "NODE_ENV=production node", ""),
        ("package.json", '{"scripts": {"start": "cd dist && node ."}}', "npm run start", ""),
        ("requirements.txt", "fastapi\n", ".venv/bin/python -m uvicorn --port $PORT --log-level warning app:app", ""),
        ("requirements.txt", "django\n", ".venv/bin/python -m gunicorn -b 127.0.0.1:$PORT shop.wsgi", ""),
        ("Cargo.toml", '[package]\nname = "shop"\n[[bin]]\npath = "a.rs"\nname = "web"\n', "target/release/web", ""),
        ("shop.csproj", "", "dotnet out/shop.dll --urls", ""),
        ("pom.xml", "<project/>", "java -jar", "java"),
        ("build.gradle", "io.micronaut", "java -Dmicronaut.server.port=$PORT -jar build/libs/*-all.jar", "java"),
        ("pom.xml", "<project>io.quarkus</project>", "java -Dquarkus.http.port=$PORT -jar target/quarkus-app", "java"),
        ("README", "", "./server", ""),
    ],
)
def test_a_folder_gets_a_file_that_can_be_read(tmp_path: Path, name: str, text: str, start: str, language: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    if "django" in text:
        (tmp_path / "shop").mkdir()
        (tmp_path / "shop" / "wsgi.py").touch()
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read(tmp_path)
    assert str(found.service.start).startswith(start)
    assert found.service.language == language
    assert found.request[0].path == "/"


@pytest.mark.parametrize(
    ("files", "build", "start"),
    [
        (
            {"requirements.txt": "fastapi\n", "app/main.py": "import fastapi\napi: X = fastapi.FastAPI(title='a')\n"},
            "install -q -r requirements.txt uvicorn",
            "-m uvicorn --port $PORT --log-level warning app.main:api",
        ),
        (
            {"pyproject.toml": "dependencies = ['uvicorn']\n", "src/shop/__init__.py": "app = create_app()\n"},
            "install -q .",
            "warning shop:app",
        ),
        (
            {"requirements.txt": "gunicorn\n", "src/web.py": "from flask import Flask\napp = Flask(__name__)\n"},
            "install -q -r requirements.txt",
            "-m gunicorn -b 127.0.0.1:$PORT src.web:app",
        ),
        ({"go.mod": "", "cmd/shop/main.go": "package main\n", "shop.go": "package shop\n"}, "./cmd/shop", "./server"),
        ({"go.mod": "", "cmd/tool/main.go": "package main\n", "a.go": "package main\n"}, "-o server .", "./server"),
        (
            {"package.json": '{"scripts": {"start": "next start", "build": "next build"}}', "pnpm-lock.yaml": ""},
            "pnpm install && pnpm run build",
            "pnpm run start",
        ),
        ({"package.json": "{}", "Gemfile": ""}, "bundle install --quiet", "puma -b tcp://127.0.0.1:$PORT"),
        (
            {"pyproject.toml": "flask", "uv.lock": "", "wsgi.py": "from shop import make_app\napp = make_app()\n"},
            "uv sync --frozen && uv pip install -q gunicorn",
            "-m gunicorn -b 127.0.0.1:$PORT wsgi:app",
        ),
        (
            {"pyproject.toml": "", "poetry.lock": "", "web.py": "app = FastAPI()\n"},
            "poetry install && poetry run pip install uvicorn",
            "web:app",
        ),
        ({"Cargo.toml": "[workspace]", "a/src/main.rs": "", "a/Cargo.toml": '[package]\nname = "a"'}, "release", "/a"),
        ({"pom.xml": "", "mvnw": ""}, "./mvnw -q package -DskipTests", "--server.port=$PORT"),
    ],
)
def test_where_the_program_lies_is_seen(tmp_path: Path, files: Mapping[str, str], build: str, start: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read(tmp_path).service
    assert str(found.build).endswith(build)
    assert str(found.start).endswith(start)


def test_what_has_a_dockerfile_alone_is_started_by_it(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM ruby:3.4\nEXPOSE 3000\n", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read(tmp_path).service
    assert (found.dockerfile, found.port, found.start) == ("Dockerfile", 3000, None)
    (tmp_path / service.FILE).unlink()
    compose = "services:\n  db:\n    image: postgres\n  web:\n    depends_on: [db]\n    build: .\n    ports:\n"
    (tmp_path / "compose.yaml").write_text(f'{compose}      - "8080:3001"\n', encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read(tmp_path).service
    assert (found.compose, found.service, found.port) == ("compose.yaml", "web", 3001)


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / service.FILE).write_text("mine", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.USAGE
    assert "delete it first" in capsys.readouterr().err
    assert (tmp_path / service.FILE).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("openapi.json", '{"paths": {"/items/{id}": {"get": {}}, "/orders": {"post": {}}, "/items": {"get": {}}}}'),
        ("app.py", '@app.post("/orders")\n@app.get("/items/{id}")\n@app.get("/items")\n'),
        ("server.js", "app.get('/items/:id', one)\napp.get('/items', all)\n"),
        ("main.go", 'mux.HandleFunc("POST /orders", add)\nmux.HandleFunc("GET /items", all)\n'),
        ("Items.java", '@GetMapping("/items/{id}")\n@GetMapping("/items")\n'),
    ],
)
def test_the_first_path_of_a_document_or_program_is_asked(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    assert service.read(tmp_path).request[0].path == "/items"
