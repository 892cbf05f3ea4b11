"""Checks that all option classes share. Messages call an option by its name on the command line without the dashes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.restrictions import NONE, RESTRICTIONS, RestrictionKeywords, Restrictions
from sparsecv_mio.units import MOST_THREADS
from sparsecv_mio.words import one_of, word_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Made = TypeVar("Made", bound=DataclassInstance)


GRID = ("gammas", "taus")  # keywords of every function that searches one


class EffortKeywords(RestrictionKeywords, TypedDict, total=False):
    """Options of every run as they may be given by keyword: words as text in any letters."""

    scale: str
    intercept: str
    gap: float
    time_limit: float | None
    threads: int | None
    restrictions: Restrictions


def shown(field: str) -> str:
    """Return the name of an option as messages have it."""
    return field.replace("_", "-")


def settle_words(options: DataclassInstance) -> None:
    """Turn the words of frozen options, given as text in any letters, into members of their enumerations.

    Raises
    ------
    BadInput
        For an unknown word.
    """
    for field in fields(options):
        if isinstance(field.default, StrEnum):
            word = word_of(type(field.default), getattr(options, field.name), shown(field.name))
            object.__setattr__(options, field.name, word)


def with_keywords(made: Made, keywords: Mapping[str, object], function: str, near: Iterable[str] = ()) -> Made:
    """Return options with some fields that were given by keyword, checked anew; those of the restrictions too.

    Parameters
    ----------
    made : dataclass
        Frozen options.
    keywords : mapping of str to object
    function : str
        Who was called, for the error.
    near : iterable of str
        Its other keywords, which may have been meant.

    Returns
    -------
    dataclass
        Of the same class.

    Raises
    ------
    TypeError
        For a keyword that is no field, as Python does.
    BadInput
        For what the options refuse.
    """
    known = {field.name for field in fields(made)}
    inside = RESTRICTIONS if "restrictions" in known else ()
    inner: dict[str, Any] = {name: keywords[name] for name in inside if name in keywords}
    given = {name: value for name, value in keywords.items() if name not in inner}
    for name in given:
        if name not in known:
            meant = did_you_mean(name, (*near, *inside, *sorted(known)))
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
    if inner:
        whole = given.get("restrictions", getattr(made, "restrictions", NONE))
        given["restrictions"] = replace(whole if isinstance(whole, Restrictions) else NONE, **inner)
    return replace(made, **given)


def check_formulation(backend: str, formulation: str | None) -> str | None:
    """Return a model of a backend by its name; None, its first, passes."""
    if formulation is None:
        return None
    return one_of(formulation, get_backend(backend).capabilities.formulations, f"formulation of {backend}")


def check_effort(gap: float, time_limit: float | None, threads: int | None) -> None:
    """Check how long a run may take.

    Parameters
    ----------
    gap : float
        Relative gap, in [0, 1).
    time_limit : float or None
        Seconds, positive and finite.
    threads : int or None
        1 to 4096.

    Raises
    ------
    BadInput
        The message names the option.
    """
    for field, value in (("gap", gap), ("time-limit", 1.0 if time_limit is None else time_limit)):
        if not isinstance(value, Real):
            raise BadInput(f"{field}: {str(value)[:30]!r} is no number")
    if not 0.0 <= gap < 1.0:
        raise BadInput(f"gap: {gap:g} is out of range, a relative gap is at least 0 and below 1")
    if time_limit is not None and not 0.0 < time_limit < math.inf:
        raise BadInput(f"time-limit: {time_limit:g} is out of range, give a positive number of seconds")
    check_whole("threads", threads, 1, MOST_THREADS)


def check_limits(limits: Limits) -> None:
    """Raise `BadInput` for limits of one MIO out of range; infinite seconds and nodes are none."""
    check_effort(limits.gap, None if limits.seconds == math.inf else limits.seconds, limits.threads)
    check_whole("node_limit", None if limits.nodes == math.inf else limits.nodes, 1)


def check_whole(field: str, value: float | None, least: int, most: int = 10**18) -> None:
    """Check a whole number.

    Parameters
    ----------
    field : str
        Name of the option.
    value : float or None
        None, the option left out, passes.
    least, most : int
        The range, both ends included.

    Raises
    ------
    BadInput
        The message names the option.
    """
    if value is None:
        return
    if not isinstance(value, Real):
        raise BadInput(f"{shown(field)}: {str(value)[:30]!r} is no whole number")
    if not least <= value <= most or value != int(value):
        room = f"at most {most:,}" if value > most else f"a whole number of at least {least}"
        raise BadInput(f"{shown(field)}: {value} is out of range, give {room}")
