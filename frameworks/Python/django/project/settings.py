"""Django's production settings: PostgreSQL with psycopg's connection pool, and a single middleware."""

import os

DEBUG = False
SECRET_KEY = "not-used-because-nothing-is-signed"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["bench"]
MIDDLEWARE = ["bench.views.DatabaseErrors"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
USE_I18N = False

# Threads per worker, as in start.sh. Each thread needs a database connection.
THREADS = 16

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("DBHOST") or "tfb-database",
        "PORT": os.environ.get("DBPORT") or "5432",
        "NAME": os.environ.get("DBNAME") or "hello_world",
        "USER": os.environ.get("DBUSER") or "benchmarkdbuser",
        "PASSWORD": os.environ.get("DBPASS") or "benchmarkdbpass",
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": THREADS, "timeout": 3},
            "server_side_binding": True,
            "prepare_threshold": 1,
            "connect_timeout": 3,
        },
    }
}

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "TIMEOUT": None,
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}

TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
