"""What `verify` does with every field of a record: recomputed, bounded, or only read.

One table per schema, by the path of the field (`table[].lower`). A test walks the dataclasses and holds the tables
complete; `sparsecv verify` prints them, docs/cli.md lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

ENUMERATE_PAIR = 15  # features that vary up to which the reported pair is enumerated
ENUMERATE_GRID = 12  # and the whole grid


class Level(IntEnum):
    """How far supports are tried: every pair, the reported pair and the least bound, or neighbours only."""

    GRID = 0
    PAIR = 1
    NEIGHBOURS = 2


@dataclass(frozen=True)
class Treatment:
    """How one field is checked at the three levels: `recomputed`, `bounded: by what`, or `read`."""

    grid: str
    pair: str
    neighbours: str

    def at(self, level: Level) -> str:
        """Return the words of one level."""
        return (self.grid, self.pair, self.neighbours)[level]


def _always(words: str) -> Treatment:
    return Treatment(words, words, words)


def _to_pair(words: str, neighbours: str) -> Treatment:
    return Treatment(words, words, neighbours)


def _to_grid(words: str, beyond: str) -> Treatment:
    return Treatment(words, beyond, beyond)


DONE = _always("recomputed")
READ = _always("read")
ROWS = "bounded: recomputed for decided pairs, by the true h for others"
WITHIN = "bounded: by the row's own interval where it is decided"
TWO_ROWS = f"bounded: of the reported pair and the one of the least lower bound as up to p = {ENUMERATE_GRID}"
ASKED = _always("bounded: one that was asked for, or null")
RULE = "bounded: the rule applied to the table"

DATA: Mapping[str, Treatment] = {
    "data.n": DONE,
    "data.p": DONE,
    "data.target": DONE,
    "data.fingerprint": DONE,
    "data.scale": _always("bounded: a known word, with which every refit must agree"),
    "data.intercept": _always("bounded: a known word, with which every refit must agree"),
    "data.names": DONE,
}

RUN: Mapping[str, Treatment] = {
    "work.mios": READ,
    "work.nodes": READ,
    "work.seconds": READ,
    "work.engine": READ,
    "work.oracles[].oracle": READ,
    "work.oracles[].asked": READ,
    "work.oracles[].mios": READ,
    "work.oracles[].relaxations": READ,
    "work.oracles[].columns": READ,
    "work.oracles[].hits": READ,
    "work.oracles[].rows": READ,
    "work.oracles[].nodes": READ,
    "work.oracles[].seconds": READ,
    "request.time_limit": READ,
    "request.threads": READ,
    "warnings": READ,
    "versions": READ,
}

BOUNDS_OF_FIT = Treatment(
    "bounded: by the least objective of all supports",
    "bounded: by the least objective of all supports",
    "bounded: by the objective, lower also by those of all exchanges of one column",
)
PROVED = _always("bounded: upper - lower at most the requested gap, 1e-9 at least")

RECORD: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where upper - lower <= gap upper + tie_width + allowance; else read"),
    "gamma": _always("bounded: the least upper bound of the table"),
    "tau": _always("bounded: the least upper bound of the table"),
    "cv_error": DONE,
    "lower": Treatment("recomputed", "bounded: the least of the table", "bounded: the least of the table"),
    "upper": Treatment(ROWS, ROWS, "bounded: the table's; at least cv_error where every fold is decided"),
    "gap": DONE,
    "tie_width": _to_pair(
        "bounded: by the ties of the pair with the least lower bound",
        "bounded: by upper - lower of the pair with the least lower bound",
    ),
    "allowance": _to_pair(
        "bounded: by 1e-6 h + 2 r sqrt(h) + r^2, r the rounding of a residual",
        "bounded: by 1e-6 h + 2 r sqrt(h) + r^2, r the rounding of a residual, and as tie_width",
    ),
    "r_squared": DONE,
    "support": DONE,
    "coefficients": DONE,
    "intercept": DONE,
    "one_se.gamma": _always(RULE),
    "one_se.tau": _always(RULE),
    "one_se.cv_error": _always("bounded: the table's"),
    "one_se.lower": _always("bounded: the table's"),
    "one_se.upper": _always("bounded: the table's"),
    "one_se.standard_error": DONE,
    "one_se.estimate": _always("bounded: no open pair of the table could change the rule, or true"),
    "refit.gamma": _always("bounded: the reported pair, or the one-SE pair"),
    "refit.tau": _always("bounded: the reported pair, or the one-SE pair"),
    "refit.objective": DONE,
    "refit.lower": BOUNDS_OF_FIT,
    "refit.upper": BOUNDS_OF_FIT,
    "refit.proved": PROVED,
    "table[].gamma": _always("bounded: the requested grid, once"),
    "table[].tau": _always("bounded: the requested grid, once"),
    "table[].cv_error": Treatment(ROWS, TWO_ROWS, WITHIN),
    "table[].lower": Treatment(ROWS, TWO_ROWS, "read"),
    "table[].upper": Treatment(ROWS, TWO_ROWS, "read"),
    "table[].folds_decided": _to_grid(
        "bounded: in 0 .. folds; of the reported pair the folds that are decided; all decided: the true h",
        "bounded: in 0 .. folds; of the reported pair the folds that are decided",
    ),
    "table[].folds": DONE,
    "table[].estimate": DONE,
    "table[].status": DONE,
    "chosen_folds[].fold": DONE,
    "chosen_folds[].support": Treatment(
        "bounded: optimal where decided",
        "bounded: optimal where decided",
        "bounded: where decided no exchange of one column and no other support of the record is better",
    ),
    "chosen_folds[].decided": _always("bounded: true in `folds_decided` folds of the pair; as support"),
    "chosen_folds[].error": DONE,
    **DATA,
    "folds.spec": DONE,
    "folds.seed": DONE,
    "folds.k": DONE,
    "folds.digest": DONE,
    "request.gammas": _always("bounded: the grid of the table"),
    "request.taus": _always("bounded: the grid of the table"),
    "request.gap": _always("bounded: in [0, 1); status must agree with it"),
    "request.one_se": _always("bounded: one_se is there"),
    **RUN,
    "request.method": READ,
    "request.method_used": READ,
    "request.backend": READ,
    "request.formulation": READ,
    "request.engine": READ,
    "request.mio_budget": READ,
    "request.refine": READ,
    "request.tau_step": READ,
    "request.oracles": READ,
    "refined.gamma": READ,
    "refined.tau": _always("bounded: the answer's"),
    "refined.cv_error": _to_grid(
        "recomputed unless an estimate, which is bounded by lower and upper",
        "bounded: by its own lower and upper",
    ),
    "refined.lower": _to_grid(
        "bounded: by the true h, which it is unless an estimate",
        "bounded: by cv_error",
    ),
    "refined.upper": _to_grid(
        "bounded: by the true h, which it is unless an estimate, and the answer's upper",
        "bounded: by the answer's upper",
    ),
    "refined.estimate": Treatment("bounded: the rest must be the true h, or true", "read", "read"),
    "descent[].move": _always("bounded: a start, then gamma or line"),
    "descent[].gamma": _always("bounded: the last one accepted is the answer's; else read"),
    "descent[].tau": _always("bounded: one that was asked for"),
    "descent[].upper": _to_grid(
        "bounded: by the true h, and by the gap where proved; accepted ones fall",
        "bounded: accepted ones fall, the last is the answer's",
    ),
    "descent[].cv_error": _always("bounded: by upper; the last one accepted is the answer's"),
    "descent[].accepted": _always("bounded: better than where the descent stood, or not"),
    "estimate": DONE,
    "region.up_to_tau": ASKED,
    "region.from_gamma": ASKED,
    "region.gamma": _always("bounded: the least upper bound of the region"),
    "region.tau": _always("bounded: the least upper bound of the region"),
    "region.cv_error": _always("bounded: the table's"),
    "region.lower": _always("bounded: the least of the region"),
    "region.upper": _always("bounded: the table's; upper - lower <= gap upper + tie_width + allowance"),
    "region.tie_width": _to_grid(
        "bounded: by the ties of the region's pair with the least lower bound",
        "bounded: by upper - lower of the region's pair with the least lower bound",
    ),
    "region.allowance": _to_grid(
        "bounded: by 1e-6 h + 2 r sqrt(h) + r^2, r the rounding of a residual",
        "bounded: by upper - lower of the region's pair with the least lower bound",
    ),
}

PATH: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where every row is; else read"),
    "path[].gamma": _always("bounded: the requested grid, once"),
    "path[].tau": _always("bounded: the requested grid, once"),
    "path[].support": DONE,
    "path[].coefficients": DONE,
    "path[].intercept": DONE,
    "path[].objective": DONE,
    "path[].lower": BOUNDS_OF_FIT,
    "path[].upper": BOUNDS_OF_FIT,
    "path[].proved": PROVED,
    **DATA,
    "request.gammas": _always("bounded: the grid of the path"),
    "request.taus": _always("bounded: the grid of the path"),
    "request.gap": _always("bounded: in [0, 1); proved must agree with it"),
    "request.one_se": READ,
    **RUN,
}

FIT: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "backend": READ,
    "formulation": READ,
    "status": _always("bounded: `proved` where upper - lower <= requested_gap upper + allowance; else read"),
    "tau": _always("bounded: at least the features of the support"),
    "gamma": _always("bounded: the objective must agree with it"),
    "support": _always("bounded: features of the data; that no other is better is read"),
    "coefficients": DONE,
    "intercept": DONE,
    "objective": DONE,
    "lower": _always("bounded: by the objective"),
    "upper": _always("bounded: by the objective"),
    "gap": DONE,
    "requested_gap": _always("bounded: in [0, 1); status must agree with it"),
    "allowance": _always("bounded: by a thousandth of upper and 4e-6 of the targets' sum of squares"),
    "nodes": READ,
    "cuts": READ,
    "seconds": READ,
    "setup_seconds": READ,
    "stop": READ,
    "raw_status": READ,
    **DATA,
    "warnings": READ,
    "versions": READ,
}


def part_of(path: str) -> str:
    """Return the field of the record that a path begins with.

    Examples
    --------
    >>> part_of("table[].gamma"), part_of("gap")
    ('table', 'gap')
    """
    return path.partition(".")[0].removesuffix("[]")


def grouped(
    table: Mapping[str, Treatment], level: Level, absent: Collection[str] = ()
) -> list[tuple[str, list[str]]]:
    """Group fields by treatment at one level: recomputed first, only read last.

    Parameters
    ----------
    table : mapping of str to Treatment
        By the path of the field.
    level : Level
    absent : collection of str, optional
        Parts of the record that are not there.

    Returns
    -------
    list of (treatment, list of paths)
        A part whose fields are all treated alike stands for them.
    """
    groups: dict[str, list[str]] = {}
    for part in dict.fromkeys(part_of(path) for path in table if part_of(path) not in absent):
        inside = {path: treatment.at(level) for path, treatment in table.items() if part_of(path) == part}
        alike = len(set(inside.values())) == 1
        for path, words in [(part, next(iter(inside.values())))] if alike else inside.items():
            groups.setdefault(words, []).append(path)
    order = {"recomputed": 0, "read": 2}
    return sorted(groups.items(), key=lambda item: order.get(item[0], 1))
