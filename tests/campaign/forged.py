"""One thing altered in a record that is right: where, and how."""

from __future__ import annotations

import json
import marshal
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Path = tuple[str | int, ...]

# Free of claims: what the run cost and was told, and what no data decide (docs/cli.md: "only read").
SILENT = re.compile(
    r"^(work|warnings|versions|advice|schema|nodes|cuts|seconds|setup_seconds|stop|raw_status|backend|formulation)"
    r"|^request\.(time_limit|threads|method|method_used|backend|formulation|engine|solver_option|mio_budget|refine|tau_step|oracles)"
    r"|^data\.reading\.|^nested\.folds\[\]\.(cv_error|status)|^refined\.gamma"
)
LOWER, UPPER = re.compile(r"(^|\.)lower$"), re.compile(r"(^|\.)upper$")
GAMMA = re.compile(r"(^|\.)gamma$|\.gammas\[\]$|from_gamma$")
MODEL = re.compile(r"(^|\.)coefficients\.")
SMALL, PLAIN, LARGE = 1e-6, 1e-5, 1e-3  # parts by which a bound, any other number, and some coefficients are altered


@dataclass(frozen=True)
class Forgery:
    """What was done to which field; `beside`: what stood in the same object, of a number."""

    field: str
    how: str
    text: str
    beside: Any = None


@cache
def silent(field: str) -> bool:
    """Whether a field claims nothing."""
    return SILENT.search(field) is not None


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, word, flag and empty list of a record."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Every list of a record that is not empty."""
    if isinstance(value, list) and value:
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from lists(inner, (*path, key))


def field_of(path: Path) -> str:
    """The path as docs/file_formats.md writes it, `table[].lower`."""
    words = "".join("[]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")


def parent(record: Any, path: Path) -> Any:
    """What holds the field."""
    for part in path[:-1]:
        record = record[part]
    return record


def put(record: Any, path: Path, value: Any) -> str:
    """The text of a record with one value replaced."""
    changed = marshal.loads(marshal.dumps(record))  # a tenth of the time of deepcopy
    parent(changed, path)[path[-1]] = value
    return json.dumps(changed)


def other_word(word: str, rng: np.random.Generator, names: list[str]) -> str:
    """A word of the same sort."""
    sorts = (names, ["proved", "limit"], ["decided", "excluded", "open"], ["length", "variance", "none"],
             ["fold", "global", "none"], ["start", "gamma", "line"])  # fmt: skip
    for sort in sorts:
        if word in sort and len(sort) > 1:
            return str(rng.choice([one for one in sort if one != word]))
    at = int(rng.integers(len(word))) if word else 0
    return f"{word[:at]}{'1' if word[at : at + 1] != '1' else '2'}{word[at + 1 :]}"


def number(field: str, value: float, rng: np.random.Generator) -> float | None:
    """Another number; None where any nearby one is as good."""
    if GAMMA.search(field):
        return float(np.nextafter(value, math.inf if rng.random() < 0.5 else 0.0))
    if LOWER.search(field):
        return value * (1.0 + SMALL) if value > 0.0 else None
    if UPPER.search(field):
        return value * (1.0 - SMALL) if value > 0.0 else None
    if value == 0.0:
        return None
    part = LARGE if MODEL.search(field) and rng.random() < 0.5 else PLAIN
    return value * (1.0 + part * float(rng.choice([-1.0, 1.0])))


def forgery(record: dict[str, Any], rng: np.random.Generator) -> Forgery | None:
    """Alter one thing; None where what was drawn has nothing to alter that matters."""
    names = list(record["data"]["names"])
    if rng.random() < 0.2:
        found = [(path, value) for path, value in lists(record) if not silent(field_of(path))]
        path, value = found[int(rng.integers(len(found)))]
        return of_list(record, path, value, rng)
    found = [(path, value) for path, value in leaves(record) if not silent(field_of(path))]
    path, value = found[int(rng.integers(len(found)))]
    field = field_of(path)
    if isinstance(value, bool):
        return Forgery(field, f"{value} -> {not value}", put(record, path, not value))
    if isinstance(value, int):
        new = value + int(rng.choice([-1, 1]))
        return Forgery(field, f"{value} -> {new}", put(record, path, new))
    if isinstance(value, float):
        moved = number(field, value, rng)
        if path[-1] == "standard_error":  # of errors that are compared to a millionth of themselves
            moved = value + PLAIN * parent(record, path).get("cv_error", record["cv_error"])
        if moved is None or moved == value:
            return None
        return Forgery(field, f"{value!r} -> {moved!r}", put(record, path, moved), parent(record, path))
    if isinstance(value, str):
        word = other_word(value, rng, names)
        return Forgery(field, f"{value} -> {word}", put(record, path, word))
    return None


def of_list(record: dict[str, Any], path: Path, value: list[Any], rng: np.random.Generator) -> Forgery | None:
    """Leave an entry out, name one twice, or exchange two that differ."""
    field, at = field_of(path), int(rng.integers(len(value)))
    way = str(rng.choice(["dropped", "twice", "exchanged"]))
    if way == "dropped":
        return Forgery(field, f"entry {at} dropped", put(record, path, value[:at] + value[at + 1 :]))
    if way == "twice":
        return Forgery(field, f"entry {at} twice", put(record, path, [*value, value[at]]))
    other = int(rng.integers(len(value)))
    if value[at] == value[other]:
        return None
    mixed = list(value)
    mixed[at], mixed[other] = value[other], value[at]
    return Forgery(field, f"entries {at} and {other} exchanged", put(record, path, mixed))
