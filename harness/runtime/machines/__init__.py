"""A run on several machines: a Docker engine on each, reached by one forwarded socket over ssh."""
