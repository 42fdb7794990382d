"""Services in Go, Rust, Java and Ruby, and in containers, for tests of ``init``."""

from dataclasses import replace

from harness.tests.extras.gate.recipe import Recipe

GO_MAIN = """package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"

	"example.org/shop/internal/items"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", items.One)
	mux.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(items.All())
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	log.Fatal(http.ListenAndServe(":"+port, mux))
}
"""
GO_ITEMS = """package items

import "net/http"

func All() []string {
	return []string{"a", "b"}
}

func One(w http.ResponseWriter, r *http.Request) {
	w.Write([]byte(r.PathValue("id")))
}
"""
AXUM_MAIN = """use axum::{routing::get, Json, Router};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: String,
}

#[tokio::main]
async fn main() {
    let app = Router::new().route("/", get(root));
    let port = std::env::var("PORT").unwrap_or_else(|_| "3000".to_string());
    let listener = tokio::net::TcpListener::bind(format!("0.0.0.0:{port}")).await.unwrap();
    axum::serve(listener, app).await.unwrap();
}

async fn root() -> Json<Message> {
    Json(Message { message: "Hello, World!".to_string() })
}
"""
CARGO = """[package]
name = "shop"
version = "0.1.0"
edition = "2021"

[dependencies]
axum = "=0.8.4"
serde = { version = "=1.0.228", features = ["derive"] }
tokio = { version = "=1.47.1", features = ["rt-multi-thread", "macros", "net"] }
"""
RUST_LOOP = """    let mut sum = 0u64;
    for i in 0..500_000u64 {
        sum = std::hint::black_box(sum + i);
    }
    Json("""
SPRING_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
	xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd">
	<modelVersion>4.0.0</modelVersion>
	<parent>
		<groupId>org.springframework.boot</groupId>
		<artifactId>spring-boot-starter-parent</artifactId>
		<version>3.5.6</version>
		<relativePath/> <!-- lookup parent from repository -->
	</parent>
	<groupId>com.example</groupId>
	<artifactId>demo</artifactId>
	<version>0.0.1-SNAPSHOT</version>
	<properties>
		<java.version>17</java.version>
	</properties>
	<dependencies>
		<dependency>
			<groupId>org.springframework.boot</groupId>
			<artifactId>spring-boot-starter-web</artifactId>
		</dependency>
	</dependencies>
	<build>
		<plugins>
			<plugin>
				<groupId>org.springframework.boot</groupId>
				<artifactId>spring-boot-maven-plugin</artifactId>
			</plugin>
		</plugins>
	</build>
</project>
"""
SPRING_APPLICATION = """package com.example.demo;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class DemoApplication {

	public static void main(String[] args) {
		SpringApplication.run(DemoApplication.class, args);
	}
}
"""
SPRING_CONTROLLER = """package com.example.demo;

import java.util.Map;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/api")
public class GreetingController {

	@GetMapping("/greeting")
	public Map<String, String> greeting() {
		return Map.of("content", "Hello, World!");
	}
}
"""
JAVA_LOOP = """long sum = 0;
		for (int i = 0; i < 500_000; i++) {
			sum += Long.rotateLeft(sum ^ i, 7);
		}
		System.setProperty("sum", Long.toString(sum));
		return """
QUARKUS_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
    <modelVersion>4.0.0</modelVersion>
    <groupId>org.acme</groupId>
    <artifactId>getting-started</artifactId>
    <version>1.0.0-SNAPSHOT</version>
    <properties>
        <maven.compiler.release>17</maven.compiler.release>
        <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
        <quarkus.platform.version>3.27.0</quarkus.platform.version>
    </properties>
    <dependencyManagement>
        <dependencies>
            <dependency>
                <groupId>io.quarkus.platform</groupId>
                <artifactId>quarkus-bom</artifactId>
                <version>${quarkus.platform.version}</version>
                <type>pom</type>
                <scope>import</scope>
            </dependency>
        </dependencies>
    </dependencyManagement>
    <dependencies>
        <dependency>
            <groupId>io.quarkus</groupId>
            <artifactId>quarkus-rest</artifactId>
        </dependency>
    </dependencies>
    <build>
        <plugins>
            <plugin>
                <groupId>io.quarkus.platform</groupId>
                <artifactId>quarkus-maven-plugin</artifactId>
                <version>${quarkus.platform.version}</version>
                <extensions>true</extensions>
                <executions>
                    <execution>
                        <goals>
                            <goal>build</goal>
                            <goal>generate-code</goal>
                        </goals>
                    </execution>
                </executions>
            </plugin>
            <plugin>
                <artifactId>maven-compiler-plugin</artifactId>
                <version>3.14.0</version>
                <configuration>
                    <parameters>true</parameters>
                </configuration>
            </plugin>
        </plugins>
    </build>
</project>
"""
QUARKUS_RESOURCE = """package org.acme;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;

@Path("/hello")
public class GreetingResource {

    @GET
    @Produces(MediaType.TEXT_PLAIN)
    public String hello() {
		return "Hello from Quarkus REST";
    }
}
"""
SINATRA_APP = """require 'sinatra/base'
require 'json'

class Shop < Sinatra::Base
  get '/items' do
    content_type :json
    JSON.generate(['a', 'b'])
  end
end
"""
COMPOSE = """services:
  web:
    build: .
    ports:
      - "8000:5000"
    environment:
      DATABASE_URL: postgresql://shop:shop@db/shop
      REDIS_URL: redis://cache:6379
    depends_on:
      db:
        condition: service_healthy
      cache:
        condition: service_started
  db:
    image: postgres:17-alpine
    environment:
      POSTGRES_USER: shop
      POSTGRES_PASSWORD: shop
      POSTGRES_DB: shop
    volumes:
      - data:/var/lib/postgresql/data
    healthcheck:
      test: [CMD-SHELL, pg_isready -U shop]
      interval: 1s
      retries: 30
  cache:
    image: redis:8-alpine
volumes:
  data:
"""
COMPOSE_APP = """import os

import psycopg
import redis
from flask import Flask

app = Flask(__name__)
cache = redis.Redis.from_url(os.environ["REDIS_URL"])


@app.route("/")
def hello():
    with psycopg.connect(os.environ["DATABASE_URL"]) as own:
        (number,) = own.execute("SELECT 41 + 1").fetchone()
    return {"hits": cache.exists("hits"), "number": number}
"""
COMPOSE_DOCKERFILE = """FROM python:3.13-slim
WORKDIR /code
COPY requirements.txt .
RUN pip install -q -r requirements.txt
COPY . .
EXPOSE 5000
CMD ["gunicorn", "-b", "0.0.0.0:5000", "--workers", "2", "app:app"]
"""
GO = Recipe(
    stack="Go",
    files={
        "go.mod": "module example.org/shop\n\ngo 1.22\n",
        ".gitignore": "/server\n",
        "cmd/shop/main.go": GO_MAIN,
        "internal/items/items.go": GO_ITEMS,
    },
    slow_file="internal/items/items.go",
    slow=(
        "\treturn []",
        "\tsum := uint64(0)\n\tfor i := uint64(0); i < 500000; i++ {\n\t\tsum = sum*31 ^ i\n\t}\n"
        "\tif sum == 1 {\n\t\treturn nil\n\t}\n\treturn []",
    ),
    path="/items",
    build="go build -buildvcs=false -o server ./cmd/shop",
    start="./server",
    needs=("go",),
)
AXUM = Recipe(
    stack="axum",
    files={"Cargo.toml": CARGO, ".gitignore": "/target\n", "src/main.rs": AXUM_MAIN},
    slow_file="src/main.rs",
    slow=("    Json(", RUST_LOOP),
    path="/",
    build="cargo build --release --target-dir target",
    start="target/release/shop",
    needs=("cargo",),
)
SPRING = Recipe(
    stack="Spring Boot",
    files={
        "pom.xml": SPRING_POM,
        ".gitignore": "target/\n",
        "src/main/java/com/example/demo/DemoApplication.java": SPRING_APPLICATION,
        "src/main/java/com/example/demo/GreetingController.java": SPRING_CONTROLLER,
        "src/main/resources/application.properties": "spring.application.name=demo\n",
    },
    slow_file="src/main/java/com/example/demo/GreetingController.java",
    slow=("return ", JAVA_LOOP),
    path="/api/greeting",
    build="mvn -q -B package -DskipTests",
    start="java -jar target/demo-0.0.1-SNAPSHOT.jar --server.address=127.0.0.1 --server.port=$PORT",
    needs=("mvn",),
)
QUARKUS = Recipe(
    stack="Quarkus",
    files={
        "pom.xml": QUARKUS_POM,
        ".gitignore": "target/\n",
        "src/main/java/org/acme/GreetingResource.java": QUARKUS_RESOURCE,
        "src/main/resources/application.properties": "",
    },
    slow_file="src/main/java/org/acme/GreetingResource.java",
    slow=("return ", JAVA_LOOP),
    path="/hello",
    build="mvn -q -B package -DskipTests",
    start="java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar target/quarkus-app/quarkus-run.jar",
    needs=("mvn",),
)
SINATRA = Recipe(
    stack="Sinatra with Puma",
    files={
        "Gemfile": "source 'https://rubygems.org'\n\ngem 'puma', '~> 5.6'\ngem 'sinatra', '~> 3.0'\n",
        ".gitignore": "vendor\n.bundle\n",
        "config.ru": "require_relative 'app'\n\nrun Shop\n",
        "app.rb": SINATRA_APP,
    },
    slow_file="app.rb",
    slow=("    JSON.", "    30_000.times { |i| i + 1 }\n    JSON."),
    path="/items",
    build="bundle config set --local path vendor/bundle && bundle install --quiet",
    start="bundle exec puma -e production -b tcp://127.0.0.1:$PORT",
    env={"RACK_ENV": "production", "APP_ENV": "production"},
    needs=("bundle",),
)
# The same service with Debian's or Ubuntu's packages ruby-sinatra and puma instead of gems.
SINATRA_OF_DISTRIBUTION = replace(
    SINATRA,
    stack="Sinatra with Puma",
    files={name: text for name, text in SINATRA.files.items() if name != "Gemfile"},
    build="",
    start="puma -e production -b tcp://127.0.0.1:$PORT",
    needs=("puma",),
)
DOCKER_COMPOSE = Recipe(
    stack="Docker Compose with postgres, redis",
    files={
        "compose.yaml": COMPOSE,
        "Dockerfile": COMPOSE_DOCKERFILE,
        "requirements.txt": "flask==3.1.2\ngunicorn==23.0.0\npsycopg[binary]==3.2.10\nredis==6.4.0\n",
        ".dockerignore": ".git\n",
        "app.py": COMPOSE_APP,
    },
    slow_file="app.py",
    slow=("    return", "    sum(range(50_000))\n    return"),
    path="/",
    start="None",
    needs=("docker",),
)
COMPILED_RECIPES = (GO, AXUM, SINATRA, SINATRA_OF_DISTRIBUTION, SPRING, QUARKUS)
