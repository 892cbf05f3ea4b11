"""The reference level of each factor of a model, determined from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import abbreviate_list, quoted_name
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.model_space import Restrictions, word_of_factor

References = Mapping[str, Sequence[str]]  # all columns of the factor, by level


def reference_levels(names: Sequence[str], dataset: Dataset, restrictions: Restrictions) -> References:
    """Return the columns of the factors of the given reference levels.

    Parameters
    ----------
    names : sequence of str
        Reference levels, one for each factor, such as `city=Oslo`.
    dataset : Dataset
        The data whose columns are the levels.
    restrictions : Restrictions
        The restrictions that state which columns count as one feature.

    Raises
    ------
    BadInput
        If a name is not a level, two levels belong to one factor, or a row does not have exactly one level of a factor.
    """
    if not names:
        return {}
    factors, levels_of_factors = restrictions.resolve_names(dataset.names).count, dict[str, Sequence[str]]()
    for name in names:
        columns = next((some for some in factors if name in some), None)
        if columns is None:
            levels_there = [column for some in factors for column in some]
            give = f"its levels are {abbreviate_list(list(map(quoted_name, levels_there)))}"
            give = (
                did_you_mean(name, levels_there) or f": {give if factors else 'this option requires --count factors'}"
            )
            raise BadInput(f"reference: {name!r} is not a level of a factor that counts as one feature{give}")
        if columns in levels_of_factors.values():
            raise BadInput(
                f"reference: {name!r} is the second level of {word_of_factor(columns)!r}; give one level for each "
                "factor"
            )
        levels = dataset.X[:, [dataset.names.index(column) for column in columns]]
        if not np.all((levels == 0.0) | (levels == 1.0)) or not np.all(levels.sum(axis=1) == 1.0):
            raise BadInput(
                f"reference: every row needs exactly one level of {word_of_factor(columns)!r}, but some rows have none "
                "or "
                "several; leave the option out for this factor"
            )
        levels_of_factors[name] = columns
    return levels_of_factors
