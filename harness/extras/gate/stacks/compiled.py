"""Recognises Go, Rust and .NET services, and JVM services that use Maven or Gradle."""

import re
from pathlib import PurePath

from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack, has_word

FRAMEWORKS = {  # text in a build file -> (name, system properties, arguments); the first match wins
    "quarkus": ("Quarkus", "-Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT", ""),
    "micronaut": ("Micronaut", "-Dmicronaut.server.host=127.0.0.1 -Dmicronaut.server.port=$PORT", ""),
    "spring-boot": ("Spring Boot", "", "--server.address=127.0.0.1 --server.port=$PORT"),
    "springframework.boot": ("Spring Boot", "", "--server.address=127.0.0.1 --server.port=$PORT"),
    "helidon": ("Helidon", "-Dserver.host=127.0.0.1 -Dserver.port=$PORT", ""),
    "javalin": ("Javalin", "", ""),
    "vertx": ("Vert.x", "", ""),
    "ktor": ("Ktor", "", ""),
}
GRADLE = {  # plugin -> (task, jar)
    "quarkus": ("quarkusBuild", "quarkus-app/quarkus-run.jar"),
    "springframework.boot": ("bootJar", "libs/*.jar"),
    "micronaut": ("shadowJar", "libs/*-all.jar"),
    "shadow": ("shadowJar", "libs/*-all.jar"),
    "ktor.plugin": ("buildFatJar", "libs/*-all.jar"),
}
NESTED = re.compile(r"<(parent|dependencies|dependencyManagement|build|profiles|reporting)>.*?</\1>", re.DOTALL)
PRODUCTION_PROFILES = ("prod", "production")


def detect_java(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a folder with a Maven or Gradle build file, or None."""
    if "pom.xml" in folder.names:
        text = folder.text("pom.xml")
        program, file = _wrapper(folder, "mvnw", "mvn"), "pom.xml"
        return _stack(folder, text, file, f"{program} -q -B package -DskipTests", f"target/{_maven_jar(text)}")
    file = folder.first("build.gradle", "build.gradle.kts")
    if not file:
        return None
    text = folder.text(file)
    program = _wrapper(folder, "gradlew", "gradle")
    task, jar = next((commands for plugin, commands in GRADLE.items() if plugin in text), ("", ""))
    if task:
        return _stack(folder, text, file, f"{program} -q --no-daemon {task}", f"build/{jar}")
    if not re.search(r"[\"'\s]application\b", text):
        return _stack(folder, text, file, f"{program} -q --no-daemon bootJar", "build/libs/*.jar")
    settings = folder.text(folder.first("settings.gradle", "settings.gradle.kts"))
    named = re.search(r"rootProject\.name\s*=\s*[\"']([\w.-]+)[\"']", settings)
    name = named[1] if named else '"$(basename "$PWD")"'
    return Stack(
        name=_framework(text)[0] or "Gradle",
        file=file,
        build=f"{program} -q --no-daemon installDist",
        start=f"build/install/{name}/bin/{name}",
        language="java",
    )


def _stack(folder: ServiceFolder, text: str, file: str, build: str, jar: str) -> Stack:
    name, properties, arguments = _framework(text)
    profile = next(
        (each for each in PRODUCTION_PROFILES if folder.glob(f"src/main/resources/application-{each}.*")), ""
    )
    if profile and name == "Spring Boot":
        arguments += f" --spring.profiles.active={profile}"
    command = ("java", properties, "-jar", jar, arguments)
    return Stack(
        name=name or ("Maven" if file == "pom.xml" else "Gradle"),
        file=file,
        build=build,
        start=" ".join(filter(None, command)),
        language="java",
    )


def _framework(text: str) -> tuple[str, str, str]:
    return next((framework for word, framework in FRAMEWORKS.items() if word in text), ("", "", ""))


def _wrapper(folder: ServiceFolder, wrapper: str, program: str) -> str:
    """Return the build command: the wrapper script in the folder, or the installed program if there is no wrapper."""
    if wrapper in folder.names:
        return f"sh ./{wrapper}"
    return program


def _maven_jar(text: str) -> str:
    """Return the name of the program's jar in ``target``, with ``*`` for parts that the pom.xml does not determine."""
    if "quarkus" in text:
        return "quarkus-app/quarkus-run.jar"
    own = NESTED.sub("", text)
    artifact = re.search(r"<artifactId>([\w.-]+)</artifactId>", own)
    version = re.search(r"<version>([\w.-]+)</version>", own) or re.search(
        r"<parent>.*?<version>([\w.-]+)<", text, re.DOTALL
    )
    declared = re.search(r"<finalName>([^<]+)</finalName>", text)
    if artifact is None:
        return "*.jar"
    name = f"{artifact[1]}-{version[1]}" if version else f"{artifact[1]}-*"
    if declared:
        name = declared[1].replace("${project.artifactId}", artifact[1])
        name = name.replace("${project.version}", version[1] if version else "*")
    elif "helidon" in text:
        name = artifact[1]  # Helidon's parent POM declares this final name
    suffix = "-jar-with-dependencies" if "jar-with-dependencies" in text and "appendAssemblyId" not in text else ""
    shaded = re.search(r"<shadedClassifierName>([\w.-]+)<", text)
    return f"{re.sub(r'[$][{][^}]*[}]', '*', name)}{'-' + shaded[1] if shaded else suffix}.jar"


GO_FRAMEWORKS = {
    "gin-gonic/gin": "Gin",
    "gofiber/fiber": "Fiber",
    "labstack/echo": "Echo",
    "go-chi/chi": "chi",
    "gorilla/mux": "gorilla/mux",
}
RUST_FRAMEWORKS = {
    "axum": "axum",
    "actix-web": "Actix Web",
    "rocket": "Rocket",
    "warp": "warp",
    "poem": "Poem",
    "salvo": "Salvo",
    "hyper": "hyper",
}
MAIN_PACKAGE = re.compile(r"^package main\b", re.MULTILINE)
TEST_SUFFIX = "_test.go"


def detect_go(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a folder with a go.mod, or None."""
    if "go.mod" not in folder.names:
        return None
    files = [name for pattern in ("*.go", "cmd/*/*.go", "cmd/*.go") for name in folder.glob(pattern)]
    mains = [name for name in files if not name.endswith(TEST_SUFFIX) and MAIN_PACKAGE.search(folder.text(name))]
    serving = [name for name in mains if re.search(r"net/http|Listen|\bgin\b|\.Run\(", folder.text(name))] or mains
    folder_of_main = str(PurePath(serving[0]).parent) if serving else "."
    module = folder.text("go.mod")
    name = next((name for package, name in GO_FRAMEWORKS.items() if package in module), "Go")
    return Stack(
        name=name,
        file="go.mod",
        build=f"go build -buildvcs=false -o server {'.' if folder_of_main == '.' else f'./{folder_of_main}'}",
        start="./server",
        env={"GIN_MODE": "release"} if name == "Gin" else {},
        reads_port=name == "Gin" and folder.search(re.compile(r"\.Run\(\)")) is not None,
    )


def detect_rust(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a crate or of a workspace's server crate. Return None if there is no server."""
    if "Cargo.toml" not in folder.names:
        return None
    crate, option = "Cargo.toml", ""
    if "[package]" not in folder.text(crate):
        manifests = folder.glob("*/Cargo.toml") + folder.glob("*/*/Cargo.toml")
        programs = [name for name in manifests if folder.glob(f"{PurePath(name).parent}/src/main.rs")]
        servers = [name for name in programs if _rust_framework(folder.text(name))] or programs
        if not servers:
            return None
        crate = servers[0]
        option = f" -p {_crate_name(folder.text(crate))}"
    text = folder.text(crate)
    program = re.search(r"^default-run *= *\"([^\"]+)\"", text, re.MULTILINE) or re.search(
        r"^\[\[bin\]\][^\[]*?^name *= *\"([^\"]+)\"", text, re.MULTILINE
    )
    name = _rust_framework(text) or "Rust"
    locked = " --locked" if folder.in_parents("Cargo.lock") else ""
    return Stack(
        name=name,
        file=crate,
        build=f"cargo build --release{locked} --target-dir target{option}",
        start=f"target/release/{program[1] if program else _crate_name(text)}",
        env={"ROCKET_PROFILE": "release", "ROCKET_ADDRESS": "127.0.0.1"} if name == "Rocket" else {},
        reads_port=name == "Rocket",
    )


def _rust_framework(text: str) -> str:
    return next((name for package, name in RUST_FRAMEWORKS.items() if has_word(text, package)), "")


def _crate_name(text: str) -> str:
    match = re.search(r"^name *= *\"([^\"]+)\"", text, re.MULTILINE)
    return match[1] if match else "server"


def detect_dotnet(folder: ServiceFolder) -> Stack | None:
    """Return the stack of an ASP.NET Core project, or None."""
    for project in folder.glob("*.csproj"):
        text = folder.text(project)
        assembly = re.search(r"<AssemblyName>([\w.-]+)<", text)
        name = assembly[1] if assembly else PurePath(project).stem
        return Stack(
            name=".NET",
            file=project,
            build="dotnet publish -c Release -o out",
            start=f"dotnet out/{name}.dll --urls http://127.0.0.1:$PORT",
            env={"DOTNET_ENVIRONMENT": "Production", "ASPNETCORE_ENVIRONMENT": "Production"},
        )
    return None
