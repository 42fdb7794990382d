"""The cases, a group a module."""
