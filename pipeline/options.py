"""Options of a world: the keyword arguments of its factory, checked before it is called.

Options come from settings and command lines, so numbers and booleans may be written as text. A
factory's annotations say what they become; its own checks raise `BadWorldOptions` too.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

T = TypeVar("T")
TRUE: Final = frozenset({"1", "true", "yes", "on"})
FALSE: Final = frozenset({"0", "false", "no", "off"})


class BadWorldOptions(ValueError):
    """A world was given an option that it does not have, or a value that it cannot take."""

    code = "bad_world_options"

    def __init__(self, option: str, message: str) -> None:
        """Name the option and say in one sentence what is wrong with it."""
        super().__init__(message)
        self.option = option


def call_with_options(factory: Callable[..., T], options: Mapping[str, object]) -> T:
    """Call a factory with options as keyword arguments, converted as its annotations say."""
    parameters = inspect.signature(factory).parameters
    known = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    hints = typing.get_type_hints(factory)
    for option in options.keys() - known.keys():
        has = ", ".join(known) or "none"
        raise BadWorldOptions(option, f"This world has no option {option!r}; it has: {has}.")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise BadWorldOptions(name, f"This world needs the option {name!r}.")
    values = {name: converted(name, value, hints.get(name)) for name, value in options.items()}
    return factory(**values)


def converted(option: str, value: object, wanted: object) -> object:
    """Return an option's value as `wanted` (int, float, bool, str, a union of these, or any)."""
    kinds = typing.get_args(wanted) or (wanted,)
    if value is None and type(None) in kinds:
        return None
    for kind in (bool, int, float, str):
        if kind in kinds and (result := _as(kind, value)) is not None:
            return result
    if not {bool, int, float, str}.intersection(kinds):
        return value
    names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise BadWorldOptions(option, f"Option {option!r} must be {names}, not {value!r}.")


def _as(kind: type, value: object) -> object | None:
    """Return value as a bool, int, float or str, or None where it is none."""
    if kind is bool:
        word = str(value).lower() if isinstance(value, bool | str) else ""
        return True if word in TRUE else False if word in FALSE else None
    if kind is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if not math.isfinite(number) or (kind is int and not number.is_integer()):
        return None
    return int(number) if kind is int else number


def require(option: str, value: T, holds: bool, rule: str) -> T:
    """Return value if `holds`, else raise: the option "must be {rule}"."""
    if not holds:
        raise BadWorldOptions(option, f"Option {option!r} must be {rule}, not {value!r}.")
    return value
