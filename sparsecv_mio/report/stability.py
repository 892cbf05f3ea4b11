"""How stable the model is, in lines for the screen and the report."""

from __future__ import annotations

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.stability import Stability, WeighedChoice
from sparsecv_mio.report.layout import quoted
from sparsecv_mio.report.numbers import interval_digits, marked, shown

MOST_NAMED = 12  # features that are not in every fold


def stability_lines(record: Record) -> list[str]:
    """Return lines on the folds that chose each feature, and on the largest change that a fold makes."""
    return [*_chosen_in(record), *([] if record.stability is None else [_change(record, record.stability)])]


def _chosen_in(record: Record) -> list[str]:
    """Say which features of the model every fold chose, how many folds the others, and what folds chose besides."""
    counts, k = record.chosen_in(), record.folds.k
    model, everywhere = set(record.support), [name for name, count in counts.items() if count == k]
    kept = sum(name in model for name in everywhere)
    fitted = f"the {k} models, each fitted without one fold,"
    if not counts:
        return []
    if kept == len(model) and len(counts) == len(model):
        return [f"stability: {fitted} all have the features of this model"]
    some = [f"{quoted(name)} in {count}" for name, count in counts.items() if name in model and count < k]
    besides = [f"{quoted(name)} in {count}" for name, count in counts.items() if name not in model]
    parts = [f"{fitted} all have {kept} of the {len(model)} features of this model"]
    parts += [f"of the others {_listed(some)}"] if some else []
    parts += [f"not in this model: {_listed(besides)}"] if besides else []
    return [f"stability: {'; '.join(parts)}"]


def _listed(words: list[str]) -> str:
    more = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _change(record: Record, stable: Stability) -> str:
    """Say how much leaving out a fold changes the squared errors."""
    value = marked(shown(stable.instability, 4), stable.estimate)
    share = f" ({100.0 * stable.instability / record.cv_error:.0f}% of the CV error)" if record.cv_error > 0.0 else ""
    ends = f", certified in [{shown(stable.instability_lower, 4)}, {shown(stable.instability_upper, 4)}]"
    where = f"fold {stable.fold + 1} matters most: without it the model's squared errors change by {value}"
    return f"{where} on average over all rows{share}{ends if stable.estimate else ''}"


def choice_lines(record: Record) -> list[str]:
    """Return lines on the pair that a weight of the instability chooses; none where no weight was asked for."""
    stable = record.stability
    if stable is None or stable.chosen is None:
        return ["stable pair: not known, the limit came before the folds were"] if record.request.stability else []
    chosen = stable.chosen
    digits = interval_digits([(chosen.lower, chosen.upper)])
    certified = f"[{shown(chosen.lower, digits)}, {shown(chosen.upper, digits)}]"
    proof = "proved" if chosen.proved else "not proved"
    what = f"the pair with the least CV error + {shown(chosen.weight)} x instability"
    return [f"stable pair: {what}, {proof}: the least sum is in {certified}", *_tried(chosen)]


def _tried(chosen: WeighedChoice) -> list[str]:
    """Say which weights nested cross-validation tried."""
    if chosen.outer is None:
        return []
    errors = ", ".join(f"{shown(one.weight)}: {shown(one.error, 4)}" for one in chosen.tried)
    done, k = len(chosen.tried[0].folds), chosen.outer.k
    folds = f"{k} outer folds" if done == k else f"{done} of {k} outer folds"
    return [f"weight {shown(chosen.weight)} by nested CV over {folds}, error by weight: {errors}"]
