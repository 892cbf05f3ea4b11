"""Hooks of a search, and keywords shared out between them and the options."""

from __future__ import annotations

import typing
from dataclasses import FrozenInstanceError, fields

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import Restrictions
from sparsecv_mio.search.hooks import HookKeywords, Hooks, Keywords, merged
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.words import Method


def test_keywords_are_the_fields() -> None:
    assert list(typing.get_type_hints(HookKeywords)) == [field.name for field in fields(Hooks)]
    assert Keywords.__required_keys__ == frozenset()
    known = {field.name for kind in (SearchOptions, Hooks, Restrictions) for field in fields(kind)}
    assert set(Keywords.__optional_keys__) == known
    assert not {field.name for field in fields(SearchOptions)} & {field.name for field in fields(Hooks)}


def test_keywords_go_before_objects() -> None:
    base, watch = SearchOptions.of(method="grid", gap=0.5), Hooks(began=3.0)
    options, hooks = merged(base, watch, {"gap": 0.25, "trace": "here"}, "search")
    assert (options.method, options.gap, base.gap) == (Method.GRID, 0.25, 0.5)
    assert (hooks.began, hooks.trace, watch.trace) == (3.0, "here", None)
    assert merged(None, None, {}, "search") == (SearchOptions(), Hooks())


def test_what_is_no_keyword() -> None:
    with pytest.raises(TypeError, match=r"search\(\) got an unexpected keyword argument 'gapp'"):
        merged(None, None, {"gapp": 0.1}, "search")  # type: ignore[typeddict-unknown-key]
    with pytest.raises(BadInput, match="^gap: "):
        merged(None, None, {"gap": 1.0}, "search")


def test_hooks_never_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Hooks().stop = None  # type: ignore[misc]
