"""Views, and middleware that handles database errors."""

import sys
import time
from collections.abc import Callable, Sequence

import draws
from django.core.cache import cache
from django.db import Error, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from bench.models import Fortune, World


class DatabaseErrors:
    """Middleware that responds with 503 to database errors, and logs at most one error per second."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._quiet_until = 0.0

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Call the view."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Respond with 503 if a view raises a database error."""
        if not isinstance(error, Error):
            return None
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + 1.0
            print(f"{request.path}: {error}", file=sys.stderr, flush=True)
        return HttpResponse(status=503)


@require_safe
def json(_request: HttpRequest) -> HttpResponse:
    """Return a JSON message, which is serialized for each request."""
    return JsonResponse({"message": "Hello, World!"})


@require_safe
def plaintext(_request: HttpRequest) -> HttpResponse:
    """Return a plain-text body of thirteen bytes."""
    return HttpResponse("Hello, World!", content_type="text/plain")


@require_safe
def db(_request: HttpRequest) -> HttpResponse:
    """Return a random row."""
    return JsonResponse(World.objects.get(pk=draws.row()).as_dict())


@require_safe
def queries(request: HttpRequest) -> HttpResponse:
    """Return random rows, each read with a separate SELECT."""
    count = draws.query_count(first(request, "queries"))
    return worlds_response([World.objects.get(pk=draws.row()).as_dict() for _ in range(count)])


@require_safe
def cached_queries(request: HttpRequest) -> HttpResponse:
    """Return random rows from Django's cache, and read missing rows from the database."""
    keys = [draws.row() for _ in range(draws.query_count(first(request, "count")))]
    cached = cache.get_many(keys)
    if missing := {key: World.objects.get(pk=key).as_dict() for key in {*keys} - cached.keys()}:
        cache.set_many(missing)
    rows = cached | missing
    return worlds_response([rows[key] for key in keys])


@require_safe
def updates(request: HttpRequest) -> HttpResponse:
    """Lock rows in id order, so concurrent requests cannot deadlock, and write all rows with a single statement."""
    with transaction.atomic():
        ids = draws.distinct_rows(draws.query_count(first(request, "queries")))
        worlds = [World.objects.select_for_update().get(pk=key) for key in ids]
        for world in worlds:
            world.randomnumber = draws.number_other_than(world.randomnumber)
        World.objects.bulk_update(worlds, ["randomnumber"])
    return worlds_response([world.as_dict() for world in worlds])


@require_safe
def fortunes(request: HttpRequest) -> HttpResponse:
    """Return a page with all fortunes and an additional one."""
    rows = [*Fortune.objects.all(), Fortune(id=0, message="Additional fortune added at request time.")]
    rows.sort(key=lambda row: row.message)
    return render(request, "fortunes.html", {"fortunes": rows})


@require_safe
def delay(request: HttpRequest) -> HttpResponse:
    """Respond after the requested delay, during which the thread blocks."""
    time.sleep(draws.clamped(first(request, "ms"), 0, 1000, 0) / 1000)
    return plaintext(request)


def worlds_response(rows: Sequence[dict[str, int]]) -> HttpResponse:
    """Return rows as a JSON array."""
    return JsonResponse(rows, safe=False)


def first(request: HttpRequest, name: str) -> str | None:
    """Return the first value of a query parameter, or None if it is missing."""
    return next(iter(request.GET.getlist(name)), None)
