"""Two records compared field by field: what `same_records.py` means by equal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Leaf = str | float | bool | None
IGNORED = re.compile(r"(work|versions)\b.*|(.*\.)?(seconds|setup_seconds|wall_seconds|stages)\b.*")
OF_A_FIT = re.compile(r"nodes|cuts")  # the work in a record of `fit`
# only the second record has it: no difference
NEW = re.compile(r"(request\.|region|table\[\d+\]\.(status|standard_error)|data\.(weights|total_weight)).*")
MOST_FIELDS = 6  # that are named of a run


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Every number, word and flag of a record with the path of its field; a list has its length too."""
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from leaves(held, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield f"{path}[]", len(value)
        for i, held in enumerate(value):
            yield from leaves(held, f"{path}[{i}]")
    else:
        yield path, value


def compared(record: Mapping[str, Any] | None, ignored: re.Pattern[str]) -> dict[str, Leaf]:
    """The fields of a record that must not change; one field where there is no record."""
    if record is None:
        return {"record": "none"}
    of_a_fit = str(record.get("schema", "")).startswith("sparsecv-fit")
    return {
        path: leaf for path, leaf in leaves(record)
        if not ignored.fullmatch(path) and not (of_a_fit and OF_A_FIT.fullmatch(path))
    }  # fmt: skip


def apart(a: Leaf, b: Leaf) -> float:
    """Relative difference of two numbers; infinite for anything else that is not the same."""
    if type(a) is type(b) and a == b:
        return 0.0
    if any(isinstance(x, bool) or not isinstance(x, int | float) for x in (a, b)):
        return math.inf
    assert isinstance(a, int | float) and isinstance(b, int | float)
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0


@dataclass
class Difference:
    """How two records differ: fields with the number of places and an example, and the largest relative difference."""

    fields: Counter[str] = field(default_factory=Counter)
    example: dict[str, tuple[Leaf, Leaf]] = field(default_factory=dict)
    largest: float = 0.0
    new: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def note(self, path: str, a: Leaf, b: Leaf, far: float) -> None:
        """One place that differs."""
        name = re.sub(r"\[\d+\]", "[]", path)
        self.fields[name] += 1
        self.example.setdefault(name, (a, b))
        self.largest = max(self.largest, far)

    def words(self) -> str:
        """The fields, the most frequent first."""
        shown = [f"{name} x{count}" if count > 1 else name for name, count in self.fields.most_common(MOST_FIELDS)]
        return ", ".join([*shown, "..."] if len(self.fields) > MOST_FIELDS else shown)

    def examples(self) -> list[str]:
        """A line for each of the first fields."""
        shown = [name for name, _ in self.fields.most_common(MOST_FIELDS)]
        return [f"    {name}: {self.example[name][0]!r} -> {self.example[name][1]!r}" for name in shown]


def difference(before: dict[str, Leaf], after: dict[str, Leaf], tolerance: float) -> Difference:
    """Compare the fields of two records; numbers are equal up to a relative tolerance."""
    found = Difference()
    if ("record" in before) != ("record" in after):
        found.note("record", before.get("record", "written"), after.get("record", "written"), math.inf)
        return found
    for path in sorted(before.keys() | after.keys()):
        if path not in before and NEW.fullmatch(path):
            found.new.add(re.sub(r"\[\d*\].*", "", path))
            continue
        a, b = before.get(path, "(no such field)"), after.get(path, "(no such field)")
        far = apart(a, b)
        if far > tolerance:
            found.note(path, a, b, far)
    return found


def node_limit(record: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """MIOs and nodes of a record."""
    held = record or {}
    work = held.get("work", held)
    return work.get("mios"), work.get("nodes")
