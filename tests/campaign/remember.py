"""What does not depend on an alteration is computed once for all alterations of one record or proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

Place = tuple[Any, str]  # a module or a class, and the name of a function in it


def once(function: Callable[..., Any], key: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which gives again what it gave, or raises what it raised, for words of the same key."""
    known: dict[Any, tuple[Any, Exception | None]] = {}

    def remembered(*words: Any, **named: Any) -> Any:
        at = key(*words, *named.values())
        if at not in known:
            try:
                known[at] = function(*words, **named), None
            except Exception as error:
                known[at] = None, error
        found, error = known[at]
        if error is not None:
            raise error
        return found

    return remembered


@contextmanager
def remembering(places: Mapping[Place, Callable[..., Any]]) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Compute some functions once, by their keys; what is yielded calls something with them as they are."""
    whole = {place: getattr(*place) for place in places}
    with pytest.MonkeyPatch.context() as patch:
        for place, key in places.items():
            patch.setattr(*place, once(whole[place], key))

        def afresh(question: Callable[[], Any]) -> Any:
            with pytest.MonkeyPatch.context() as plain:
                for place, function in whole.items():
                    plain.setattr(*place, function)
                return question()

        yield afresh
