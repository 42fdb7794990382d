"""Services in Python for tests of ``init``."""

from harness.tests.extras.gate.recipe import Recipe

LOOP = "sum(range(50_000))"
FASTAPI_MAIN = """from fastapi import FastAPI

from .routers import items

app = FastAPI()
app.include_router(items.router)


@app.get("/")
async def root():
    return {"message": "Hello Bigger Applications!"}
"""
FASTAPI_ITEMS = """from fastapi import APIRouter

router = APIRouter(prefix="/items", tags=["items"])
fake_items_db = {"plumbus": {"name": "Plumbus"}, "gun": {"name": "Portal Gun"}}


@router.get("/{item_id}")
async def read_item(item_id: str):
    return {"name": fake_items_db[item_id]["name"], "item_id": item_id}


@router.get("/")
async def read_items():
    return fake_items_db
"""
MANAGE = """#!/usr/bin/env python
import os
import sys


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
"""
SETTINGS = """from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "django-insecure-1234567890123456789012345678901234567890"
DEBUG = True
ALLOWED_HOSTS = []
INSTALLED_APPS = [
    "polls.apps.PollsConfig",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "mysite.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
WSGI_APPLICATION = "mysite.wsgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
URLS = """from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("polls/", include("polls.urls")),
    path("admin/", admin.site.urls),
]
"""
WSGI = """import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
application = get_wsgi_application()
"""
MODELS = """from django.db import models


class Question(models.Model):
    question_text = models.CharField(max_length=200)
"""
MIGRATION = """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Question",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("question_text", models.CharField(max_length=200)),
            ],
        )
    ]
"""
POLLS_URLS = """from django.urls import path

from . import views

urlpatterns = [path("", views.index)]
"""
VIEWS = """from django.http import HttpResponse

from .models import Question


def index(request):
    latest = ", ".join(each.question_text for each in Question.objects.all()[:5])
    return HttpResponse("Hello, world. You're at the polls index." + latest)
"""
FLASK_PROJECT = """[project]
name = "flaskr"
version = "1.0.0"
description = "The basic blog app built in the Flask tutorial."
dependencies = ["flask==3.1.2"]

[build-system]
requires = ["flit_core<4"]
build-backend = "flit_core.buildapi"

[tool.flit.module]
name = "flaskr"
"""
FLASK_FACTORY = """import os

from flask import Flask


def create_app(test_config=None):
    app = Flask(__name__, instance_relative_config=True)
    app.config.from_mapping(SECRET_KEY="dev", DATABASE=os.path.join(app.instance_path, "flaskr.sqlite"))
    os.makedirs(app.instance_path, exist_ok=True)

    @app.route("/hello")
    def hello():
        return "Hello, World!"

    from . import db

    db.init_app(app)
    return app
"""
FLASK_DB = """import sqlite3

import click
from flask import current_app, g


def get_db():
    if "db" not in g:
        g.db = sqlite3.connect(current_app.config["DATABASE"])
    return g.db


def init_db():
    with current_app.open_resource("schema.sql") as f:
        get_db().executescript(f.read().decode("utf8"))


@click.command("init-db")
def init_db_command():
    init_db()
    click.echo("Initialized the database.")


def init_app(app):
    app.cli.add_command(init_db_command)
"""
FASTAPI = Recipe(
    stack="FastAPI",
    files={
        "requirements.txt": "fastapi==0.118.0\nuvicorn==0.37.0\n",
        ".gitignore": ".venv\n__pycache__\n",
        "app/__init__.py": "",
        "app/main.py": FASTAPI_MAIN,
        "app/routers/__init__.py": "",
        "app/routers/items.py": FASTAPI_ITEMS,
    },
    slow_file="app/main.py",
    slow=("    return", f"    {LOOP}\n    return"),
    path="/",
    build="python3 -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt",
    start=".venv/bin/python -m uvicorn --host 127.0.0.1 --port $PORT --workers 2 --log-level warning app.main:app",
)
DJANGO = Recipe(
    stack="Django",
    files={
        "requirements.txt": "Django==5.2.7\n",
        ".gitignore": ".venv\n__pycache__\ndb.sqlite3\n",
        "manage.py": MANAGE,
        "mysite/__init__.py": "",
        "mysite/settings.py": SETTINGS,
        "mysite/urls.py": URLS,
        "mysite/wsgi.py": WSGI,
        "polls/__init__.py": "",
        "polls/apps.py": "from django.apps import AppConfig\n\n\nclass PollsConfig(AppConfig):\n    name = 'polls'\n",
        "polls/models.py": MODELS,
        "polls/migrations/__init__.py": "",
        "polls/migrations/0001_initial.py": MIGRATION,
        "polls/urls.py": POLLS_URLS,
        "polls/views.py": VIEWS,
    },
    slow_file="polls/views.py",
    slow=("    return", f"    {LOOP}\n    return"),
    path="/polls/",
    build=".venv/bin/python manage.py migrate --noinput",
    start=".venv/bin/python -m gunicorn -b 127.0.0.1:$PORT --workers 2 mysite.wsgi",
    env={"DJANGO_SETTINGS_MODULE": "tfb_settings"},
)
FLASK = Recipe(
    stack="Flask",
    files={
        "pyproject.toml": FLASK_PROJECT,
        ".gitignore": ".venv\n__pycache__\ninstance\n",
        "flaskr/__init__.py": '"""A blog."""\n' + FLASK_FACTORY,
        "flaskr/db.py": FLASK_DB,
        "flaskr/schema.sql": "CREATE TABLE IF NOT EXISTS user (id INTEGER PRIMARY KEY, username TEXT);\n",
    },
    slow_file="flaskr/__init__.py",
    slow=('        return "Hello', f'        {LOOP}\n        return "Hello'),
    path="/hello",
    build=".venv/bin/python -m pip install -q gunicorn && .venv/bin/python -m flask --app flaskr init-db",
    start=".venv/bin/python -m gunicorn -b 127.0.0.1:$PORT --workers 2 'flaskr:create_app()'",
)
PYTHON_RECIPES = (FASTAPI, DJANGO, FLASK)
