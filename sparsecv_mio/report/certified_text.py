"""Sentences of a paper on a result: its pair, the certificate, and errors.

They state only what the record certifies, and name estimates. They use the symbols τ and γ, which the LaTeX format
writes as formulas.
"""

from __future__ import annotations

import math
import re

from sparsecv_mio.certificate.records import EITHER_SIDE, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import format_number, several
from sparsecv_mio.report import record_tables, record_words
from sparsecv_mio.report.coefficients import scatter_lines
from sparsecv_mio.report.journal_numbers import BOUND_DIGITS, DIGITS, round_number, round_outward

HELD_OUT = " of held-out rows"
SYMBOLS = {"tau": "τ", "gamma": "γ"}


def symbolic(text: str) -> str:
    """Return a text of the program with τ and γ for their names.

    Examples
    --------
    >>> symbolic("the smallest tau, then the largest gamma")
    'the smallest τ, then the largest γ'
    """
    return re.sub(r"\b(tau|gamma)\b", lambda word: SYMBOLS[word[0]], text)


def pair_in_symbols(tau: int, gamma: float) -> str:
    """Return a pair of the grid with symbols.

    Examples
    --------
    >>> pair_in_symbols(7, 0.00719686)
    'τ = 7 and γ = 0.00720'
    """
    return f"τ = {tau:,} and γ = {round_number(gamma)}"


def state_choice(record: Record) -> list[str]:
    """Return the sentences on the rule that chose the pair, and on the certificate of the minimum CV error."""
    best, subject = record.certificate, "This pair has"
    lines = [] if record.rule == "the minimum CV error" else [_describe_rule(record)]
    if record.least is not None:
        subject = f"The pair {pair_in_symbols(best.tau, best.gamma)} has"
    where = symbolic(record_tables.search_space(record))
    if record.status == "proved":
        ties = ", which is due to tied subsets" if record_tables.has_wide_ties(record) else ""
        gap = record_words.round_share_up(best.gap)
        lines.append(f"{subject} the minimum CV error {where}, certified up to a relative gap of {gap}{ties}.")
    else:
        why = record_tables.MEANING[record.status][1]
        why = "the search ended without a proof" if record_words.has_stopped_early(record) else why
        lines.append(f"{subject} the smallest CV error found {where}; it is not certified to be the minimum ({why}).")
    ends = _describe_bounds(best.lower, best.upper)
    return [*lines, f"The minimum is certified to be {ends}." if ends else "No bound on the minimum is certified."]


def _describe_bounds(lower: float, upper: float) -> str:
    """Return certified bounds, rounded outward; empty if they exclude nothing.

    Examples
    --------
    >>> _describe_bounds(0.51134, 0.54642), _describe_bounds(0.0, 0.54642), _describe_bounds(0.0, math.inf)
    ('between 0.5113 and 0.5465', 'at most 0.5465', '')
    """
    low, high = round_outward(lower, upper)
    if not math.isfinite(upper):
        return f"at least {low}" if lower > 0.0 else ""
    return f"between {low} and {high}" if lower > 0.0 else f"at most {high}"


def _describe_rule(record: Record) -> str:
    """Return the sentence on a rule other than the minimum CV error."""
    how, chosen = "", None if record.stability is None else record.stability.chosen
    if record.one_se is not None:
        error = round_number(record.one_se.standard_error, 2)
        how = ": the smallest τ, then the largest γ, with a CV error of at most the minimum plus its standard error, "
        how += error
    elif chosen is not None:
        how = f": the minimum of the CV error plus {format_number(chosen.weight)} times the instability"
    settled = "certified" if record.is_settled else "not certified"
    return f"The pair was chosen by {record.rule}{how} (choice {settled})."


def state_error(record: Record) -> str:
    """Return the sentence on the CV error of the pair."""
    if not math.isfinite(record.cv_error):
        return "The CV error of this pair is not known."
    own, digits = record.own_row, DIGITS if record.estimate else BOUND_DIGITS
    error = f"CV error of this pair ({record.loss.target.cv_error}): {round_number(record.cv_error, digits)}"
    more = []
    if record.estimate:
        more = [f"an estimate, perhaps {EITHER_SIDE}"]
        more += [] if own is None else [f"{own.folds_decided:,} of {several(own.folds, 'fold')} solved"]
    if own is not None and own.standard_error is not None:
        more.append(f"standard error over the folds {round_number(own.standard_error, 2)}")
    return f"{error} ({'; '.join(more)})." if more else f"{error}."


def state_subset(record: Record) -> str:
    """Return the sentence on the optimality of the subset on all rows."""
    among = "among all subsets of at most τ terms at this γ"
    among += " that the restrictions allow" if record.request.restrictions else ""
    if record.refit.proved:
        return f"On all rows, the subset of this model is certified to minimise the training objective {among}."
    ends = _describe_bounds(record.refit.lower, record.refit.upper) or "not bounded"
    return f"On all rows, the subset is not certified to be the best {among}: the minimum objective is {ends}."


def describe_results(record: Record, data: Dataset | None) -> list[str]:
    """Return the sentences of a results section, without the coefficients.

    Parameters
    ----------
    record : Record
        Record of a cross-validation.
    data : Dataset, optional
        Data of the record, for the fit of a logistic or Poisson model to all rows.
    """
    pair = pair_in_symbols(record.tau, record.gamma)
    lines = [f"The reported pair is {pair}.", *state_choice(record), state_error(record), *_state_measures(record)]
    if (nested := record.nested) is not None:
        spread = "" if nested.standard_error is None else f" (standard error {round_number(nested.standard_error, 2)})"
        folds = record_words.outer_folds(len(nested.folds), nested.outer.k)
        lines.append(
            f"The nested CV error of the whole procedure, over {folds}, is {round_number(nested.error)}{spread}."
        )
    lines += [] if record.average is not None else [state_subset(record)]
    more = [*scatter_lines(record, record, data), *record_words.average_lines(record)]
    more += record_words.stability_lines(record, data)
    return [*lines, *(f"{line[0].upper()}{line[1:]}." for line in more)]


def _state_measures(record: Record) -> list[str]:
    """Return the sentence on further measures of the held-out predictions, which are not certified."""
    target, found = record.loss.target, dict[str, float | None]()
    if record.loss.is_quadratic:
        found = {"RMSE": record.rmse, "MAE": record.mae}
    elif record.classes is not None:
        classes = record.classes
        found = {"accuracy": classes.accuracy, "AUC": classes.auc, "Brier score": classes.brier}
    explained = target.explained.removesuffix(HELD_OUT).replace("R^2", "R²")
    found |= {explained: record.r_squared, record.null_name: record.null_error}
    known = [
        f"{name} {round_number(value)}" for name, value in found.items() if value is not None and math.isfinite(value)
    ]
    mark = ", estimates" if record.estimate else ""
    return [f"Other measures on held-out rows (not certified{mark}): {', '.join(known)}."] if known else []
