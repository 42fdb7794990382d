"""``./tfb init`` writes a valid tfb.toml for every kind of service."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit
from harness.plan import service

UVICORN = ".venv/bin/python -m uvicorn --host 127.0.0.1 --port $PORT --workers 2 --log-level warning"
GUNICORN = ".venv/bin/python -m gunicorn -b 127.0.0.1:$PORT --workers 2"
PIP = "python3 -m venv .venv && .venv/bin/python -m pip install -q"
EXPRESS = '{"scripts": {"start": "SCRIPT"}, "dependencies": {"express": "5"}}'
PARENT = "<parent><groupId>org.springframework.boot</groupId><version>3.5.6</version></parent>"


def script(text: str) -> dict[str, str]:
    return {"package.json": EXPRESS.replace("SCRIPT", text)}


@pytest.mark.parametrize(
    ("files", "build", "start"),
    [
        ({"package.json": "not JSON"}, "npm install --include=dev", "node server.js"),
        (script("node app.js"), "npm install --include=dev", "node app.js"),
        (script("cd dist && node ."), "npm install --include=dev", "npm run start"),
        (script("NODE_ENV=development PORT=3000 nodemon src/app.js"), "npm install --include=dev", "node src/app.js"),
        (script("nodemon --watch src app.js"), "npm install --include=dev", "node app.js"),
        (script("cross-env A=1 node --watch app.js"), "npm install --include=dev", "A=1 node app.js"),
        (script("tsx watch src/app.ts"), "npm install --include=dev", "node_modules/.bin/tsx src/app.ts"),
        ({**script("node ."), "package-lock.json": ""}, "npm ci --include=dev", "node ."),
        ({**script("node ."), "yarn.lock": ""}, "yarn install --frozen-lockfile --production=false", "node ."),
        ({**script("node ."), "yarn.lock": "", ".yarnrc.yml": ""}, "yarn install --immutable", "node ."),
        ({**script("node ."), "bun.lock": ""}, "bun install --frozen-lockfile", "node ."),
        (
            {"package.json": '{"scripts": {"dev": "nodemon"}, "main": "lib/a.js"}', "lib/a.js": "process.env.PORT"},
            "npm install --include=dev",
            "node lib/a.js",
        ),
        (
            {
                "package.json": '{"scripts": {"start": "next dev -p 3000", "build": "next build"}}',
                "pnpm-lock.yaml": "",
            },
            "pnpm install --frozen-lockfile --prod=false && pnpm run build",
            "node_modules/.bin/next start -p $PORT",
        ),
        (
            {
                "package.json": '{"dependencies": {"next": "16"}}',
                "next.config.mjs": "export default {output: 'standalone'}",
            },
            "npm install --include=dev && npx next build && cp -r .next/static .next/standalone/.next/ && "
            "mkdir -p public && cp -r public .next/standalone/",
            "node .next/standalone/server.js",
        ),
        (
            {"requirements.txt": "fastapi\n", "app/main.py": "import fastapi\napi: X = fastapi.FastAPI(title='a')\n"},
            f"{PIP} -r requirements.txt && .venv/bin/python -m pip install -q uvicorn",
            f"{UVICORN} app.main:api",
        ),
        (
            {"requirements.txt": "fastapi\nuvicorn\n", "src/main.py": "app = FastAPI()\n"},
            f"{PIP} -r requirements.txt",
            f"{UVICORN.replace('--host', '--app-dir src --host')} main:app",
        ),
        (
            {"requirements/production.txt": "fastapi\nuvicorn\n", "app.py": "def create_app():\n    pass\n"},
            f"{PIP} -r requirements/production.txt",
            f"{UVICORN} --factory app:create_app",
        ),
        (
            {"requirements.txt": "django\n", "shop/wsgi.py": ""},
            f"{PIP} -r requirements.txt && .venv/bin/python -m pip install -q gunicorn && printf '%s\\n' "
            "'from shop.settings import *' 'DEBUG = False' 'ALLOWED_HOSTS = [\"*\"]' 'SECURE_SSL_REDIRECT = False' "
            "> tfb_settings.py",
            f"{GUNICORN} shop.wsgi",
        ),
        (
            {
                "pyproject.toml": "[build-system]\ndependencies = ['uvicorn']\n",
                "src/shop/__init__.py": "app = create_app()\n",
            },
            f"{PIP} .",
            f"{UVICORN} shop:app",
        ),
        (
            {"pyproject.toml": "flask", "uv.lock": "", "src/web.py": "from shop import make_app\napp = make_app()\n"},
            "uv sync --frozen --no-dev && uv pip install -q gunicorn",
            f"{GUNICORN} web:app",
        ),
        (
            {"pyproject.toml": "", "poetry.lock": "", "web.py": "app = FastAPI()\n"},
            "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --only main --no-interaction && "
            "poetry run pip install -q uvicorn",
            f"{UVICORN} web:app",
        ),
        (
            {
                "Pipfile": "[packages]\nflask = '*'\ngunicorn = '*'\n",
                "Pipfile.lock": "",
                "app.py": "app = Flask('a')\n",
            },
            "PIPENV_VENV_IN_PROJECT=1 pipenv sync",
            f"{GUNICORN} app:app",
        ),
        (
            {"requirements.txt": "flask\ngunicorn\n", "Procfile": "web: gunicorn shop:app\n"},
            f"{PIP} -r requirements.txt",
            "PATH=$PWD/.venv/bin:$PATH gunicorn shop:app",
        ),
        (
            {"requirements.txt": "flask\ngunicorn\n", "Procfile": "web: flask run\n", "app.py": "app = Flask('a')\n"},
            f"{PIP} -r requirements.txt",
            f"{GUNICORN} app:app",
        ),
        (
            {"go.mod": "", "cmd/shop/main.go": "package main\n", "shop.go": "package shop\n"},
            "go build -buildvcs=false -o server ./cmd/shop",
            "./server",
        ),
        (
            {"go.mod": "", "cmd/a/main.go": "package main\n", "a.go": "package main\n"},
            "go build -buildvcs=false -o server .",
            "./server",
        ),
        (
            {"Cargo.toml": '[package]\nname = "shop"\n', "Cargo.lock": ""},
            "cargo build --release --locked --target-dir target",
            "target/release/shop",
        ),
        (
            {
                "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
                "crates/a/Cargo.toml": '[package]\nname = "a"\n',
                "crates/b/Cargo.toml": '[package]\nname = "b"\n[dependencies]\naxum = "0.8"\n',
                "crates/b/src/main.rs": "",
            },
            "cargo build --release --target-dir target -p b",
            "target/release/b",
        ),
        (
            {"shop.csproj": ""},
            "dotnet publish -c Release -o out",
            "dotnet out/shop.dll --urls http://127.0.0.1:$PORT",
        ),
        (
            {"pom.xml": f"{PARENT}<artifactId>shop</artifactId><description>spring-boot</description>", "mvnw": ""},
            "sh ./mvnw -q -B package -DskipTests",
            "java -jar target/shop-3.5.6.jar --server.address=127.0.0.1 --server.port=$PORT",
        ),
        (
            {"pom.xml": "io.quarkus"},
            "mvn -q -B package -DskipTests",
            "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar target/quarkus-app/quarkus-run.jar",
        ),
        (
            {"build.gradle": "io.micronaut", "gradlew": ""},
            "sh ./gradlew -q --no-daemon shadowJar",
            "java -Dmicronaut.server.host=127.0.0.1 -Dmicronaut.server.port=$PORT -jar build/libs/*-all.jar",
        ),
        (
            {"build.gradle.kts": "plugins { application }", "settings.gradle.kts": 'rootProject.name = "shop"'},
            "gradle -q --no-daemon installDist",
            "build/install/shop/bin/shop",
        ),
        (
            {"package.json": "{}", "Gemfile": "gem 'rails'\ngem 'puma'\n"},
            "bundle config set --local path vendor/bundle && bundle install --quiet && "
            "SECRET_KEY_BASE=only-for-measurements RAILS_ENV=production bundle exec rails db:prepare",
            "bundle exec puma -e production -b tcp://127.0.0.1:$PORT",
        ),
        (
            {"Gemfile": "gem 'sinatra'\n", "app.rb": "require 'sinatra'\n"},
            "bundle config set --local path vendor/bundle && bundle install --quiet",
            "bundle exec ruby app.rb -e production -o 127.0.0.1 -p $PORT",
        ),
        (
            {"requirements.txt": "aiohttp", "main.py": "def make_app():\n    web.Application()\nrun_app(make_app())"},
            f"{PIP} -r requirements.txt",
            ".venv/bin/python main.py",
        ),
        (
            {
                "requirements.txt": "tornado",
                "main.py": "def make_app():\n    web.Application()\nif __name__ == '__main__':",
            },
            f"{PIP} -r requirements.txt",
            ".venv/bin/python main.py",
        ),
        ({"serve.sh": "nc -l $PORT"}, None, "./serve.sh"),
        ({"README": ""}, None, "./server --port $PORT"),
    ],
)
def test_init_detects_build_and_start_commands(
    tmp_path: Path, files: Mapping[str, str], build: str | None, start: str
) -> None:
    write(tmp_path, files)
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    file = service.read_service(tmp_path)
    assert file.service.build == build
    assert file.service.start == start
    assert file.request[0].path == "/"


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "chosen", "others"),
    [
        (
            {"requirements.txt": "flask", "package.json": "{}", "Dockerfile": "EXPOSE 80"},
            "Flask",
            "a Dockerfile, Node.js",
        ),
        (
            {"go.mod": "", "Dockerfile": "", "compose.yaml": "services: {a: {build: .}}"},
            "Go",
            "Docker Compose, a Dockerfile",
        ),
        (
            {"go.mod": "", "compose.yaml": "services: {a: {build: ., ports: ['80']}, b: {image: 'x/redis:8'}}"},
            "Docker Compose with redis",
            "Go",
        ),
        ({"go.mod": "", "compose.yaml": "services: {db: {image: postgres}}"}, "Go", ""),
    ],
)
def test_init_names_the_stacks_not_chosen(
    tmp_path: Path, files: Mapping[str, str], chosen: str, others: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, files)
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    said = capsys.readouterr().out
    assert f"written for {chosen} (" in said
    found = re.search(r"^Also recognised: (.*)\. To use", said, re.MULTILINE)
    assert re.sub(r" \([^)]*\)", "", found[1] if found else "") == others


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({**script("node a.js"), "a.js": "\napp.listen(3000)\n"}, "a.js, line 2: port 3000 is hard-coded"),
        ({**script("node a.js"), "a.js": "listen()"}, "no source file reads the variable PORT"),
        ({"compose.yaml": "services: {a: {build: ., command: flask run}}"}, "declares no port: check the port"),
        ({"compose.yaml": "services: {a: {build: ., command: flask run}}"}, "in development mode (flask run)"),
        ({"Dockerfile": "FROM scratch"}, "Dockerfile has no EXPOSE line: check the port in tfb.toml"),
        ({"README": ""}, "tfb recognised no stack in this folder"),
        ({"README": "", "services/api/go.mod": ""}, "services/api (Go): ./tfb init"),
        ({"Procfile": "web: nothing-such --port $PORT"}, "nothing-such is not on PATH: install it"),
    ],
)
def test_init_says_what_to_do(
    tmp_path: Path, files: Mapping[str, str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, files)
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    assert advice in capsys.readouterr().out


def test_packages_of_a_workspace_are_in_its_root(tmp_path: Path) -> None:
    """A workspace keeps its lock file and installed packages in the repository's root."""
    write(
        tmp_path,
        {"pnpm-lock.yaml": "", ".git/HEAD": "", "apps/web/package.json": EXPRESS.replace("SCRIPT", "tsx a.ts")},
    )
    assert cli.main(["init", str(tmp_path / "apps" / "web")]) == Exit.OK
    found = service.read_service(tmp_path / "apps" / "web").service
    assert found.build == "pnpm install --frozen-lockfile --prod=false"
    assert found.start == "pnpm exec tsx a.ts"


def test_dockerfile_is_used_without_other_build_files(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM ruby:3.4\nEXPOSE 3000\n", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    section = service.read_service(tmp_path).service
    assert (section.dockerfile, section.port, section.start) == ("Dockerfile", 3000, None)
    (tmp_path / service.FILE).unlink()
    compose = "services:\n  db:\n    image: postgres\n  web:\n    depends_on: [db]\n    build: .\n    ports:\n"
    (tmp_path / "compose.yaml").write_text(f'{compose}      - "8080:3001"\n', encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    section = service.read_service(tmp_path).service
    assert (section.compose, section.service, section.port) == ("compose.yaml", "web", 3001)


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
        ("Items.java", '@RestController\n@RequestMapping("/items")\nclass A {\n@GetMapping("/{id}")\n@GetMapping\n'),
        ("Items.java", '@Path("/items")\npublic class A {\n@GET\n@Path("/{id}")\nX one();\n@GET\npublic X all();\n'),
        ("items.ts", "@Controller('items')\nclass A {\n@Get(':id')\none() {}\n@Get()\n"),
        ("items.py", 'router = APIRouter(prefix="/items")\n@router.get("/{id}")\n@router.get("")\n'),
        ("main.rs", '#[get("/items/{id}")]\n#[get("/items")]\n'),
        ("main.go", 'r.POST("/a", b)\nr.GET("/items/:id", one)\nr.GET("/items", all)\n'),
        ("app.js", "const router = new Router({ prefix: '/items' });\nrouter.get('/', all);\n"),
        ("main.go", 'api := app.Group("/items")\napi.Get("/:id", one)\napi.Get("/", all)\n'),
        ("main.py", 'routes = [Route("/items/{id}", one), Route("/items", all)]\n'),
        ("web.php", "Route::post('/a');\nRoute::get('/items', all);\n"),
    ],
)
def test_first_declared_route_becomes_the_request(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    assert service.read_service(tmp_path).request[0].path == "/items"
