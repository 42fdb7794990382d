"""The URL routes."""

from bench import views
from django.urls import path

urlpatterns = [
    path("json", views.json),
    path("plaintext", views.plaintext),
    path("db", views.db),
    path("queries", views.queries),
    path("cached-queries", views.cached_queries),
    path("updates", views.updates),
    path("fortunes", views.fortunes),
    path("delay", views.delay),
]
