"""Every field of a record has its treatment, in the manual and on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from repository import DOCS

from sparsecv_mio.certificate.checked_fields import (
    COMMON,
    ENUMERATE_GRID,
    ENUMERATE_PAIR,
    FIT,
    NEAR,
    PATH,
    RECORD,
    EnumerationLevel,
    Treatment,
    grouped,
    part_of,
)
from sparsecv_mio.certificate.parts import ChosenFold, ChosenFolds
from sparsecv_mio.certificate.records import CommonRecord, FitRecord, NearRecord, PathRecord, Record

KINDS: list[tuple[type, Mapping[str, Treatment]]] = [
    (Record, RECORD), (PathRecord, PATH), (FitRecord, FIT), (NearRecord, NEAR), (CommonRecord, COMMON),
]  # fmt: skip


def field_paths(schema: Any, prefix: str = "") -> Iterator[str]:
    """Paths of all fields of a dataclass, its inner dataclasses walked, `[]` for the items of a list.

    Examples
    --------
    >>> list(field_paths(ChosenFold, "chosen_folds[]."))
    ['chosen_folds[].fold', 'chosen_folds[].support', 'chosen_folds[].error', 'chosen_folds[].decided']
    """
    hints = get_type_hints(schema)
    for field in fields(schema):
        path, hint = f"{prefix}{field.name}", hints[field.name]
        if get_origin(hint) in (Union, UnionType):
            hint = next(part for part in get_args(hint) if part is not type(None))
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        if hint is ChosenFolds:
            path, hint = f"{path}[]", ChosenFold
        elif get_origin(hint) is tuple and is_dataclass(get_args(hint)[0]):
            path, hint = f"{path}[]", get_args(hint)[0]
        if is_dataclass(hint):
            yield from field_paths(hint, f"{path}.")
        else:
            yield path


def markdown(table: Mapping[str, Treatment]) -> str:
    """The table as it stands in docs/cli.md: fields of the same treatment in one row."""
    groups: dict[Treatment, list[str]] = {}
    for path, treatment in table.items():
        groups.setdefault(treatment, []).append(f"`{path}`")
    lines = [f"| fields | p <= {ENUMERATE_GRID} | p <= {ENUMERATE_PAIR} | beyond |", "|---|---|---|---|"]
    for treatment, paths in groups.items():
        words = [treatment.at(level).removeprefix("bounded: ") for level in EnumerationLevel]
        cells = words if len(set(words)) > 1 else [words[0], "same", "same"]
        lines.append(f"| {', '.join(paths)} | {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.mark.parametrize(("schema", "table"), KINDS)
def test_every_field_has_its_treatment(schema: type, table: dict[str, object]) -> None:
    assert set(field_paths(schema)) == set(table)


@pytest.mark.parametrize("table", [table for _, table in KINDS])
def test_treatments_stand_in_the_manual_and_on_the_screen(table: dict[str, object]) -> None:
    assert markdown(table) in (DOCS / "cli.md").read_text()  # type: ignore[arg-type]
    for level in EnumerationLevel:
        listed = [name for _, names in grouped(table, level) for name in names]  # type: ignore[arg-type]
        assert {part_of(name) for name in listed} == {part_of(name) for name in table}
        assert len(set(listed)) == len(listed)
    assert "descent" not in {
        part_of(name) for _, names in grouped(RECORD, EnumerationLevel.GRID, ["descent"]) for name in names
    }
