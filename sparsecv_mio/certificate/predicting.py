"""Predictions for new rows: the coefficients of a record are applied to the columns of the same names."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, unmask
from sparsecv_mio.certificate import json_text, parts
from sparsecv_mio.data.dataset import KEPT, Dataset
from sparsecv_mio.data.number_format import POINT, parse_cells
from sparsecv_mio.digits import plural, several
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.targets import Loss, TargetColumns
from sparsecv_mio.units import ROUNDING
from sparsecv_mio.words import Missing

FEW_DIGITS = 1e-8  # rounding of predictions, as a share of the largest one, from which a warning states it


class LinearModel:
    """A record that predicts: coefficients by column name, in units of the file."""

    coefficients: json_text.Coefficients
    intercept: json_text.Number
    data: parts.DataInfo

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """Loss of the fits."""

    @property
    def predictor(self) -> Any:
        """The object with the coefficients and the intercept that predict."""
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions for new rows.

        Parameters
        ----------
        X : pandas.DataFrame, table with `__arrow_c_stream__`, Dataset, path or (n, p) array_like
            New rows. A frame, another table, a `Dataset` or a file, which is read with the options of the record, needs
            the columns of the model by name, in any order; an array needs all columns of the data in their order.

        Returns
        -------
        (n,) array
            Predictions, one for each row of `X` in order: in units of the target, with logistic loss the probability of
            the positive class, with Poisson loss the expected count. If the model has exposures or offsets, `X` needs
            their columns. With the index of a frame: `pd.Series(record.predict(frame), frame.index)`. If rows with
            missing cells were dropped from the fit, such rows of a frame have the prediction NaN.

        Raises
        ------
        BadInput
            If a column is missing or the array is invalid; the message names the problem.
        """
        model = self.predictor
        wanted = list(model.coefficients)
        columns = TargetColumns.from_fields(self.data).predictor_columns
        numbers, offsets = read_columns_and_offsets(self.data, X, wanted, columns)
        slopes = np.array([model.coefficients[name] for name in wanted])
        predictors = linear_predictors(numbers, wanted, slopes, model.intercept)
        return INVERSE_LINKS[self.loss.target.link](predictors + offsets)


def linear_predictors(
    rows: Any, names: Sequence[str], coefficients: FloatArray, intercept: float, caller: int = 3
) -> FloatArray:
    """Return `rows @ coefficients + intercept`, and warn if large terms cancel and leave few accurate digits.

    Parameters
    ----------
    rows : (n, p) array or sparse array
        Rows.
    names : sequence of p str
        Names of the columns.
    coefficients : (p,) array
        Coefficients.
    intercept : float
        Intercept.
    caller : int
        Number of calls between the user and the warning.

    Examples
    --------
    >>> linear_predictors(np.array([[1.0, 2.0]]), "ab", np.array([3.0, 4.0]), 5.0).tolist()
    [16.0]
    """
    predictors, used = np.asarray(rows @ coefficients + intercept), np.flatnonzero(coefficients)
    terms = abs(rows[:, used])
    lost = ROUNDING * float(np.fmax.reduce(terms @ np.abs(coefficients[used]) + abs(intercept), initial=0.0))
    if FEW_DIGITS * float(np.fmax.reduce(np.abs(predictors), initial=0.0)) < lost < np.inf:
        reach = np.array([terms[:, [k]].max() for k in range(len(used))])
        j = int(np.nanargmax(reach * np.abs(coefficients[used])))
        words = (
            f"predictions are accurate to about {lost:.0e} only, because large terms cancel: {names[used[j]]!r} has "
            f"values up to {reach[j]:.0e}; subtract a constant from such columns before the fit"
        )
        warnings.warn(words, SparseCVWarning, stacklevel=caller)
    return predictors


def probabilities(predictors: FloatArray) -> FloatArray:
    """Return `1 / (1 + exp(-m))` of linear predictors.

    Examples
    --------
    >>> probabilities(np.array([0.0, -800.0])).tolist()
    [0.5, 0.0]
    """
    return np.asarray(np.exp(-np.logaddexp(0.0, -predictors)))


INVERSE_LINKS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "identity": np.asarray, "logit": probabilities, "log": np.exp,
}  # fmt: skip


def expand_coefficients(coefficients: Mapping[str, float], names: Sequence[str]) -> FloatArray:
    """Return the coefficients of a model in the order of all columns; raise `KeyError` for an unknown name.

    Examples
    --------
    >>> expand_coefficients({"b": 2.0}, ["a", "b"]).tolist()
    [0.0, 2.0]
    """
    place, coefficients_by_column = {name: j for j, name in enumerate(names)}, np.zeros(len(names))
    coefficients_by_column[[place[name] for name in coefficients]] = list(coefficients.values())
    return coefficients_by_column


def read_columns(data: parts.DataInfo, X: Any, wanted: list[str]) -> FloatArray:
    """Return selected columns of new rows as finite numbers.

    Parameters
    ----------
    data : DataInfo
        Description of the data of the model.
    X : frame, Dataset, path or array_like
        New rows as for the `predict` of a record.
    wanted : list of str
        Names of the columns.

    Raises
    ------
    BadInput
        As for `predict`.
    """
    X = as_frame(unmask(X))
    if isinstance(X, str | Path):
        new = _read_file(data, X, wanted)
        whole = np.full((new.data.n + new.n_dropped_rows, len(wanted)), np.nan)
        whole[new.data.places] = _select_columns(new.data.X, list(new.data.names), wanted)
        _warn_of_dropped_rows(new.n_dropped_rows)
        return whole
    rows: Dataset | None = X if isinstance(X, Dataset) else None
    learnt = parts.applied_reading(data.reading) if hasattr(X, "iloc") else None
    if learnt is not None and (
        learnt.how.na is Missing.DROP
        or learnt.date_forms
        or not set(wanted).issubset(map(str, X.columns))
        or (learnt.how.na.uses_imputation and X[wanted].isna().to_numpy().any())
    ):
        rows = find_implementation("read_new_frame")(
            X, wanted, learnt
        )  # it has text values or missing cells, as the file had
    table, header = (X, getattr(X, "columns", data.names)) if rows is None else (rows.X, rows.names)
    numbers = _select_columns(np.asarray(table), [str(name) for name in header], wanted)
    if rows is None or rows is X or KEPT not in rows.aux:
        return numbers
    whole = np.full((len(X), len(wanted)), np.nan)
    whole[rows.aux[KEPT]] = numbers
    _warn_of_dropped_rows(len(X) - len(numbers))
    return whole


def as_frame(X: Any) -> Any:
    """Return a table of any package as a frame of pandas, other rows unchanged."""
    is_table = hasattr(X, "columns") or hasattr(type(X), "__arrow_c_stream__")
    return find_implementation("as_pandas")(X) if is_table else X


def _warn_of_dropped_rows(n_rows: int) -> None:
    """Warn about rows with missing values, which have the prediction NaN."""
    if n_rows:
        message = f"{several(n_rows, 'row')} with a missing value in a column of the model: the prediction is NaN"
        warnings.warn(f'{message}, because the fit dropped such rows (na="drop")', SparseCVWarning, stacklevel=4)


def _read_file(data: parts.DataInfo, path: str | Path, wanted: list[str], aux: tuple[str, ...] = ()) -> Any:
    """Return the new rows of a file; warn about lines that were skipped as in the data of the record."""
    learnt = parts.applied_reading(data.reading)
    new = find_implementation("read_new_rows")(path, tuple(wanted) or data.names, "", learnt, None, aux)
    if new.line_warning:
        warnings.warn(f"{new.line_warning}; to choose the rows, pass a frame", SparseCVWarning, stacklevel=4)
    return new


def read_columns_and_offsets(
    data: parts.DataInfo, X: Any, wanted: list[str], columns: TargetColumns
) -> tuple[FloatArray, FloatArray | float]:
    """Return selected columns of new rows, and the offsets of the rows; 0 for a model without offsets.

    Parameters
    ----------
    data, X, wanted
        Arguments as for `read_columns`.
    columns : TargetColumns
        Columns of exposures and offsets.
    """
    if not columns.names:
        return read_columns(data, X, wanted), 0.0
    if isinstance(X, str | Path):
        X = _read_file(data, X, wanted, columns.names).data
    if isinstance(X, Dataset) and X.row_exposure is not None:
        return read_columns(data, X, wanted), X.row_offsets(slice(0, X.n))
    X = as_frame(unmask(X))
    offsets: FloatArray | float = 0.0
    for option, name in columns._asdict().items():
        if name is None:
            continue
        if isinstance(X, Dataset) and name in X.aux:
            cells = X.aux[name]
        elif hasattr(X, "iloc") and name in map(str, X.columns):
            cells = X[name]
        else:
            raise BadInput(
                f"{option}: the model needs the column {name!r} of {option}s; give a file or a frame that has this "
                "column"
            )
        numbers = _read_offsets(data, option, name, cells)
        offsets = offsets + (np.log(numbers) if option == "exposure" else numbers)
    return read_columns(data, X, wanted), offsets


def _read_offsets(data: parts.DataInfo, option: str, name: str, column: Any) -> FloatArray:
    """Return exposures or offsets of new rows; raise `BadInput` that names the first row without a valid number."""
    cells: Any = np.asarray(column)
    numbers = cells.astype(np.float64) if cells.dtype.kind in "biuf" else None
    if numbers is None:
        learnt = parts.applied_reading(data.reading)
        cells, _ = parse_cells(cells.tolist(), POINT if learnt is None else learnt.how.number_format)
        numbers = np.array([float(cell) if _is_number(cell) else np.nan for cell in cells])
    wrong = np.flatnonzero(~(((numbers > 0.0) | (option != "exposure")) & np.isfinite(numbers)))
    if wrong.size:
        row = int(wrong[0])
        is_word = isinstance(cells[row], str) and not _is_number(cells[row]) and cells[row].strip()
        fault = f"{cells[row]!r:.40}" if is_word else "empty" if np.isnan(numbers[row]) else f"{numbers[row]:g}"
        where, remedy = f"column {name!r} is {fault} in row {row + 1}", "a number above 0"
        raise BadInput(f"{option}: {where}; give {remedy if option == 'exposure' else 'a number'}, or remove the row")
    return numbers


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _select_columns(table: NDArray[Any], header: list[str], wanted: list[str]) -> FloatArray:
    """Return the wanted columns of a table as finite numbers."""
    if table.ndim != 2 or table.shape[1] != len(header):
        one_row = "; for one row give X.reshape(1, -1)" if table.shape == (len(header),) else ""
        raise BadInput(
            f"X has the shape {table.shape}; give a table or an array of rows with {len(header)} columns, those that "
            f"the model was fitted to{one_row}"
        )
    missing = [repr(name) for name in wanted if name not in header]
    if missing:
        raise BadInput(
            f"the model needs the {plural(len(missing), 'column')} {', '.join(missing)}; add the missing columns"
        )
    try:
        numbers = table[:, [header.index(name) for name in wanted]].astype(np.float64)
    except (TypeError, ValueError) as error:
        for name in wanted:
            for row, cell in enumerate(table[:, header.index(name)].tolist(), start=1):
                if not _is_number(cell):
                    raise BadInput(
                        f"column {name!r} holds {cell!r:.40} in row {row}; give a number, as in the data of the model"
                    ) from None
        raise BadInput(f"X must have numbers only: {error}".splitlines()[0]) from None
    rows, columns = np.nonzero(~np.isfinite(numbers))
    if rows.size:
        raise BadInput(
            f"column {wanted[columns[0]]!r} has no finite number in row {rows[0] + 1}; fill it in, or drop the row"
        )
    return numbers
