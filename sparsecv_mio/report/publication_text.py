"""The texts of a paper on a result: caption, notes of the table, methods and results.

The template `publication.sentences.jinja` has the sentences. They state only what the record certifies, and name
estimates. They use the symbols τ and γ, which the LaTeX format writes as formulas.
"""

from __future__ import annotations

import math
import re
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.certificate.inference_parts import Inference
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import EITHER_SIDE, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import fold_name
from sparsecv_mio.digits import abbreviate_list, format_number, quoted_name, several
from sparsecv_mio.model_space import NONE, text_of_taus
from sparsecv_mio.report import record_tables, record_words
from sparsecv_mio.report.baseline_tables import certified_lines
from sparsecv_mio.report.coefficients import factor_lines
from sparsecv_mio.report.document import CITATION
from sparsecv_mio.report.journal_numbers import (
    DIGITS,
    describe_bounds,
    format_p_value,
    format_percent,
    print_number,
    round_number,
    round_outward,
)
from sparsecv_mio.report.references import FIRST_PAPER, PACKAGE
from sparsecv_mio.targets import Loss, Values
from sparsecv_mio.words import Intercept, Within

MODEL_PAPERS = {Values.NUMBERS: (), Values.CLASSES: ("lecessie1992",), Values.COUNTS: ("mccullagh1989",)}
BASELINE_PAPERS = {"lasso": "tibshirani1996", "ridge": "hoerl1970", "elasticnet": "zou2005", "abess": "zhu2020"}
LIBRARIES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "numba": "Numba"}
SYMBOLS = {"tau": "τ", "gamma": "γ"}
MAX_LISTED_GAMMAS = 5  # ridge weights that a text lists; it gives the range of more
HALF = 0.5  # inclusion frequency above which a text names a term that is not in the model
EQUAL_RATIO_RTOL = 1e-6  # relative difference up to which ratios of ridge weights are equal


class PaperTexts(NamedTuple):
    """The texts of a paper, one sentence a line, with citations as `⟦key⟧`."""

    caption: str
    notes: str
    methods: str
    results: str


def write_texts(record: Record, data: Dataset | None = None) -> PaperTexts:
    """Return the texts of a paper on a record of a cross-validation.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    data : Dataset, optional
        Data of the record as fitted, for numbers of rows by class, effects and the fit to all rows.
    """
    from jinja2 import Environment, StrictUndefined

    source = files("sparsecv_mio.report").joinpath("publication.sentences.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_write_value,
        comment_start_string="<#", comment_end_string="#>",
    )  # fmt: skip
    environment.filters |= {
        "name": quoted_name, "names": lambda names: abbreviate_list(list(map(quoted_name, names))),
        "number": _print_rounded,
        "percent": format_percent, "percent_up": record_words.round_share_up,
        "sentence": lambda line: f"{line[0].upper()}{line[1:]}.",
    }  # fmt: skip
    values = _describe_request(record, data) | _describe_outcome(record, data)
    module: Any = environment.from_string(source).make_module(values)
    texts = (getattr(module, name)() for name in PaperTexts._fields)
    return PaperTexts(*("\n".join(line.strip() for line in text.splitlines() if line.strip()) for text in texts))


def cited_keys(record: StoredRecord) -> list[str]:
    """Return the keys of the references of a record: the package, and the papers of its methods.

    Parameters
    ----------
    record : record of any command
        Record.
    """
    if not isinstance(record, Record):
        return [PACKAGE, *_papers_of_models(record.loss), FIRST_PAPER]
    return [PACKAGE, *find_citations(write_texts(record))]


def find_citations(texts: PaperTexts) -> list[str]:
    """Return the keys of the references that texts cite, in their order.

    Parameters
    ----------
    texts : PaperTexts
        Texts of a paper.
    """
    return [key for text in texts for keys in CITATION.findall(text) for key in keys.split(",")]


def _papers_of_models(loss: Loss) -> tuple[str, ...]:
    """Return the keys of the papers on the regression with a loss, and on the best subset."""
    return "hoerl1970", *MODEL_PAPERS[loss.target.values], "bertsimas2016"


def _write_value(value: object) -> str:
    """Return a value of the template as text: names of the data cannot break lines or cite."""
    return re.sub(r"[\s⟦]", " ", str(value))


def _print_rounded(value: float, digits: int = DIGITS) -> str:
    return print_number(round_number(value, digits))


def _print_plain(value: float) -> str:
    return print_number(format_number(value, DIGITS))


def _use_symbols(text: str) -> str:
    """Return a text of the program with τ and γ for their names."""
    return re.sub(r"\b(tau|gamma)\b", lambda word: SYMBOLS[word[0]], text)


def pair_in_symbols(tau: int, gamma: float) -> str:
    """Return a pair of the grid with symbols.

    Examples
    --------
    >>> pair_in_symbols(7, 0.00719686)
    'τ = 7 and γ = 0.00720'
    """
    return f"τ = {tau:,} and γ = {_print_rounded(gamma)}"


def _describe_request(record: Record, data: Dataset | None) -> dict[str, Any]:
    """Return the values of the template on data, preprocessing, models, folds and grid."""
    about, ask, reading = record.data, record.request, record.data.reading
    encoded = set() if reading is None else set(reading.levels) & set(reading.columns)
    ranked = set() if reading is None else set(reading.ranked_levels) & set(reading.columns)
    libraries = [f"{name} {record.versions[key]}" for key, name in LIBRARIES.items() if key in record.versions]
    return {
        "record": record, "data": data, "about": about, "ask": ask, "target": record.loss.target, "reading": reading,
        "n_candidates": (ask.restrictions or NONE).n_selectable_features(about.p),
        "n_successes": None if data is None else data.weight_of(np.flatnonzero(data.y > 0.0)),
        "n_positive": None if data is None else int((data.y > 0.0).sum()),
        "n_encoded": len(encoded - ranked), "n_ranked": len(ranked),
        "rank_labels": {} if reading is None else reading.rank_labels,
        "has_binary_terms": data is not None and any(_is_binary(data, name) for name in record.predictor.coefficients),
        "adjusted": adjustment_columns(record), "compared": record_tables.describe_model_space(record),
        "model_papers": _papers_of_models(record.loss), "libraries": ", ".join(libraries),
        "in_time_order": record_words.is_in_time_order(record), "factor_lines": factor_lines(record),
        "grid_sizes": _describe_sizes(sorted(set(ask.taus))), "grid_gammas": _describe_gammas(record),
        "folds_text": record_words.describe_folds, "outer_folds": record_words.outer_folds, "several": several,
        "training_rows": lambda within: (
            "the training rows of each fold" if within == Within.FOLDS else "all rows, including held-out rows"
        ),
    }  # fmt: skip


def _describe_outcome(record: Record, data: Dataset | None) -> dict[str, Any]:
    """Return the values of the template on the choice, its certificate, errors and fold models."""
    stable, errors = record.stability, record.chosen_folds.error
    reason = record_tables.MEANING[record.status][1]
    if record_words.has_stopped_early(record):
        reason = "the search ended without a proof"
    model, draws = set(record.predictor.coefficients), record.bootstrap
    features, chosen = ((), ()) if draws is None else (draws.features, draws.chosen)
    frequent = [one for one in features if one.frequency > HALF and one.feature not in model]
    others = [f"{quoted_name(name)} ({count:,})" for name, count in record.chosen_in().items() if name not in model]
    methods = () if record.baselines is None else record.baselines.methods
    name = "" if data is None or stable is None else fold_name(record.folds.spec, data, stable.fold)
    return {
        "best": record.certificate, "own": record.own_row, "average": record.average, "nested": record.nested,
        "weighed": stable.chosen if stable and stable.chosen and stable.chosen.weight else None, "reason": reason,
        "space": _use_symbols(record_words.search_space(record)), "has_wide_ties": record_tables.has_wide_ties(record),
        "n_models": int(np.isfinite(errors).sum()), "n_unsolved": int((~record.chosen_folds.decided).sum()),
        "frequent_others": [f"{quoted_name(one.feature)} ({format_percent(one.frequency)})" for one in frequent],
        "n_same": sum(set(one.support) == set(record.support) for one in chosen),
        "inclusion_width": math.ceil(max((100.0 * (one.upper - one.lower) for one in features), default=0.0)),
        "inference": record.inference, "baselines": record.baselines,
        "significant_terms": _list_significant_terms(record.inference),
        "baseline_lines": list(map(_use_symbols, certified_lines(record))),
        "baseline_papers": [BASELINE_PAPERS[one.method] for one in methods],
        "other_terms": others, "measures": _list_measures(record), "fit": _fit_on_all_rows(record, data),
        "influence": stable,
        "influential_fold": name,
        "selection_lines": list(map(_move_estimate, record_words.selection_lines(record))),
        "bounds": describe_bounds, "outward": round_outward,
        "pair": pair_in_symbols, "is_finite": math.isfinite, "EITHER_SIDE": EITHER_SIDE,
    }  # fmt: skip


def _move_estimate(line: str) -> str:
    """Return a line on the stability without its title, with the remark on an estimate at its end.

    Examples
    --------
    >>> _move_estimate("stability (estimate: 1 fold is open): all folds select x"), _move_estimate("stability: none")
    ('all folds select x (estimate: 1 fold is open)', 'none')
    """
    return re.sub(r"stability: |stability( \(.*?\)): (.*)", r"\2\1", line, count=1, flags=re.DOTALL)


def _list_significant_terms(tests: Inference | None) -> list[str]:
    """Return the terms whose p-value is at most the family-wise error, with their p-values."""
    terms = () if tests is None else [one for one in tests.terms if one.p_value <= 1.0 - tests.level]
    return [f"{quoted_name(one.term)} (p = {format_p_value(one.p_value)})".replace("= <", "< ") for one in terms]


def _is_binary(data: Dataset, name: str) -> bool:
    """Return True if a term has the values 0 and 1 only."""
    return bool(np.isin(data.X[:, data.names.index(name)], (0.0, 1.0)).all())


def _describe_sizes(taus: list[int]) -> str:
    """Return the sizes of a grid.

    Examples
    --------
    >>> _describe_sizes([3]), _describe_sizes([1, 2, 3]), _describe_sizes([1, 2, 3, 8])
    ('the size τ = 3', '3 sizes τ from 1 to 3', '4 sizes τ (1–3, 8)')
    """
    if len(taus) == 1:
        return f"the size τ = {taus[0]}"
    runs = text_of_taus(taus)
    return f"{len(taus)} sizes τ " + (
        f"from {taus[0]} to {taus[-1]}" if "," not in runs else f"({runs.replace(':', '–').replace(',', ', ')})"
    )


def _describe_gammas(record: Record) -> str:
    """Return the ridge weights of the grid, or the interval of gamma."""
    if (interval := record.continuous) is not None:
        return f"every ridge weight γ from {_print_plain(interval.low)} to {_print_plain(interval.high)}"
    gammas = sorted(set(record.request.gammas))
    if len(gammas) == 1:
        return f"the ridge weight γ = {_print_plain(gammas[0])}"
    if len(gammas) <= MAX_LISTED_GAMMAS:
        return f"{len(gammas)} ridge weights γ ({', '.join(_print_plain(gamma) for gamma in gammas)})"
    ends = f"{len(gammas)} ridge weights γ from {_print_plain(gammas[0])} to {_print_plain(gammas[-1])}"
    steps = np.diff(np.log([gamma for gamma in gammas if gamma > 0.0]))
    return ends + (" with equal ratios" if gammas[0] > 0.0 and np.ptp(steps) <= EQUAL_RATIO_RTOL else "")


def _list_measures(record: Record) -> list[str]:
    """Return further measures of the held-out predictions, with their values."""
    found = dict[str, float | None]()
    if record.loss.is_quadratic:
        found = {"RMSE": record.rmse, "MAE": record.mae}
    elif record.classes is not None:
        classes = record.classes
        found = {"accuracy (threshold 0.5)": classes.accuracy, "AUC": classes.auc, "Brier score": classes.brier}
    explained = record.loss.target.explained.removesuffix(" of held-out rows").replace("R^2", "R²")
    found |= {explained: record.r_squared, record.null_name: record.null_error}
    known = {name: value for name, value in found.items() if value is not None and math.isfinite(value)}
    return [f"{name} {_print_rounded(value)}" for name, value in known.items()]


def _fit_on_all_rows(record: Record, data: Dataset | None) -> Any:
    """Return the criteria of a logistic or Poisson model on all rows; None without data or with squared error."""
    if data is None or record.loss.is_quadratic:
        return None
    from sparsecv_mio.fits.criteria import glm_criteria

    return glm_criteria([record], data, record.data.intercept != Intercept.NONE, record)[0]
