"""A decorator that runs one test for many values. Thousands of parametrized tests would take minutes."""

import functools
import inspect
from collections.abc import Callable, Iterable


def for_each(name: str, values: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test for each value of an argument. A failure names the value."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: object) -> None:
            for value in values:
                try:
                    test(**{name: value}, **fixtures)
                except BaseException as error:
                    error.add_note(f"{name} = {value!a}")
                    raise

        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name != name]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate
