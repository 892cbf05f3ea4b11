"""Material for presenting the model of a record in a paper: a table, a caption, notes, texts and references.

The template `publication.sentences.jinja` has the sentences. The sentences state only what the record certifies, and
call every estimate an estimate. The sentences use the symbols τ and γ, which the LaTeX format writes as formulas.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.certificate.inference_parts import TermInference
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import EITHER_SIDE, Record
from sparsecv_mio.certificate.restrictions import adjustment_columns, complete_factors, restrictions_of
from sparsecv_mio.data.dataset import MULTIPLICITY, Dataset
from sparsecv_mio.data.folds import fold_name
from sparsecv_mio.data.reading_options import ABSENT
from sparsecv_mio.digits import abbreviate_list, format_number, format_with_zeros, quoted_name, several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import csv_lines, inert
from sparsecv_mio.model_space import NONE, text_of_taus, word_of_factor, words_of_terms
from sparsecv_mio.report import journal_numbers, record_tables, record_words
from sparsecv_mio.report.class_pictures import PredictedClasses
from sparsecv_mio.report.coefficients import (
    against,
    factor_lines,
    find_levels,
    requested_references,
    separation_lines,
    spreads,
)
from sparsecv_mio.report.document import CITATION, Publication, ReportTable, text_of
from sparsecv_mio.report.journal_numbers import (
    DIGITS,
    find_decimals,
    format_estimate,
    format_limits,
    format_p_value,
    format_percent,
)
from sparsecv_mio.report.optional_parts import (
    FEW_SPLITS,
    MAX_FEATURES_SHOWN,
    SELECTED_DRAWS,
    certified_lines,
    count_failed_tests,
    describe_missing_draws,
    describe_untested_halves,
    find_missing_levels,
    find_significant_terms,
    is_cut,
    list_untested_terms,
)
from sparsecv_mio.report.references import FIRST_PAPER, PACKAGE, find_references
from sparsecv_mio.report.time_pictures import FittedHazards, HeldOutTimes
from sparsecv_mio.targets import Loss, Values
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from jinja2 import Template

MODEL_PAPERS = {
    Values.CLASSES: ("lecessie1992",), Values.COUNTS: ("mccullagh1989",), Values.TIMES: ("cox1972",)
}  # fmt: skip
BASELINE_PAPERS = {"lasso": "tibshirani1996", "ridge": "hoerl1970", "elasticnet": "zou2005", "abess": "zhu2020"}
LIBRARIES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "numba": "Numba"}
TEXTS = ("caption", "notes", "methods", "results")
MAX_LISTED_GAMMAS = 5  # ridge weights that a text lists; it gives the range of more
COMMANDS = r"; (the record stores|`\w+` with --reference) .*"  # ends of lines on factors that a paper does not need
CONCORDANCE = "Harrell's concordance"
LEAST_WIDTH = 1e-3  # width of an interval over its estimate, up to which it adds decimals


def make_publication(record: Record, data: Dataset | None = None) -> Publication:
    """Return the table of the model of a record for a paper, with its texts.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    data : Dataset, optional
        Data of the record, for the effect of one standard deviation of each term.
    """
    from sparsecv_mio.report.record_plots import fitted_rows

    if data is not None:
        data = fitted_rows(record, data)
    record = against(record, requested_references(record))
    columns = _make_columns(record, data)
    terms = next(iter(columns.values()))
    rows = tuple((term, *(column.get(term, "") for column in columns.values())) for term in terms)
    texts = caption, notes, methods, results = _write_texts(record, data)
    keys = [key for text in texts for keys in CITATION.findall(text) for key in keys.split(",")]
    references = find_references(keys, record.versions["sparsecv_mio"])
    table = ReportTable(caption, ("Term", *columns), rows, words=1)
    return Publication(table, notes, methods, results, tuple(references))


def publication_text(record: object, kind: str, data: Dataset | None = None) -> str:
    """Return the table of a model for a paper as text.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    kind : {"csv", "latex", "md"}
        Format. CSV has the table only, the other formats also the caption, the notes and the methods text.
    data : Dataset, optional
        Data of the record.

    Raises
    ------
    BadInput
        If the record is not a record of `solve`, or the data are not its data.
    """
    if not isinstance(record, Record):
        raise BadInput("report: --style publication needs a record of `solve` that chose a pair (tau, gamma)")
    made = make_publication(record, data)
    if kind != "csv":
        return text_of(made, kind)
    return "".join(csv_lines([made.table.head, *((inert(term), *cells) for term, *cells in made.table.rows)]))


def cited_keys(record: StoredRecord) -> list[str]:
    """Return the keys of the references of a record: the package, and the papers of its methods.

    Parameters
    ----------
    record : record of any command
        Record.
    """
    if not isinstance(record, Record):
        return [PACKAGE, *_find_model_papers(record.loss), FIRST_PAPER]
    return [PACKAGE, *(reference.key for reference in make_publication(record).references)]


def _make_columns(record: Record, data: Dataset | None) -> dict[str, dict[str, str]]:
    """Return the columns of the table, each with its cells by term: features, adjustment columns, intercept."""
    model, adjusted, word = record.predictor, adjustment_columns(record), record.wording.ratio
    references = requested_references(record)
    names = sorted(model.coefficients, key=lambda name: name in adjusted)
    values = {name: model.coefficients[name] for name in names}
    like = _find_smallest_numbers(record)
    estimates, factors = dict[str, str](), _find_tested_factors(record)  # a tested factor has a row before its levels
    intercept = {"(intercept)": model.intercept} if record.wording.has_intercept else {}
    for name, value in (values | intercept).items():
        estimates |= {factors[name]: ""} if name in factors else {}
        estimates[name] = format_estimate(value, like.get(name, value))
    shown = [level for level, factor in references.items() if not model.coefficients.keys().isdisjoint(factor)]
    columns = {"Estimate": estimates | dict.fromkeys(shown, "reference")}

    def add_effects(head: str, step: dict[str, float]) -> None:
        sizes = _even_out(record, {name: like[name] * unit for name, unit in step.items()})
        columns[head] = {
            name: format_estimate(values[name] * unit, sizes[name], bool(word)) for name, unit in step.items()
        }

    steps = {"": {name: 1.0 for name in names if name not in references}}
    if word:
        add_effects(word.capitalize(), steps[""])
    if data is not None:
        levels = find_levels(record.data.names).union(references)
        steps[", 1 SD"] = {name: step for name, step in spreads(data, names).items() if name not in levels}
        add_effects(f"{word.capitalize()}, 1 SD" if word else "Effect of 1 SD", steps[", 1 SD"])
    forced = dict.fromkeys((record.request.restrictions or NONE).forced_columns, "forced")
    counts = {name: f"{count:,}" for name, count in record.chosen_in().items()}
    counts |= forced | dict.fromkeys(adjusted, "adjusted for")
    columns[f"Folds (of {record.folds.k:,})"] = {name: counts.get(name, "0") for name in names}
    return columns | _make_columns_of_draws(record, forced, steps, like)


def _even_out(record: Record, sizes: dict[str, float]) -> dict[str, float]:
    """Return the numbers that determine decimals; a column of ratios without intervals has one number of decimals."""
    finest, has_intervals = min(sizes.values(), key=abs, default=0.0), record.bootstrap or record.inference
    has_few = record.wording.ratio and not has_intervals and (find_decimals(finest, True) or math.inf) <= DIGITS
    return dict.fromkeys(sizes, finest) if has_few else sizes


def _find_smallest_numbers(record: Record) -> dict[str, float]:
    """Return the number of each term that determines its decimals: its estimate, or the width of an interval."""
    draws, tests = record.bootstrap, record.inference
    ends = [(one.feature, one.coefficient_low, one.coefficient_high) for one in (draws.features if draws else ())]
    ends += [
        (one.term, one.interval_lower, one.interval_upper) for one in (tests.terms if tests else ())
        if one.interval_lower is not None and one.interval_upper is not None
    ]  # fmt: skip
    smallest = {name: abs(value) for name, value in record.predictor.coefficients.items()}
    for name, lower, upper in ends:
        if upper > lower and name in smallest:
            smallest[name] = min(smallest[name] or math.inf, max(upper - lower, LEAST_WIDTH * smallest[name]))
    return smallest


def _find_tested_factors(record: Record) -> dict[str, str]:
    """Return the name of each factor with a joint test by splits, by the first of its levels in the model."""
    if record.inference is None:
        return {}
    factors = [columns for columns in restrictions_of(record).count if len(columns) > 1]
    free = [name for name in record.predictor.coefficients if name not in adjustment_columns(record)]
    words = {word_of_factor(columns): name for columns in factors for name in reversed(free) if name in columns}
    return {name: word for word, name in words.items()}


def _make_columns_of_draws(
    record: Record, forced: dict[str, str], steps: dict[str, dict[str, float]], like: dict[str, float]
) -> dict[str, dict[str, str]]:
    """Return the columns of draws. `steps` are changes of terms, by name; intervals have a column for each change.

    Reference levels have no step of 1, and levels have no step of one standard deviation.
    """
    columns, is_ratio = dict[str, dict[str, str]](), bool(record.wording.ratio)
    terms = record.predictor.coefficients
    if (draws := record.bootstrap) is not None:
        chosen = {one.feature: one for one in draws.features if one.feature in terms}
        shares = {name: format_percent(one.frequency) for name, one in chosen.items()}
        columns["Inclusion"] = shares | {name: "forced" for name, one in chosen.items() if one.forced}
        for head, step in steps.items() if draws.has_percentiles else ():
            columns[f"{100.0 * draws.level:g}% bootstrap interval{head}"] = {
                name: format_limits(
                    unit * one.coefficient_low, unit * one.coefficient_high, unit * like[name], is_ratio
                )
                for name, one in chosen.items() if (unit := step.get(name)) is not None
            }  # fmt: skip
    if (halves := record.stability_selection) is not None:
        shares = {one.feature: format_percent(one.frequency) for one in halves.features if one.feature in terms}
        columns["Halves"] = shares | {name: forced[name] for name in terms if name in forced}
    return columns | _make_columns_of_tests(record, steps, like)


def _make_columns_of_tests(
    record: Record, steps: dict[str, dict[str, float]], like: dict[str, float]
) -> dict[str, dict[str, str]]:
    """Return the columns of the tests by splits of the rows; a term in no model has the p-value 1."""
    if (tests := record.inference) is None:
        return {}
    terms, adjusted = {one.term: one for one in tests.terms}, adjustment_columns(record)
    free = [name for name in record.predictor.coefficients if name not in adjusted]
    tested = {name: terms.get(name) for name in words_of_terms(free, restrictions_of(record).count)}
    columns, word = dict[str, dict[str, str]](), record.wording.ratio
    for head, step in steps.items():
        shown = {
            name: _format_test(one, step.get(name), like.get(name, 0.0), bool(word))
            for name, one in tested.items()
            if one
        }
        columns[f"Split {word or 'estimate'}{head}"] = {name: estimate for name, (estimate, _) in shown.items()}
        columns[f"{100.0 * tests.level:g}% split interval{head}"] = {name: cell for name, (_, cell) in shown.items()}
    columns["p"] = {
        name: "not tested" if one and one.n_tested == 0 else format_p_value(one.p_value if one else 1.0)
        for name, one in tested.items()
    }
    return columns


def _format_test(one: TermInference, unit: float | None, like: float, is_ratio: bool) -> tuple[str, str]:
    """Return the median estimate and the interval of a term for a change by `unit`; None if the table has none."""
    scale = unit or 0.0
    estimate = "" if unit is None or one.estimate is None else format_estimate(
        scale * one.estimate, scale * like, is_ratio)  # fmt: skip
    if one.is_empty:
        return estimate, "empty"
    if unit is None or one.interval_lower is None or one.interval_upper is None:
        return estimate, ""
    return estimate, format_limits(scale * one.interval_lower, scale * one.interval_upper, scale * like, is_ratio)


def _write_texts(record: Record, data: Dataset | None) -> list[str]:
    """Return the texts of a paper, one paragraph a line, with citations as `⟦key⟧`.

    The data, as fitted, are for numbers of rows by class, effects and the fit to all rows.
    """
    values = _describe_request(record, data) | _describe_outcome(record, data)
    module: Any = _load_sentences().make_module(values)
    texts = (getattr(module, name)().split("¶") for name in TEXTS)
    return ["\n".join(filter(None, (" ".join(part.split()) for part in parts))) for parts in texts]


@cache
def _load_sentences() -> Template:
    """Return the compiled template of the sentences; compiling takes a tenth of a second."""
    from jinja2 import Environment, StrictUndefined

    source = files("sparsecv_mio.report").joinpath("publication.sentences.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
        comment_start_string="<#", comment_end_string="#>",
        finalize=lambda value: re.sub(r"[\s⟦¶]", " ", str(value)),  # names of the data cannot break lines or cite
    )  # fmt: skip
    environment.filters |= {
        "name": quoted_name, "quote": repr, "names": lambda names: abbreviate_list(list(map(quoted_name, names))),
        "number": _print_number, "percent": format_percent, "percent_up": record_words.format_share_bound,
        "sentence": lambda line: f"{line[0].upper()}{line[1:]}.",
    }  # fmt: skip
    return environment.from_string(source)


def _find_model_papers(loss: Loss) -> tuple[str, ...]:
    """Return the keys of the papers on the regression with a loss, and on the best subset."""
    return "hoerl1970", *MODEL_PAPERS.get(loss.target.values, ()), "bertsimas2016"


def _print_number(value: float, digits: int = DIGITS) -> str:
    return journal_numbers.print_number(format_with_zeros(value, digits))


def _use_symbols(text: str) -> str:
    """Return a text of the program with τ and γ for their names."""
    return re.sub(r"\btau\b", "τ", re.sub(r"\bgamma\b", "γ", text))


def print_pair(tau: int, gamma: float) -> str:
    """Return a pair of the grid with symbols.

    Examples
    --------
    >>> print_pair(7, 0.00719686)
    'τ = 7 and γ = 0.00720'
    """
    return f"τ = {tau:,} and γ = {_print_number(gamma)}"


def _describe_request(record: Record, data: Dataset | None) -> dict[str, Any]:
    """Return the values of the template on data, preprocessing, models, folds and grid."""
    ask, reading, terms = record.request, record.data.reading, list(record.predictor.coefficients)
    levels, ranked = (reading.levels, reading.ranked_levels) if reading else ({}, {})
    encoded = set(levels) & set(reading.columns if reading else ())
    libraries = [f"{name} {record.versions[key]}" for key, name in LIBRARIES.items() if key in record.versions]
    single = [] if data is None else [term for term in terms if term not in find_levels(record.data.names)]
    columns = [] if data is None else [data.X[:, data.names.index(term)] for term in single]
    return {
        "record": record, "data": data, **_count_cases(record, data),
        "candidates": _list_candidates(record), "MAX_FEATURES_SHOWN": MAX_FEATURES_SHOWN,
        "n_encoded": len(encoded - set(ranked)),
        "ranked": sorted(set(ranked) & set(reading.columns if reading else ())),
        "has_binary_terms": any(np.isin(column, (0.0, 1.0)).all() for column in columns),
        "has_levels": not find_levels(record.data.names).isdisjoint(terms),
        "adjusted": adjustment_columns(record), "compared": _describe_models(record),
        "within": record_words.within_restrictions(record),
        "model_papers": _find_model_papers(record.loss), "libraries": ", ".join(libraries),
        "imputed": _describe_imputed_cells(data),
        "repeated_ids": [note.removeprefix("id: ") for note in record.warnings if note.startswith("id: ")],
        "missing_levels": [name for name, words in levels.items() if ABSENT in words],
        "in_time_order": record_words.is_in_time_order(record),
        "factor_lines": [re.sub(COMMANDS, "", line) for line in factor_lines(record)],
        "grid_sizes": _describe_sizes(sorted(set(ask.taus))), "grid_gammas": _describe_gammas(record),
        "groups": record_words.count_groups(record.folds, data), "folds_text": record_words.describe_folds,
        "outer_folds": record_words.outer_folds, "several": several,
    }  # fmt: skip


def _describe_models(record: Record) -> str:
    """Return the compared models in the words of a paper, as `describe_model_space`."""
    words = record_tables.describe_model_space(record)
    words = re.sub(r"(^|; )with(out)? ", lambda found: f"{found[1]}{'no' if found[2] else 'every'} model with ", words)
    return words.replace("a factor together, counted as", "a factor enter together and count as")


def _list_candidates(record: Record) -> tuple[str, ...]:
    """Return the terms that a model may have; a factor whose levels enter together is one term."""
    limits = restrictions_of(record)
    never = {*limits.force_out, *limits.adjust}
    return words_of_terms([name for name in record.data.names if name not in never], limits.count)


def _count_cases(record: Record, data: Dataset | None) -> dict[str, int]:
    """Return the numbers of rows of the file, of trials and of successes; without data, zeros and the record's rows."""
    if data is None or data.trials is None:
        return {"n_cases": 0 if record.data.trials else record.data.n, "n_trials": 0, "n_successes": 0}
    trials = data.aux[MULTIPLICITY]
    return {
        "n_cases": data.split_into_cases()[0].n, "n_trials": int(trials.sum()), "n_successes": int(trials @ data.y)
    }  # fmt: skip


def _describe_imputed_cells(data: Dataset | None) -> str:
    """Return the number of imputed cells and their columns; empty without data or imputed cells."""
    if data is None or data.holes is None or data.reading is None or not data.reading.filled:
        return ""
    first = {name: data.names.index(data.reading.column_features(name)[0]) for name in data.reading.filled}
    counts = {name: int(data.holes[:, place].sum()) for name, place in first.items()}
    listed = abbreviate_list([f"{quoted_name(name)} ({count:,})" for name, count in counts.items()])
    return f"{several(sum(counts.values()), 'missing value')} of {listed}"


def _describe_outcome(record: Record, data: Dataset | None) -> dict[str, Any]:
    """Return the values of the template on the choice, its certificate, errors and fold models."""
    stable, errors, coefficients = record.stability, record.chosen_folds.error, record.predictor.coefficients
    has_stopped = record_words.has_stopped_early(record)
    methods = record.baselines.methods if record.baselines else ()
    measures = _list_measures(record, data)
    return {
        "positive_terms": [name for name, value in coefficients.items() if value > 0.0],
        "negative_terms": [name for name, value in coefficients.items() if value < 0.0],
        "weighed": stable.chosen if stable and stable.chosen and stable.chosen.weight else None,
        "reason": "the search ended without a proof" if has_stopped else record_tables.MEANING[record.status][1],
        "space": _use_symbols(record_words.search_space(record)), "has_wide_ties": record.has_wide_ties,
        "n_models": int(np.isfinite(errors).sum()), "n_unsolved": int((~record.chosen_folds.decided).sum()),
        **_describe_draws(record),
        "edges": [_use_symbols(re.split("; try|: ", hint)[0]) for hint in record_words.edge_hints(record)],
        "baseline_lines": list(map(_use_symbols, certified_lines(record))),
        "baseline_papers": list(dict.fromkeys(BASELINE_PAPERS[one.method] for one in methods)),
        "other_terms": [
            f"{quoted_name(name)} ({count:,})" for name, count in record.chosen_in().items() if name not in coefficients
        ],
        "measures": measures, "fit": _fit_on_all_rows(record, data),
        "concordance": any(words.startswith(CONCORDANCE) for words in measures),
        "events_per_coefficient": record_words.count_events_per_coefficient(record),
        "follow_up": record_words.describe_follow_up(data),
        "hazard_check": _describe_hazard_check(record, data),
        "separated": separation_lines(record, list(coefficients), data),
        "influential_fold": fold_name(record.folds.spec, data, stable.fold) if data is not None and stable else "",
        "selection_lines": list(map(_move_estimate, record_words.selection_lines(record))),
        "bounds": journal_numbers.describe_bounds, "outward": journal_numbers.round_outward,
        "pair": print_pair, "is_finite": math.isfinite, "EITHER_SIDE": EITHER_SIDE,
    }  # fmt: skip


def _describe_draws(record: Record) -> dict[str, Any]:
    """Return the values of the template on the bootstrap and the tests by splits."""
    features, chosen = (record.bootstrap.features, record.bootstrap.chosen) if record.bootstrap else ((), ())
    frequent = [one for one in features if one.frequency > 0.5 and one.feature not in record.predictor.coefficients]
    splits, factors = record.inference.splits if record.inference else (), restrictions_of(record).count
    support = complete_factors(record.support, factors)
    return {
        "frequent_others": [f"{quoted_name(one.feature)} ({format_percent(one.frequency)})" for one in frequent],
        "n_same": sum(complete_factors(one.support, factors) == support for one in chosen),
        "inclusion_width": math.ceil(max((100.0 * (one.upper - one.lower) for one in features), default=0.0)),
        "has_few_splits": record.inference is not None and len(splits) < FEW_SPLITS,
        "tests_factors": record.inference is not None and bool((record.request.restrictions or NONE).count),
        "significant_terms": _list_significant_terms(record),
        "missing_draws": describe_missing_draws(record),
        "untested": [re.sub(r"^\w+: |;.*", "", split.note) for split in splits if split.note],
        "untested_halves": describe_untested_halves(record),
        "n_failed_tests": count_failed_tests(record),
        "is_cut": is_cut,
        "SELECTED_DRAWS": SELECTED_DRAWS,
        "untested_terms": list_untested_terms(record),
        "untested_levels": find_missing_levels(record),
    }


def _move_estimate(line: str) -> str:
    """Return a line on the stability without its title, with the remark on an estimate at its end.

    Examples
    --------
    >>> _move_estimate("stability (estimate: 1 fold is open): all folds select x"), _move_estimate("stability: none")
    ('all folds select x (estimate: 1 fold is open)', 'none')
    """
    return re.sub(r"stability: |stability( \(.*?\)): (.*)", r"\2\1", line, count=1, flags=re.DOTALL)


def _list_significant_terms(record: Record) -> list[str]:
    """Return the terms whose p-value is at most the family-wise error, with their p-values."""
    outside = {True: "", False: ", not in the reported model"}
    return [
        f"{quoted_name(one.term)} ({f'p = {format_p_value(one.p_value)}'.replace('= <', '< ')}{outside[inside]})"
        for one, inside in find_significant_terms(record)
    ]


def _describe_sizes(taus: list[int]) -> str:
    """Return the sizes of a grid.

    Examples
    --------
    >>> _describe_sizes([3]), _describe_sizes([1, 2, 3]), _describe_sizes([1, 2, 3, 8])
    ('the size τ = 3', '3 sizes τ from 1 to 3', '4 sizes τ (1–3, 8)')
    """
    if len(taus) == 1:
        return f"the size τ = {taus[0]}"
    runs = text_of_taus(taus).replace(":", "–").replace(",", ", ")
    return f"{len(taus)} sizes τ " + (f"({runs})" if "," in runs else f"from {taus[0]} to {taus[-1]}")


def _describe_gammas(record: Record) -> str:
    """Return the ridge weights of the grid, or the interval of gamma."""
    interval, gammas = record.continuous, sorted(set(record.request.gammas))
    ends = gammas if interval is None else [interval.low, interval.high]
    listed = [journal_numbers.print_number(format_number(gamma, DIGITS)) for gamma in ends]
    low, high = listed[0], listed[-1]
    if interval is not None:
        return f"every ridge weight γ from {low} to {high}"
    if len(gammas) == 1:
        return f"the ridge weight γ = {low}"
    if len(gammas) <= MAX_LISTED_GAMMAS:
        return f"{len(gammas)} ridge weights γ ({', '.join(listed)})"
    steps = np.diff(np.log([gamma for gamma in gammas if gamma > 0.0]))
    is_geometric = gammas[0] > 0.0 and np.ptp(steps) <= record_words.EQUAL_RATIOS
    return f"{len(gammas)} ridge weights γ from {low} to {high}{' with equal ratios' if is_geometric else ''}"


def _list_measures(record: Record, data: Dataset | None) -> list[str]:
    """Return further measures of the held-out predictions, with their values; more of two classes with data."""
    classes, explained = record.classes, record.wording.explained.removesuffix(" of held-out rows")
    measures = {"RMSE": record.rmse, "MAE": record.mae} if record.loss.is_quadratic else {}
    if classes is not None:
        measures = {"accuracy (threshold 0.5)": classes.accuracy, "AUC": classes.auc, "Brier score": classes.brier}
        with suppress(BadInput):  # folds from Python
            measures |= {} if data is None else PredictedClasses.from_record(record, data).measure()
    shares = {explained.replace("R^2", "R²"): record.r_squared}
    if record.wording.is_sum_over_rows or record.null_error is None:
        measures |= shares | {f"{record.null_name} of these rows": record.null_error}
    else:
        gain, is_null = record.null_error - record.cv_error, not record.coefficients
        measures |= {record.null_name: record.null_error, "gain over it per event": 0.0 if is_null else gain}
        measures |= {} if is_null else {"standard error of the gain": record.gain_error, **shares}
        with suppress(BadInput):  # folds from Python
            concordance = None if data is None else HeldOutTimes.from_record(record, data).concordance.concordance
            measures |= {CONCORDANCE: concordance}
    known = {name: value for name, value in measures.items() if value is not None and math.isfinite(value)}
    return [f"{name} {_print_number(value)}" for name, value in known.items()]


def _describe_hazard_check(record: Record, data: Dataset | None) -> str:
    """Return the smallest p-value of the check of proportional hazards with its feature; empty without a check."""
    if data is None or not record.wording.has_times or record.data.has_matched_sets or not record.coefficients:
        return ""
    model = FittedHazards.from_record(record, data)
    first, count = model.doubtful_first[0], len(model.names)
    value = format_p_value(float(model.check.p_value[first]))
    adjusted = f"; not adjusted for {count} tests or for the choice of the terms" if count > 1 else ""
    return f"{value} ({quoted_name(model.names[first])}{adjusted})"


def _fit_on_all_rows(record: Record, data: Dataset | None) -> Any:
    """Return the criteria of a logistic or Poisson model on all rows; None without data or with squared error."""
    if data is None or record.loss.is_quadratic:
        return None
    from sparsecv_mio.fits.criteria import glm_criteria

    return glm_criteria([record], data, record.data.intercept != Intercept.NONE, record)[0]
