"""Worlds by name: those that come with veldt, and anybody's by "package.module:factory".

A factory takes its options as keyword arguments and returns a `World` that is loaded but not yet
warm. Modules are imported only when their world is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final, cast

from pipeline.options import BadWorldOptions, call_with_options
from pipeline.service import World

__all__ = ["WORLDS", "BadWorldOptions", "UnknownWorld", "load_world"]

WORLDS: Final[Mapping[str, str]] = {
    "tiny": "pipeline.tiny.world:make_world",
    "marker": "pipeline.testworlds.marker:make_world",
    "slow": "pipeline.testworlds.slow:make_world",
    "failing": "pipeline.testworlds.failing:make_world",
    "prompt": "pipeline.testworlds.prompt:make_world",
}


class UnknownWorld(LookupError):
    """There is no world of that name."""

    code = "unknown_world"

    def __init__(self, name: str, message: str) -> None:
        """Say in one sentence what was looked for."""
        super().__init__(message)
        self.name = name

    def __str__(self) -> str:
        """Return the sentence, without the quotes that a LookupError would add."""
        return str(self.args[0])


def load_world(name: str, options: Mapping[str, object] | None = None) -> World:
    """Load a world by name; raises `UnknownWorld`, `BadWorldOptions`, or what its factory raises.

    Loading reads weights and checks them; `World.warm_up` is the caller's next step.
    """
    return call_with_options(_factory(name), options or {})


def _factory(name: str) -> Callable[..., World]:
    target = WORLDS.get(name, name)
    module_name, separator, attribute = target.partition(":")
    if not separator or not module_name or not attribute:
        known = ", ".join(WORLDS)
        raise UnknownWorld(
            name, f'There is no world {name!r}; there are {known}, or "package.module:factory".'
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise  # the world's own module lacks something: that fault is not ours to rename
        raise UnknownWorld(
            name,
            f"World {name!r}: there is no module {missing.name!r} on Python's path "
            "(PYTHONPATH=. adds this folder).",
        ) from None
    factory = getattr(module, attribute, None)
    if not callable(factory):
        raise UnknownWorld(name, f"World {name!r}: {module_name!r} has no factory {attribute!r}.")
    return cast(Callable[..., World], factory)
