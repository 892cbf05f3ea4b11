"""What to try next: where the best pair is on an edge of the grid, a better one may lie beyond it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsecv_mio.certificate.record import PathRecord, Record, TableRow
from sparsecv_mio.grids import text_of_taus
from sparsecv_mio.report.region import open_rows
from sparsecv_mio.restrictions import NONE
from sparsecv_mio.units import MAIN_SHARE

LEAST_GAMMAS = 5  # of a range that a hint proposes
WHOLE_LIMIT = 0.95  # of a time limit, from which on it is the limit that ended a run
NO_RIDGE = 1e-6  # smaller weights hardly change the fit: no wider range is proposed


def ended_by_itself(record: Record | PathRecord) -> bool:
    """Whether a run without a proof ended before its time limit: a longer one would change nothing."""
    limit = record.request.time_limit
    if limit is not None and isinstance(record, Record) and record.nested is not None:
        limit *= MAIN_SHARE / (record.nested.outer.k + MAIN_SHARE)
    return record.status == "limit" and (limit is None or record.work.seconds < WHOLE_LIMIT * limit)


def hints(record: Record) -> list[str]:
    """Return a sentence for each edge of the grid that the best pair is on, unless the grid cannot be extended there.

    It cannot beyond tau = p, nor beyond the number of rows of a training set. Where some pairs have no CV error at
    all, the hint is to let the search try them; where a limit came before the proof, which options would complete it.
    """
    if ended_by_itself(record) and not record.descent:
        return [
            "more time would prove no more: the method had no step left, or its MIO budget was spent; a larger gamma, "
            "a smaller tau or fewer columns are easier to prove"
        ]
    if record.estimate and not record.descent and not all(math.isfinite(row.cv_error) for row in record.table):
        limited = record.request.time_limit is not None
        return ["a longer --time-limit or fewer pairs (--gamma, --tau) let it try and prove more"] if limited else []
    return [text for text in (_proof_hint(record), _gamma_hint(record), _tau_hint(record)) if text]


def _proof_hint(record: Record) -> str:
    """Return which options make the proof complete, as far as what was proved here tells."""
    rows, advice = open_rows(record), record.advice
    if advice is None or not rows:
        return ""
    parts = [f"--{name} {value}" for name, value in (("tau", advice.tau), ("gamma", advice.gamma)) if value]
    proved = f"the smaller grid {' or '.join(parts)} is proved already" if parts else _simpler(record, rows)
    if record.request.time_limit is None:
        return proved
    longer = "a longer --time-limit proves more"
    if advice.time_limit is not None:
        longer = f"--time-limit {advice.time_limit:.0f} may prove the whole grid (as the costs grew so far)"
    return f"{proved}; {longer}" if proved else longer


def _simpler(record: Record, rows: Sequence[TableRow]) -> str:
    """Return how many pairs with no more features than the best one are not excluded, if that is a smaller grid."""
    best = record.certificate.tau
    simple = sum(row.tau <= best for row in rows)
    if simple == len(rows):
        return ""
    taus = text_of_taus(tau for tau in record.request.taus if tau <= best)
    return f"--tau {taus} is a smaller grid to prove, with {simple:,} of these {len(rows):,} pairs"


def _best(record: Record, name: str) -> str:
    return f"the best {name}" if record.least is None else f"the {name} of the least CV error"


def _gamma_hint(record: Record) -> str:
    gammas = record.request.gammas
    least, most, count = min(gammas), max(gammas), max(len(gammas), LEAST_GAMMAS)
    if least == most:
        return ""
    best = record.certificate.gamma
    if best >= most:
        return f"{_best(record, 'gamma')} is the largest given: try --gamma {most / 100:.4g}:{most * 10:.4g}:{count}"
    if best <= least and least > NO_RIDGE:
        return f"{_best(record, 'gamma')} is the smallest given: try --gamma {least / 10:.4g}:{least * 100:.4g}:{count}"
    return ""


def _tau_hint(record: Record) -> str:
    taus = record.request.taus
    least, most = min(taus), max(taus)
    if least > 0 and record.r_squared is not None and record.r_squared < 0.0:
        return f"R^2 is below 0, the mean of the target alone may predict better: --tau 0:{most} tries it"
    if least == most:
        return ""
    held_out = -(-record.data.n // max(record.folds.k, 2))
    natural = max(1, min((record.request.restrictions or NONE).left(record.data.p), record.data.n - held_out - 1))
    best = record.certificate.tau
    if best == most < natural:
        wider = f"{max(least, most // 2)}:{min(2 * most, natural)}"
        return f"{_best(record, 'tau')} is the largest given: try --tau {wider}"
    if best == least == 1:
        return f"{_best(record, 'tau')} is the smallest given: --tau 0:{most} has the intercept alone too"
    if best == least > 0:
        return f"{_best(record, 'tau')} is the smallest given: try --tau {max(0, least // 2)}:{most}"
    return ""
