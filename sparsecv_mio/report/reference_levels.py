"""Coefficients of whole factors against a level for reference, as a table shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import first_named, quoted_name
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.model_space import Restrictions, names_joined, word_of_factor
from sparsecv_mio.report.layout import say

if TYPE_CHECKING:
    from rich.console import Console

Shown = TypeVar("Shown")
References = Mapping[str, Sequence[str]]  # by level, all columns of its factor


def reference_levels(names: Sequence[str], dataset: Dataset, restrictions: Restrictions) -> References:
    """Return the columns of the factors of some levels.

    Parameters
    ----------
    names : sequence of str
        One level a factor: `city=Oslo`.
    dataset : Dataset
    restrictions : Restrictions
        That say what counts as one.

    Raises
    ------
    BadInput
        For what is no level, a second level of a factor, or a factor of which a row has no level, or several.
    """
    if not names:
        return {}
    factors, levels_of_factors = restrictions.within(dataset.names).count, dict[str, Sequence[str]]()
    for name in names:
        columns = next((some for some in factors if name in some), None)
        if columns is None:
            levels_there = [column for some in factors for column in some]
            give = f"its levels are {first_named(list(map(quoted_name, levels_there)))}"
            give = did_you_mean(name, levels_there) or f": {give if factors else 'it goes with --count factors'}"
            raise BadInput(f"reference: {name!r} is no level of a factor that is whole{give}")
        if columns in levels_of_factors.values():
            raise BadInput(f"reference: {name!r} is the second level of {word_of_factor(columns)!r}: give one a factor")
        levels = dataset.X[:, [dataset.names.index(column) for column in columns]]
        if not np.all((levels == 0.0) | (levels == 1.0)) or not np.all(levels.sum(axis=1) == 1.0):
            raise BadInput(f"reference: rows without a level of {word_of_factor(columns)!r}, or with more than one: "
                           "its coefficients are against a level that is out, or are of no levels")  # fmt: skip
        levels_of_factors[name] = columns
    return levels_of_factors


def against(record: Shown, references: References) -> Shown:
    """Return a record as it is shown: the level for reference at 0, its coefficient in the intercept.

    Predictions stay as they are, as every row has one level of a factor.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
    references : mapping of str to sequence of str
    """
    if not references:
        return record
    if isinstance(record, PathRecord):
        return replace(record, path=tuple(_shifted(row, references) for row in record.path))
    return _shifted(record, references)


def _shifted(model: Any, references: References) -> Any:
    coefficients, intercept = dict(model.coefficients), model.intercept
    for level, columns in references.items():
        shift = coefficients.get(level, 0.0)
        coefficients |= {name: coefficients[name] - shift for name in columns if name in coefficients}
        intercept += shift
    return replace(model, coefficients=coefficients, intercept=intercept)


def printed(
    printer: Callable[[Console, Shown], None], record: Shown, references: References
) -> Callable[[Console], None]:
    """Return what prints a record with its coefficients against levels, and says so.

    Parameters
    ----------
    printer : callable
        Prints a record on a console.
    record : Record, PathRecord or FitRecord
    references : mapping of str to sequence of str
    """

    def show(console: Console) -> None:
        printer(console, against(record, references))
        if references:
            levels = names_joined(list(references))
            say(console, f"coefficients against {levels}, whose effect the intercept has; the record has deviations")

    return show
