"""Methods of records: predictions for new rows, figures and reports.

The coefficients of a record are applied to the columns of the same names. This module does not import the modules that
draw figures, write reports and compute prediction intervals. It calls their functions by name
(:mod:`sparsecv_mio.implementations`).
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray, unmask
from sparsecv_mio.certificate import parts
from sparsecv_mio.data.dataset import KEPT, Dataset, describe_value_out_of_range, find_values_out_of_range
from sparsecv_mio.data.number_format import POINT, parse_cells
from sparsecv_mio.data.reading_options import STRICT, Applied
from sparsecv_mio.digits import plural, several
from sparsecv_mio.errors import BadInput, SparseCVWarning, name_index_labels, parse_keyword
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.targets import NO_TARGET_COLUMNS, Loss, TargetColumns
from sparsecv_mio.units import ROUNDING
from sparsecv_mio.words import InvalidRows, Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sparsecv_mio.arrays import FloatArray


FEW_DIGITS = 1e-8  # rounding of predictions, as a share of the largest one, from which a warning states it


class LinearModel:
    """A record that predicts: coefficients by column name, in units of the file."""

    coefficients: parts.Coefficients
    intercept: parts.Number
    data: parts.DataInfo

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """Loss of the fits."""

    @property
    def predictor(self) -> Any:
        """The object with the coefficients and the intercept that predict."""
        return self

    def predict(self, X: Any, invalid_rows: str = "error") -> FloatArray:
        """Return predictions for new rows.

        Parameters
        ----------
        X : pandas.DataFrame, table with `__arrow_c_stream__`, Dataset, path or (n, p) array_like
            New rows. A frame, another table, a `Dataset` or a file needs the columns of the model by name, in any
            order; a file is read with the options of the record. An array needs all columns of the data in their order.
        invalid_rows : {"error", "na"}
            Treatment of invalid rows: an error, or the prediction NaN and a warning. A row is invalid if it has an
            unknown level, a text instead of a number, an invalid exposure or offset, or a missing cell that is not
            imputed. `na` requires a frame or a file.

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
        if parse_keyword(InvalidRows, invalid_rows, "invalid_rows") is InvalidRows.NA:
            return predict_valid_rows(self.data, X, wanted, columns, self.predict)
        numbers, offsets = read_columns_and_offsets(self.data, X, wanted, columns)
        slopes = np.array([model.coefficients[name] for name in wanted])
        predictors = linear_predictors(numbers, wanted, slopes, model.intercept)
        return INVERSE_LINKS[self.loss.target.link](predictors + offsets)


def predict_valid_rows(
    data: parts.DataInfo, X: Any, wanted: list[str], columns: TargetColumns, predict: Callable[[Dataset], FloatArray]
) -> FloatArray:
    """Return predictions of the valid rows of a file or frame, and NaN for the other rows, with a warning.

    Parameters
    ----------
    data, X, wanted
        Arguments as for `read_columns`.
    columns : TargetColumns
        Columns of exposures and offsets.
    predict : callable
        Function that predicts the valid rows.
    """
    X, learnt = as_frame(unmask(X)), parts.applied_reading(data.reading) or Applied(STRICT, data.names)
    learnt = replace(learnt, invalid={})
    if isinstance(X, str | Path):
        rows = _read_file(learnt, X, tuple(wanted) or data.names, columns).data
    elif hasattr(X, "iloc"):
        rows = find_implementation("read_new_frame")(X, tuple(wanted) or data.names, learnt, columns.names)
    else:
        raise BadInput("invalid_rows: 'na' requires a frame or a file; give one of these")
    rows = drop_rows_without_offset(data, rows, columns)
    predicted, reading = predict(rows), rows.reading or learnt
    _warn_of_dropped_rows(reading.left_out - len(reading.invalid or ()), reading.invalid_rows_warning)
    return _place_among_dropped_rows(predicted, rows)


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
    rows = read_new_dataset(data, X, wanted)
    table, header = (rows.X, rows.names) if isinstance(rows, Dataset) else (X, getattr(X, "columns", data.names))
    with name_index_labels(X):
        numbers = _select_columns(np.asarray(table), [str(name) for name in header], wanted)
    if rows is X:
        return numbers
    _warn_of_dropped_rows(rows.n_dropped_rows)
    return _place_among_dropped_rows(numbers, rows)


def _place_among_dropped_rows(values: FloatArray, rows: Dataset) -> FloatArray:
    """Return values of the rows of a data set at their places among all rows that were read; NaN for dropped rows."""
    whole = np.full((rows.n + rows.n_dropped_rows, *values.shape[1:]), np.nan)
    whole[rows.places] = values
    return whole


def read_new_dataset(data: parts.DataInfo, X: Any, wanted: list[str]) -> Any:
    """Return a data set of new rows in a file, or in a frame with text or missing cells; other rows unchanged.

    Parameters
    ----------
    data, X, wanted
        Arguments as for `read_columns`.
    """
    X, learnt = as_frame(unmask(X)), parts.applied_reading(data.reading)
    if isinstance(X, str | Path):
        return _read_file(learnt, X, tuple(wanted) or data.names).data
    if hasattr(X, "iloc") and learnt is not None and (
        learnt.how.na is Missing.DROP
        or learnt.date_forms
        or not set(wanted).issubset(map(str, X.columns))
        or (learnt.how.na.uses_imputation and X[wanted].isna().to_numpy().any())
    ):  # fmt: skip
        return find_implementation("read_new_frame")(X, wanted, learnt)
    return X


def as_frame(X: Any) -> Any:
    """Return a table of any package as a frame of pandas, other rows unchanged."""
    if hasattr(X, "iloc") and X.ndim == 1:
        raise BadInput("X: a Series is not a table; give a frame, such as X.iloc[[0]] for row 0 of a frame X")
    is_table = hasattr(X, "columns") or hasattr(type(X), "__arrow_c_stream__")
    return find_implementation("as_pandas")(X) if is_table else X


def _warn_of_dropped_rows(n_rows: int, invalid: str = "") -> None:
    """Warn about rows with missing or invalid values, which have the prediction NaN."""
    if invalid:
        warnings.warn(invalid, SparseCVWarning, stacklevel=4)
    if n_rows:
        message = f"{several(n_rows, 'row')} with a missing value in a column of the model: the prediction is NaN"
        warnings.warn(f'{message}, because the fit dropped such rows (na="drop")', SparseCVWarning, stacklevel=4)


def _read_file(
    learnt: Applied | None, path: str | Path, features: tuple[str, ...], columns: TargetColumns = NO_TARGET_COLUMNS
) -> Any:
    """Return the new rows of a file; warn about lines that were skipped as in the data of the record."""
    new = find_implementation("read_new_rows")(path, features, "", learnt, None, columns)
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
        new = _read_file(parts.applied_reading(data.reading), X, tuple(wanted) or data.names, columns)
        numbers, offsets = read_columns_and_offsets(data, new.data, wanted, columns)
        _warn_of_dropped_rows(new.data.n_dropped_rows)
        of_rows = np.asarray(offsets)
        return _place_among_dropped_rows(numbers, new.data), _place_among_dropped_rows(of_rows, new.data)
    if isinstance(X, Dataset) and X.row_exposure is not None:
        return read_columns(data, X, wanted), X.row_offsets(slice(0, X.n))
    X = as_frame(unmask(X))
    offsets, faults = _read_offsets(data, X, columns)
    if faults:
        raise BadInput(next(iter(faults.values())))
    return read_columns(data, X, wanted), offsets


def drop_rows_without_offset(data: parts.DataInfo, rows: Dataset, columns: TargetColumns) -> Dataset:
    """Return new rows without those whose exposure or offset is invalid, which the preprocessing lists.

    Parameters
    ----------
    data : DataInfo
        Description of the data of the model.
    rows : Dataset
        New rows.
    columns : TargetColumns
        Columns of exposures and offsets.
    """
    faults = _read_offsets(data, rows, columns)[1]
    if not faults:
        return rows
    reading, places = rows.reading or Applied(STRICT, data.names), rows.places.tolist()
    reasons = {places[row] + 1: fault.rpartition(" in row ")[0] for row, fault in faults.items()}
    invalid = dict(sorted({**(reading.invalid or {}), **reasons}.items()))
    kept = replace(rows, aux={**rows.aux, KEPT: rows.places}).take(np.delete(np.arange(rows.n), list(faults)))
    return replace(kept, reading=replace(reading, left_out=reading.left_out + len(faults), invalid=invalid))


def _read_offsets(data: parts.DataInfo, X: Any, columns: TargetColumns) -> tuple[FloatArray | float, dict[int, str]]:
    """Return the offsets of new rows, and a message for each row, from 0, whose exposure or offset is invalid."""
    offsets: FloatArray | float = 0.0
    faults = dict[int, str]()
    for option, name in columns.by_option().items():
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
        places = X.places if isinstance(X, Dataset) else np.arange(len(cells))
        numbers, of_option = _read_option_column(data, option, name, cells, places)
        faults |= {row: fault for row, fault in of_option.items() if row not in faults}
        with np.errstate(invalid="ignore", divide="ignore"):  # of invalid exposures, whose rows have a message
            offsets = offsets + (np.log(numbers) if option == "exposure" else numbers)
    if len(columns.names) > 1:
        who = "exposure with offset: the logarithm of the exposure plus the offset"
        faults |= {
            row: fault for row, fault in _describe_out_of_range("offset", who, np.asarray(offsets), places).items()
            if row not in faults
        }  # fmt: skip
    return offsets, faults


def _describe_out_of_range(option: str, who: str, values: FloatArray, places: IntArray) -> dict[int, str]:
    """Return a message for each row, from 0, with an exposure or an offset that is out of range."""
    return {
        row: f"{who} {describe_value_out_of_range(option, values[[row]], places[[row]])}, or remove the row"
        for row in find_values_out_of_range(option, values).tolist()
    }


def _read_option_column(
    data: parts.DataInfo, option: str, name: str, column: Any, places: IntArray
) -> tuple[FloatArray, dict[int, str]]:
    """Return exposures or offsets of new rows, and a message for each row, from 0, without a valid number."""
    cells: Any = np.asarray(column)
    numbers = cells.astype(np.float64) if cells.dtype.kind in "biuf" else None
    if numbers is None:
        learnt = parts.applied_reading(data.reading)
        cells, _ = parse_cells(cells.tolist(), POINT if learnt is None else learnt.how.number_format)
        numbers = np.array([float(cell) if _is_number(cell) else np.nan for cell in cells])
    who, faults = f"{option}: column {name!r}", dict[int, str]()
    advice = f"give {'a number above 0' if option == 'exposure' else 'a number'}, or remove the row"
    for row in np.flatnonzero(~(((numbers > 0.0) | (option != "exposure")) & np.isfinite(numbers))).tolist():
        is_word = isinstance(cells[row], str) and not _is_number(cells[row]) and cells[row].strip()
        fault = f"{cells[row]!r:.40}" if is_word else "empty" if np.isnan(numbers[row]) else f"{numbers[row]:g}"
        faults[row] = f"{who} is {fault} in row {places[row] + 1}; {advice}"
    out_of_range = _describe_out_of_range(option, who, numbers, places)
    return numbers, {**faults, **{row: fault for row, fault in out_of_range.items() if row not in faults}}


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
            f"X has the shape {table.shape}; give a table or an array with the {len(header)} columns that the model "
            f"was fitted to{one_row}"
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
        fault = str(error).splitlines()[0]
        raise BadInput(f"X: not every value is a number ({fault}); give numbers only") from None
    rows, columns = np.nonzero(~np.isfinite(numbers))
    if rows.size:
        raise BadInput(
            f"column {wanted[columns[0]]!r} has no finite number in row {rows[0] + 1}; fill it in, or drop the row"
        )
    return numbers


FIGURE_SUFFIXES = (".png", ".pdf", ".svg")  # formats of figure files


def _read(record: Any, data: Any, needed_by: str = "") -> Any:
    """Return the data of a record, read from a file or table as the record states; None without data."""
    if data is None and needed_by:
        raise BadInput(f"data: {needed_by} requires the data of the record; give data=, as passed to `solve`")
    return None if data is None else find_implementation("data_of")(record, data)


class DrawnModel:
    """Methods that draw figures of a record."""

    def plot(self, data: Any = None) -> Figure:
        """Return the figure that `sparsecv plot` draws by default.

        Parameters
        ----------
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`, for coefficients by tau in comparable units.

        Returns
        -------
        matplotlib Figure
            The figure; notebooks display it, and `savefig` writes it.
        """
        if isinstance(data, str | os.PathLike) and Path(data).suffix.lower() in FIGURE_SUFFIXES:
            path = os.fspath(data)
            raise BadInput(f"data: {path!r} names a figure, not a data file; write it with plot().savefig({path!r})")
        return find_implementation("figure_of")(self, _read(self, data))

    def write_report(self, path: str | os.PathLike[str], data: Any = None, style: str = "report") -> None:
        """Write a report, as `sparsecv report` does: answer, certificates, figures, tables, verification.

        Parameters
        ----------
        path : path
            File name whose suffix gives the format: an HTML page (`.html`), Markdown (`.md`) or LaTeX tables (`.tex`);
            with style `publication` also `.csv`, but not `.html`.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`, for coefficients by tau, or for effects of one standard deviation.
        style : {"report", "publication"}
            The whole report, or the table of the model for a paper, with texts on methods and results.

        Raises
        ------
        BadInput
            If the file cannot be written, or has another suffix.
        """
        find_implementation("write_report")(self, path, _read(self, data), style)

    def plot_coefficients(self, ax: Axes | None = None, data: Any = None, gamma: float | None = None) -> Axes:
        """Draw the coefficients of every tau (for a path, or with data), or of the model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure by default, as in the other methods.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`. Coefficients are then standardised, and those of a
            cross-validation are drawn for every tau, from full-data best subsets at the gamma of the model (computed
            within ten seconds).
        gamma : float, optional
            Gamma of a path to draw; the middle one by default.

        Returns
        -------
        matplotlib Axes
            The axes.
        """
        return find_implementation("plot_coefficients")(self, ax, _read(self, data), gamma)


class DrawnSearch(DrawnModel):
    """Methods that draw figures of a cross-validation record."""

    def plot_cv_error(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error by tau with certified intervals, one standard error to each side, and the choice."""
        return find_implementation("plot_cv_error")(self, ax)

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """Draw a heat map of the CV error of all pairs (tau, gamma), hatched for pairs excluded by bound."""
        return find_implementation("plot_grid")(self, ax)

    def plot_bounds(self, ax: Axes | None = None) -> Axes:
        """Draw the difference of the certified lower bounds of all pairs from the minimum CV error."""
        return find_implementation("plot_bounds")(self, ax)

    def plot_features(self, ax: Axes | None = None) -> Axes:
        """Draw the number of folds that choose each feature at the reported pair."""
        return find_implementation("plot_features")(self, ax)

    def plot_baselines(self, ax: Axes | None = None) -> Axes:
        """Draw the CV errors of the reported pair and of the baselines, with the certified bounds of the grid."""
        return find_implementation("plot_baselines")(self, ax)

    def plot_inclusion(self, ax: Axes | None = None) -> Axes:
        """Draw the share of bootstrap draws, or else of halves of stability selection, that choose each feature."""
        return find_implementation("plot_inclusion")(self, ax)

    def plot_intervals(self, ax: Axes | None = None, data: Any = None) -> Axes:
        """Draw the percentile intervals of the coefficients over bootstrap draws; with the data on a common scale."""
        return find_implementation("plot_intervals")(self, ax, _read(self, data))

    def plot_roc(self, data: Any = None, ax: Axes | None = None, folds: Any = None) -> Axes:
        """Draw the ROC curve of held-out rows of a logistic record; needs its data, and folds that came from Python."""
        return find_implementation("plot_roc")(self, _read(self, data, "plot_roc"), ax, folds)

    def plot_calibration(self, data: Any = None, ax: Axes | None = None, folds: Any = None) -> Axes:
        """Draw the reliability curve of held-out rows of a logistic record; needs the same as `plot_roc`."""
        return find_implementation("plot_calibration")(self, _read(self, data, "plot_calibration"), ax, folds)

    def held_out_predictions(self, data: Any, folds: Any = None) -> FloatArray:
        """Predict every row of the data by the model of the reported pair that was fitted without its fold.

        Parameters
        ----------
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
            Data of the record, as passed to `solve`.
        folds : FoldPlan, splitter, labels or pairs, optional
            Folds of the record, if it does not describe them; by default they are rebuilt from the record.

        Returns
        -------
        (n,) array
            Predictions in units of the target, or probabilities: the mean if several folds score a row, and NaN if no
            fold does. Rows of weight 0 and rows that `na="drop"` leaves out have no entry.

        Raises
        ------
        BadInput
            If data or folds are not those of the record.
        """
        made: FloatArray = find_implementation("held_out_predictions")(self, data, folds)
        return made

    def predict_interval(
        self, X: Any, level: float = 0.9, data: Any = None, folds: Any = None, invalid_rows: str = "error"
    ) -> FloatArray:
        """Return CV+ prediction intervals of new rows (Barber and others 2021), from the models of the folds.

        The models are fitted again to the data of the record. If new rows are exchangeable with these data, and tau and
        gamma were not chosen by the same folds, the coverage is at least `2 level - 1`, minus `sqrt(2 / n)` for K
        folds. In practice it is usually close to `level` (docs/theory/intervals.md).

        Parameters
        ----------
        X : path, pandas.DataFrame, table with `__arrow_c_stream__`, Dataset or (m, p) array_like
            New rows, as for `predict`.
        level : float
            Target coverage of new rows.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
            Data of the record, as passed to `solve`; required.
        folds : FoldPlan, splitter, labels or pairs, optional
            Folds of the record, if it does not describe them; by default they are rebuilt from the record.
        invalid_rows : {"error", "na"}
            Treatment of rows with an invalid value, as for `predict`.

        Returns
        -------
        (m, 2) array
            Lower and upper bounds, in units of the target.

        Raises
        ------
        BadInput
            If the record has weights or an averaged model, or its folds do not hold out every row once. If there are
            too few rows for the level, or the data differ from those of the record.

        Examples
        --------
        >>> import sparsecv_mio as sc
        >>> data = sc.read_dataset("instances/prostate.csv", target="lpsa")
        >>> record = sc.solve(data, gammas=[0.01, 0.1, 1.0])
        >>> record.predict_interval(data.X[:2], data=data).round(2).tolist()
        [[-0.48, 2.26], [-0.63, 2.18]]
        """
        made: FloatArray = find_implementation("predict_interval")(self, X, level, data, folds, invalid_rows)
        return made
