"""Where the best pair is proved, and which pairs are not excluded, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sparsecv_mio.certificate.record import Record, Region, TableRow


def covered(up_to_tau: int | None, from_gamma: float | None, taus: Sequence[int]) -> str:
    """Name a part of the grid.

    Parameters
    ----------
    up_to_tau : int or None
        The largest tau of which every gamma is in.
    from_gamma : float or None
        The least gamma of which every tau is in.
    taus : sequence of int
        That were asked for.

    Returns
    -------
    str

    Examples
    --------
    >>> covered(9, 1.0, range(1, 31)), covered(None, 0.5, [1, 2])
    ('tau 1:9 at every gamma, every tau at gamma >= 1', 'every tau at gamma >= 0.5')
    """
    if up_to_tau == max(taus):
        return "the whole grid"
    parts = []
    if up_to_tau is not None:
        parts.append(f"tau {span([tau for tau in taus if tau <= up_to_tau])} at every gamma")
    if from_gamma is not None:
        parts.append(f"every tau at gamma >= {from_gamma:.4g}")
    return ", ".join(parts)


def span(values: Collection[float]) -> str:
    """Write the ends of some numbers.

    Examples
    --------
    >>> span([3, 4, 9]), span([0.001])
    ('3:9', '0.001')
    """
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g}:{high:.4g}"


def open_rows(record: Record) -> list[TableRow]:
    """Return the pairs that may have the least CV error after all, that of the least one found left out."""
    chosen = (record.certificate.gamma, record.certificate.tau)
    return [row for row in record.table if row.status == "open" and (row.gamma, row.tau) != chosen]


def region_lines(record: Record) -> list[str]:
    """Say where the best pair of a record is proved and how good the pairs are that cannot be excluded.

    Nothing where the whole grid is proved, of a descent, and of records that do not say it.
    """
    region, rows = record.region, open_rows(record)
    if record.status == "proved" or record.descent or not any(row.status for row in record.table):
        return []
    lines = []
    if region is not None:
        where = covered(region.up_to_tau, region.from_gamma, record.request.taus)
        lines.append(f"proved among {where}: {_best(record, region)}")
    if rows:
        lines.append(_not_excluded(record, rows))
    return lines


def _best(record: Record, region: Region) -> str:
    """Say which pair is the best of a region."""
    inside = (region.up_to_tau is not None and region.tau <= region.up_to_tau) or (
        region.from_gamma is not None and region.gamma >= region.from_gamma
    )
    best = record.certificate
    if (region.gamma, region.tau) == (best.gamma, best.tau):
        which = "the reported pair" if record.least is None else "the pair with the least CV error"
        return f"{which} is the best of them" if inside else f"none of them is better than {which}"
    pair = f"tau = {region.tau}, gamma = {region.gamma:.4g}, CV error {region.cv_error:.6g}"
    return f"the best of them is {pair}" if inside else f"none of them is better than {pair}"


def _not_excluded(record: Record, rows: Sequence[TableRow]) -> str:
    """Return a line on the pairs that cannot be excluded."""
    pairs = f"{len(rows):,} other pair{'' if len(rows) == 1 else 's'}"
    where = f"tau {span({row.tau for row in rows})}, gamma {span({row.gamma for row in rows})}"
    found = _estimate(record.certificate.cv_error, min(row.cv_error for row in rows))
    return f"not excluded: {pairs} ({where}); {found}"


def _estimate(reported: float, best: float) -> str:
    """Compare the best estimate of some pairs with the least CV error found."""
    if not best < float("inf") or not reported > 0.0:
        return "they have no estimate" if best == float("inf") else "their best estimate is no better"
    worse = 100.0 * (best / reported - 1.0)
    shown = f"{worse:.0f}" if worse >= 9.95 else f"{worse:.2g}"
    return f"their best estimate is {shown}% worse" if worse >= 0.01 else "their best estimate is as good"
