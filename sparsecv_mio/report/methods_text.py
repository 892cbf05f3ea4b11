"""The methods text of a record for a paper: statements on data, models, folds, grid, choice and certificate."""

from __future__ import annotations

from collections.abc import Iterator

from sparsecv_mio.certificate.parts import ReadingInfo
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import abbreviate_list, format_number, quoted_name, several
from sparsecv_mio.model_space import NONE
from sparsecv_mio.report import record_tables, record_words
from sparsecv_mio.report.document import Statement
from sparsecv_mio.report.references import FIRST_PAPER, PACKAGE
from sparsecv_mio.targets import Loss, Values
from sparsecv_mio.words import Intercept, Scale, Within

MODEL_PAPERS = {Values.NUMBERS: (), Values.CLASSES: ("lecessie1992",), Values.COUNTS: ("mccullagh1989",)}
SCALES = {
    Scale.LENGTH: "columns that were centred and scaled to length 1",
    Scale.VARIANCE: "columns that were centred and scaled to variance 1",
    Scale.NONE: "the columns in their own units",
}
INTERCEPTS = {
    Intercept.FOLD: "the intercept was not penalised",
    Intercept.GLOBAL: "target and columns were centred by their means over all rows, including held-out rows",
    Intercept.NONE: "the models had no intercept",
}
LIBRARIES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "numba": "Numba"}


def describe_methods(record: Record, data: Dataset | None = None) -> list[Statement]:
    """Return the statements of a methods section for a record of a cross-validation.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    data : Dataset, optional
        Data of the record, for the number of rows of each class and the sum of counts.
    """
    return [
        *_describe_data(record, data),
        *_describe_models(record),
        *_describe_validation(record),
        *_describe_choice(record),
        *_describe_software(record),
    ]


def cited_keys(record: StoredRecord) -> list[str]:
    """Return the keys of the references of a record: the package, and the papers of its methods.

    Parameters
    ----------
    record : record of any command
        Record.
    """
    if isinstance(record, Record):
        return [PACKAGE, *(key for statement in describe_methods(record) for key in statement.keys)]
    return [PACKAGE, *_papers_of_models(record.loss), FIRST_PAPER]


def _papers_of_models(loss: Loss) -> tuple[str, ...]:
    """Return the keys of the papers on the regression with a loss, and on the best subset."""
    return "hoerl1970", *MODEL_PAPERS[loss.target.values], "bertsimas2016"


def _describe_data(record: Record, data: Dataset | None) -> Iterator[Statement]:
    """Yield the statements on rows, columns and their preprocessing."""
    about, limits = record.data, record.request.restrictions or NONE
    features = several(limits.n_selectable_features(about.p), "candidate feature")
    yield Statement(f"The data had {about.n:,} rows, the target {quoted_name(about.target)} and {features}")
    if data is not None and record.classes is not None:
        positive = int((data.y > 0.0).sum())
        yield Statement(f"The target was {record.classes.positive} in {positive:,} of these rows")
    if data is not None and record.counts is not None:
        yield Statement(f"The sum of the counts was {data.y.sum():,.0f}")
    if about.reading is not None:
        yield from map(Statement, _describe_reading(record, about.reading))
    if about.weights is not None:
        yield Statement(f"Rows were weighted by {quoted_name(about.weights)} in fits and errors")
    if about.class_weight is not None:
        yield Statement("Both classes had the same total weight in fits and errors")
    if about.exposure is not None:
        yield Statement(f"The logarithm of the exposure {quoted_name(about.exposure)} was an offset")
    if adjusted := adjustment_columns(record):
        names = abbreviate_list([quoted_name(name) for name in adjusted])
        yield Statement(f"All models were adjusted for {names}, without penalty")


def _describe_reading(record: Record, reading: ReadingInfo) -> Iterator[str]:
    """Yield the statements on missing values and on text columns."""
    if reading.left_out:
        yield f"{several(reading.left_out, 'row')} with missing values were dropped"
    if reading.means:
        filled = "" if reading.filled is None else f" of {several(len(reading.filled), 'column')}"
        where = _describe_rows(record.request.na_within)
        yield f"Missing values{filled} were imputed by the {reading.na} of {where}"
    if reading.marked:
        yield f"0/1 columns marked the missing values of {several(len(reading.marked), 'column')}"
    if texts := (set(reading.levels) & set(reading.columns)) - set(reading.ranked_levels):
        yield f"{several(len(texts), 'text column')} were encoded as 0/1 columns of their levels"
    if ranked := set(reading.ranked_levels) & set(reading.columns):
        yield f"{several(len(ranked), 'text column')} were encoded by ranks"
    if reading.dates:
        yield f"Dates were converted to {', '.join(reading.dates)}"


def _describe_rows(within: str | None) -> str:
    """Return the rows from which a fold computes imputed values or scales."""
    return "the training rows of each fold" if within == Within.FOLDS else "all rows, including held-out rows"


def _describe_models(record: Record) -> Iterator[Statement]:
    """Yield the statements on the models that were compared."""
    target, about = record.loss.target, record.data
    penalised = "" if target.is_quadratic else " with a ridge penalty"
    predicted = "" if record.classes is None else f" for the probability of {record.classes.positive}"
    yield Statement(
        f"We fitted best-subset {target.model} regression{penalised}{predicted}", _papers_of_models(record.loss)
    )
    yield Statement(
        f"For a size τ and a ridge weight γ, the model minimises the sum of {target.losses} plus γ/2 times the sum of "
        "squared coefficients, over all subsets of at most τ features"
    )
    if compared := record_tables.describe_model_space(record):
        yield Statement(f"The models were restricted: {compared}")
    rows = "" if about.scale == Scale.NONE else f", with scales from {_describe_rows(record.request.scale_within)}"
    columns, intercept = SCALES[Scale(about.scale)], INTERCEPTS[Intercept(about.intercept)]
    yield Statement(f"The penalty refers to {columns}{rows}; {intercept}")


def _describe_validation(record: Record) -> Iterator[Statement]:
    """Yield the statements on the folds and on the grid."""
    ask = record.request
    gammas, taus = sorted(set(ask.gammas)), sorted(set(ask.taus))
    yield Statement(
        f"τ and γ were chosen by cross-validation with {record_words.describe_folds(record.folds)}: for every pair, "
        "the best subset was selected again in every fold, without its held-out rows",
        ("stone1974",),
    )
    yield Statement(f"The CV error is the {record.loss.target.cv_error} of the held-out rows")
    sizes = f"τ = {taus[0]}" if len(taus) == 1 else f"{len(taus)} sizes τ from {taus[0]} to {taus[-1]}"
    weights = f"γ = {format_number(gammas[0])}"
    if record.continuous is not None:
        low, high = format_number(record.continuous.low), format_number(record.continuous.high)
        weights = f"every ridge weight γ from {low} to {high}"
    elif len(gammas) > 1:
        ends = f"{format_number(gammas[0], 3)} to {format_number(gammas[-1], 3)}"
        weights = f"{len(gammas)} ridge weights γ from {ends}"
    yield Statement(f"The grid had {sizes} and {weights}")


def _describe_choice(record: Record) -> Iterator[Statement]:
    """Yield the statements on the rule, the certificate, the refit and the nested cross-validation."""
    ask = record.request
    rule = "the pair with the minimum CV error"
    if record.one_se is not None:
        rule = "the smallest τ, then the largest γ, with a CV error within one standard error of the minimum"
    elif record.rule != "the minimum CV error":
        rule = f"the pair chosen by {record.rule}"
    yield Statement(f"We report {rule}, refitted to all rows", ("breiman1984",) if record.one_se is not None else ())
    limit = "" if ask.time_limit is None else f", time limit {ask.time_limit:g} s"
    yield Statement(
        "The search used branch and bound with certified bounds on the minimum CV error (requested relative gap "
        f"{100.0 * ask.gap:g}%{limit}); the bounds include rounding errors and hold for these rows, folds and pairs",
        (FIRST_PAPER,),
    )
    if record.average is not None:
        yield Statement("Predictions use an average of near-optimal pairs, approximated by a model with few features")
    if record.nested is not None:
        yield Statement(
            "The error on new data was estimated by nested cross-validation: the whole procedure was repeated with "
            f"each of {record.nested.outer.k:,} outer folds held out",
            ("varma2006",),
        )


def _describe_software(record: Record) -> Iterator[Statement]:
    """Yield the statement on the versions of the software."""
    others = ", ".join(f"{name} {record.versions[key]}" for key, name in LIBRARIES.items() if key in record.versions)
    yield Statement(f"Computations used sparsecv-mio {record.versions['sparsecv_mio']} ({others})", (PACKAGE,))
