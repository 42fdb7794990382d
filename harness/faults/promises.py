"""A promise that is kept, broken, or cannot be tried on this machine."""


class BrokenPromise(Exception):  # noqa: N818 - what it is called everywhere here
    """What was seen in place of what was promised."""


class CannotBeProducedError(Exception):
    """This machine lacks what the fault needs; says what."""


def hold(promise: bool, *, else_: str) -> None:
    """Raise BrokenPromise with what was seen unless the promise holds."""
    if not promise:
        raise BrokenPromise(else_)
