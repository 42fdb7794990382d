"""``./tfb init`` writes a valid tfb.toml for each kind of service."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit
from harness.plan import service

UVICORN = "-m uvicorn --port $PORT --log-level warning"


@pytest.mark.parametrize(
    ("files", "build", "start", "language"),
    [
        ({"package.json": '{"scripts": {"start": "node app.js"}}'}, "npm install", "node app.js", ""),
        ({"package.json": "not JSON"}, "npm install", "node server.js", ""),
        ({"package.json": '{"scripts": {"start": "cd dist && node ."}}'}, "npm install", "npm run start", ""),
        (
            {"package.json": '{"scripts": {"start": "next start", "build": "next build"}}', "pnpm-lock.yaml": ""},
            "pnpm install && pnpm run build",
            "pnpm run start",
            "",
        ),
        ({"package.json": "{}", "Gemfile": ""}, "bundle install --quiet", "puma -b tcp://127.0.0.1:$PORT", ""),
        (
            {"requirements.txt": "fastapi\n", "app/main.py": "import fastapi\napi: X = fastapi.FastAPI(title='a')\n"},
            "install -q -r requirements.txt uvicorn",
            f"{UVICORN} app.main:api",
            "",
        ),
        (
            {"requirements.txt": "django\n", "shop/wsgi.py": ""},
            "install -q -r requirements.txt gunicorn",
            "-m gunicorn -b 127.0.0.1:$PORT shop.wsgi",
            "",
        ),
        (
            {"pyproject.toml": "dependencies = ['uvicorn']\n", "src/shop/__init__.py": "app = create_app()\n"},
            "install -q .",
            f"{UVICORN} shop:app",
            "",
        ),
        (
            {"pyproject.toml": "flask", "uv.lock": "", "src/web.py": "from shop import make_app\napp = make_app()\n"},
            "uv sync --frozen && uv pip install -q gunicorn",
            "-m gunicorn -b 127.0.0.1:$PORT web:app",
            "",
        ),
        (
            {"pyproject.toml": "", "poetry.lock": "", "web.py": "app = FastAPI()\n"},
            "poetry install && poetry run pip install uvicorn",
            f"{UVICORN} web:app",
            "",
        ),
        (
            {"go.mod": "", "cmd/shop/main.go": "package main\n", "shop.go": "package shop\n"},
            "go build -o server ./cmd/shop",
            "./server",
            "",
        ),
        ({"go.mod": "", "cmd/a/main.go": "package main\n", "a.go": "package main\n"}, "-o server .", "./server", ""),
        ({"Cargo.toml": '[package]\nname = "shop"\n'}, "cargo build --release", "target/release/shop", ""),
        ({"shop.csproj": ""}, "-o out", "dotnet out/shop.dll --urls http://127.0.0.1:$PORT", ""),
        ({"pom.xml": "", "mvnw": ""}, "./mvnw -q package -DskipTests", "target/*.jar --server.port=$PORT", "java"),
        ({"pom.xml": "io.quarkus"}, "mvn -q package -DskipTests", "target/quarkus-app/quarkus-run.jar", "java"),
        ({"build.gradle": "io.micronaut"}, "./gradlew -q shadowJar", "build/libs/*-all.jar", "java"),
        ({"README": ""}, "None", "./server --port $PORT", ""),
    ],
)
def test_init_detects_build_and_start_commands(
    tmp_path: Path, files: Mapping[str, str], build: str, start: str, language: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read_service(tmp_path)
    assert str(found.service.build).endswith(build)
    assert str(found.service.start).endswith(start)
    assert found.service.language == language
    assert found.request[0].path == "/"


def test_dockerfile_is_used_without_other_build_files(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM ruby:3.4\nEXPOSE 3000\n", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read_service(tmp_path).service
    assert (found.dockerfile, found.port, found.start) == ("Dockerfile", 3000, None)
    (tmp_path / service.FILE).unlink()
    compose = "services:\n  db:\n    image: postgres\n  web:\n    depends_on: [db]\n    build: .\n    ports:\n"
    (tmp_path / "compose.yaml").write_text(f'{compose}      - "8080:3001"\n', encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    found = service.read_service(tmp_path).service
    assert (found.compose, found.service, found.port) == ("compose.yaml", "web", 3001)


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / service.FILE).write_text("mine", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.USAGE
    assert "already exists: edit it" in capsys.readouterr().err
    assert (tmp_path / service.FILE).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("app.py", '@app.post("/orders")\n@app.get("/items/{id}")\n@app.get("/items")\n'),
        ("server.js", "app.get('/items/:id', one)\napp.get('/items', all)\n"),
        ("main.go", 'mux.HandleFunc("POST /orders", add)\nmux.HandleFunc("GET /items", all)\n'),
        ("app.rb", "post '/orders' do\nend\n  get '/items/:id' do\n  end\n  get '/items' do\n  end\n"),
        ("Program.cs", 'app.MapGet("/items/{id}", One);\napp.MapGet("/items", All);\n'),
        ("Items.java", '@GetMapping("/items/{id}")\n@GetMapping("/items")\n'),
    ],
)
def test_first_declared_route_becomes_the_request(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    assert service.read_service(tmp_path).request[0].path == "/items"
