"""Satellites: optional folders that the rest of the package (the core) does not import.

The core runs without the satellites. The `__init__` of a satellite lists its commands in `COMMANDS`, each with the
module that defines the command. The `__init__` may also define `WARM_UP`, a function that compiles the kernels of the
satellite, and `PROOF_CHECKER`, the module that checks a proof before the proof is stored. A module of an optional
folder (satellite) is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

SATELLITES = ("check", "oracles", "batch")


@cache
def installed_optional_packages() -> tuple[ModuleType, ...]:
    """Return the optional packages of `SATELLITES` whose folders exist."""
    modules = []
    for name in (f"{__package__}.{satellite}" for satellite in SATELLITES):
        try:
            modules.append(import_module(name))
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return tuple(modules)


def satellite_commands() -> dict[str, str]:
    """Return the commands of the satellites, each with its module."""
    return {
        command: f"{satellite.__name__}.{module}"
        for satellite in installed_optional_packages()
        for command, module in satellite.COMMANDS.items()
    }


def registered(name: str) -> Iterator[Any]:
    """Yield the functions or modules that satellites register under a name, such as `WARM_UP`.

    Parameters
    ----------
    name : str
        Variable of the satellites; its value is `MODULE` or `MODULE:FUNCTION`, with a module of the folder.
    """
    for satellite in installed_optional_packages():
        if place := getattr(satellite, name, ""):
            module, _, function = place.partition(":")
            loaded = import_module(f"{satellite.__name__}.{module}")
            yield getattr(loaded, function) if function else loaded
