"""Command lines in which a changed option replaces the one of a base; a repeated option is refused."""

from __future__ import annotations

from collections.abc import Sequence


def changed(base: Sequence[object], changes: Sequence[object]) -> list[str]:
    """The words of a command line without the options that the changes give, each with its value, then the changes."""
    words = [str(word) for word in base]
    for option in map(str, changes):
        if option.startswith("--") and option in words:
            place = words.index(option)
            del words[place : place + 2]
    return [*words, *map(str, changes)]
