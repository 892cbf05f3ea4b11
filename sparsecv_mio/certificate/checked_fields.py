"""What a verification found, and what it does with every field of a record: recomputed, bounded, or only read.

What `verify` does with every field of a record: recomputed, bounded, or only read.

One table per schema, by the path of the field (`table[].lower`). A test walks the dataclasses and holds the tables
complete; `sparsecv verify` prints them, docs/cli.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from sparsecv_mio.errors import VerificationFailed


@dataclass(frozen=True)
class Failure:
    """A field of the record that disagrees with the data or with the rest of the record."""

    field: str
    message: str


@dataclass(frozen=True)
class VerifyReport:
    """What was recomputed, what was only read, what disagrees.

    Attributes
    ----------
    verified : tuple of str
        Parts in which everything agrees.
    reread : tuple of str
        What was only read: fields, and checks left out for their cost.
    failures : tuple of Failure
    caveat : str
        What the record claims and this verification could not prove; empty if there is no such thing.
    fields : tuple of (treatment, tuple of fields)
        How every field was treated, see :mod:`sparsecv_mio.certificate.checked_fields`.
    """

    verified: tuple[str, ...]
    reread: tuple[str, ...]
    failures: tuple[Failure, ...]
    caveat: str = ""
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing disagrees."""
        return not self.failures

    def raise_if_failed(self) -> None:
        """Raise `VerificationFailed` for the first failure; its message names the field."""
        if self.failures:
            first = self.failures[0]
            more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
            raise VerificationFailed(f"verification failed: field {first.field}: {first.message}{more}", first.field)


@dataclass
class Checks:
    """Collects the outcome of one check after another."""

    verified: list[str] = field(default_factory=list)
    reread: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    caveat: str = ""
    fields: list[tuple[str, list[str]]] = field(default_factory=list)
    unproved: set[str] = field(default_factory=set)
    progress: Callable[[int, int], None] | None = None

    def that(self, holds: bool, name: str, message: str) -> bool:
        """Note a failure unless something holds; return whether it does.

        Parameters
        ----------
        holds : bool
        name : str
            Path of the field.
        message : str
            What is wrong with it.
        """
        if not holds:
            self.failures.append(Failure(name, message))
        return holds

    def equal(self, name: str, said: object, found: object) -> bool:
        """Note a failure unless the record says what the data give.

        Parameters
        ----------
        name : str
            Path of the field.
        said, found : object
        """
        return self.that(said == found, name, f"the record says {said!r:.60}, the data give {found!r:.60}")

    def close(self, name: str, said: float, found: float, tolerance: float) -> bool:
        """Note a failure unless the record says nearly what was recomputed.

        Parameters
        ----------
        name : str
            Path of the field.
        said, found : float
        tolerance : float
            Largest difference, in their unit.
        """
        holds = said == found or abs(said - found) <= tolerance
        return self.that(holds, name, f"the record says {said!r}, recomputed {found!r}")

    def only_read(self, name: str, why: str) -> None:
        """Note that a field which could be recomputed of another record is only read of this one.

        Parameters
        ----------
        name : str
            Path of the field.
        why : str
        """
        self.unproved.add(name)
        self.reread.append(f"{name} ({why})")

    def tell(self, done: int, total: int) -> None:
        """Say how much of a part that takes long is done.

        Parameters
        ----------
        done, total : int
        """
        if self.progress is not None:
            self.progress(done, total)

    def part(self, name: str, before: int) -> None:
        """Add a verified part unless a check since `before` failures has failed."""
        if len(self.failures) == before:
            self.verified.append(name)

    def report(self) -> VerifyReport:
        """Return what was found so far."""
        proved = [(words, tuple(name for name in names if name not in self.unproved)) for words, names in self.fields]
        treated = tuple((words, names) for words, names in proved if names)
        only_read = tuple(", ".join(names) for words, names in treated if words == "read")
        return VerifyReport(
            tuple(self.verified), (*self.reread, *only_read), tuple(self.failures), self.caveat, treated
        )


ENUMERATE_PAIR = 15  # features that vary up to which the reported pair is enumerated
ENUMERATE_GRID = 12  # and the whole grid
MOST_CELLS = 3000  # folds of pairs whose optima are enumerated for their instability


class EnumerationLevel(IntEnum):
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

    def at(self, level: EnumerationLevel) -> str:
        """Return the words of one level."""
        return (self.grid, self.pair, self.neighbours)[level]


def _always(words: str) -> Treatment:
    return Treatment(words, words, words)


def _to_pair(words: str, neighbours: str) -> Treatment:
    return Treatment(words, words, neighbours)


def _to_grid(words: str, beyond: str) -> Treatment:
    return Treatment(words, beyond, beyond)


def _each(part: str, fields: str, treatment: Treatment) -> dict[str, Treatment]:
    """Treat several fields of a part alike; `part` stands before their names."""
    return {part + field: treatment for field in fields.split()}


def _folds(name: str) -> dict[str, Treatment]:
    """Treat the folds of a pair."""
    optimal = _to_pair(
        "bounded: optimal where decided",
        "bounded: where decided no exchange of one column and no other support of the record is better",
    )
    decided = _always("bounded: true in `folds_decided` folds of the pair; as support")
    return {f"{name}[].{field}": how for field, how in (
        ("fold", DONE), ("support", optimal), ("decided", decided), ("error", DONE)
    )}  # fmt: skip


DONE = _always("recomputed")
READ = _always("read")
ROWS = "bounded: recomputed for decided pairs, by the true h for others"
THREE_ROWS = f"bounded: of the reported pair and those of the least lower and upper bound as up to p = {ENUMERATE_GRID}"
GRID_ONCE = _always("bounded: the requested grid, once")

DATA: Mapping[str, Treatment] = {
    **_each("data.", "n p target fingerprint", DONE),
    **_each("data.", "scale intercept", _always("bounded: a known word, with which every refit must agree")),
    "data.names": DONE,
    "data.weights": _always("bounded: the rows that it weighs are those of the fingerprint"),
    "data.total_weight": DONE,
    **_each("data.reading.", "columns means levels left_out", DONE),
    **_each(
        "data.reading.",
        "sep decimal thousands comment encoding header index_col na encode",
        _always("bounded: rows so read are those of the fingerprint"),
    ),
}

RUN: Mapping[str, Treatment] = {
    **_each("work.", "mios nodes seconds engine", READ),
    **_each("work.oracles[].", "oracle asked mios relaxations columns hits rows nodes seconds", READ),
    **_each("", "request.time_limit request.threads warnings versions", READ),
    **_each(
        "request.restrictions.",
        "force_in force_out at_most[].count at_most[].features hierarchy[].feature hierarchy[].parents "
        "hierarchy[].every nonnegative nonpositive",
        _always("bounded: every support keeps to it"),
    ),
}

BOUNDS_OF_FIT = _to_pair(
    "bounded: by the least objective of all supports",
    "bounded: by the objective, lower also by those of all exchanges of one column",
)
CHANGES = _to_pair(
    "bounded: by the changes of the true optima", "bounded: on both sides of instability; how far from it is read"
)
PROVED = _always("bounded: upper - lower at most the requested gap, 1e-9 at least")


def _certificate(path: str, own: str = "") -> dict[str, Treatment]:
    """Treat what is certified of the least CV error; `own` says what else it may be of."""
    ties, rounding = "by the ties of the pair with the least lower bound", "r the rounding of a residual"
    width = "by upper - lower of the pair with the least lower bound"
    room = f"bounded: by 1e-6 h + 2 r sqrt(h) + r^2, {rounding}"
    least = f"bounded: the least of the table, and of the pieces of an interval of gamma{own}"
    return {
        f"{path}lower": _to_grid("recomputed", least),
        f"{path}upper": _always(f"bounded: the least of the table{own}"),
        f"{path}gap": DONE,
        f"{path}tie_width": _to_pair(f"bounded: {ties}{own}", f"bounded: {width}{own}"),
        f"{path}allowance": _to_pair(room, f"{room}, and as tie_width"),
    }


RECORD: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where upper - lower <= gap upper + tie_width + allowance; else read"),
    **_each("", "gamma tau", _always("bounded: the least upper bound of the table, or the pair that the rule gives")),
    "cv_error": DONE,
    **_certificate("", "; with `least` of the reported pair"),
    "mae": _always("bounded: recomputed where every fold is refitted, else by the errors of the folds"),
    **_each("", "r_squared support coefficients intercept", DONE),
    "one_se.standard_error": DONE,
    "one_se.estimate": _always("bounded: the pair is decided, no open pair of the table could change it, or true"),
    **_each("refit.", "gamma tau", _always("bounded: the reported pair")),
    "refit.objective": DONE,
    **_each("refit.", "lower upper", BOUNDS_OF_FIT),
    "refit.proved": PROVED,
    **_each("table[].", "gamma tau", GRID_ONCE),
    "table[].cv_error": Treatment(
        "bounded: recomputed for decided pairs, for others an estimate within lower and upper",
        THREE_ROWS,
        "bounded: by the row's own interval",
    ),
    **_each("table[].", "lower upper", Treatment(ROWS, THREE_ROWS, "read")),
    "table[].folds_decided": _to_grid(
        "bounded: in 0 .. folds; of the reported pair the folds that are decided; all decided: the true h",
        "bounded: in 0 .. folds; of the reported pair the folds that are decided",
    ),
    **_each("table[].", "folds estimate status", DONE),
    "table[].standard_error": _to_grid(
        "bounded: recomputed of pairs whose folds are stored; of decided pairs by the true errors of the folds",
        "bounded: recomputed of pairs whose folds are stored; of others read",
    ),
    **_folds("chosen_folds"),
    **_each("least.", "gamma tau", _always("bounded: the least upper bound of the table")),
    **_each("least.", "cv_error estimate", DONE),
    **_certificate("least."),
    **_folds("least_folds"),
    **DATA,
    **_each("folds.", "spec seed k repeats digest", DONE),
    **_each("request.", "gammas taus", _always("bounded: the grid of the table")),
    "request.gap": _always("bounded: in [0, 1); status must agree with it"),
    "request.one_se": _always("bounded: one_se is there"),
    **RUN,
    **_each("request.", "method method_used backend formulation engine mio_budget refine tau_step oracles", READ),
    "request.stability": _always("bounded: stability is there, by its first weight"),
    "refined.gamma": READ,
    "refined.tau": _always("bounded: the answer's"),
    "refined.cv_error": _to_grid(
        "recomputed unless an estimate, which is bounded by lower and upper",
        "bounded: by its own lower and upper",
    ),
    "refined.lower": _to_grid("bounded: by the true h, which it is unless an estimate", "bounded: by cv_error"),
    "refined.upper": _to_grid(
        "bounded: by the true h, which it is unless an estimate, and the answer's upper",
        "bounded: by the answer's upper",
    ),
    "refined.estimate": _to_grid("bounded: the rest must be the true h, or true", "read"),
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
    **_each("region.", "up_to_tau from_gamma", _always("bounded: one that was asked for, or null")),
    **_each("region.", "gamma tau", _always("bounded: the least upper bound of the region")),
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
    **_each("advice.", "tau gamma time_limit", READ),
    **_each("nested.outer.", "spec seed k digest repeats", DONE),
    **_each("nested.", "error standard_error optimism", DONE),
    "nested.folds[].fold": _always("bounded: outer folds in their order, each once"),
    "nested.folds[].gamma": _always("bounded: one that was asked for; the error must agree with it"),
    "nested.folds[].tau": _always("bounded: at least the features of the support; else read"),
    "nested.folds[].support": _always("bounded: features that vary, within the restrictions; that it is best is read"),
    **_each("nested.folds[].", "cv_error status", READ),
    "nested.folds[].error": DONE,
    "stability.instability": _always("recomputed at the supports of the record where that is soon done"),
    **_each("stability.", "instability_lower instability_upper", CHANGES),
    "stability.fold": _always("recomputed with the instability"),
    "stability.estimate": _to_pair(
        "bounded: true where a fold is open; false: the interval is that of the true optima",
        "bounded: true where a fold is open",
    ),
    "stability.chosen.weight": _always("bounded: the one asked for, of those tried the one with the least error"),
    **_each("stability.chosen.", "lower upper", _always("bounded: follow from the table and the intervals")),
    "stability.chosen.allowance": _always("bounded: by the width of the pair with the least lower end"),
    "stability.chosen.proved": _always("bounded: upper - lower <= gap upper + allowance, no pair has a smaller upper"),
    **_each(
        "stability.chosen.intervals[].",
        "lower upper",
        _to_grid(
            f"bounded: by the true optima, of {MOST_CELLS} folds in all; lower and upper follow from them", "read"
        ),
    ),
    "stability.chosen.models[].weight": _always("bounded: those asked for"),
    **_each("stability.chosen.models[].", "gamma tau", _always("bounded: a pair of the table")),
    "stability.chosen.models[].support": _always("bounded: features of the data; the first is the model's"),
    "stability.chosen.models[].proved": READ,
    **_each("stability.chosen.outer.", "spec seed k digest repeats", DONE),
    "stability.chosen.tried[].weight": _always("bounded: each once; that it chooses its models is read"),
    "stability.chosen.tried[].error": DONE,
    "stability.chosen.tried[].folds[].fold": _always("bounded: outer folds in their order, each once"),
    "stability.chosen.tried[].folds[].gamma": _always("bounded: one that was asked for; the error must agree with it"),
    "stability.chosen.tried[].folds[].tau": _always("bounded: at least the features of the support; else read"),
    "stability.chosen.tried[].folds[].support": _always(
        "bounded: features that vary, within the restrictions; that it is best is read"
    ),
    "stability.chosen.tried[].folds[].error": DONE,
    **_each("continuous.", "low high", _always("bounded: the pieces cover the interval between them")),
    "continuous.gap": _always("bounded: the gap that was asked for"),
    "continuous.supports": _always("bounded: features of the data"),
    **_each("continuous.pieces[].", "tau low high", _always("bounded: every gamma of the interval once for every tau")),
    "continuous.pieces[].lower": _to_pair(
        "bounded: by the true h at the ends and in the middle, and by at_low and at_high",
        "bounded: by at_low and at_high",
    ),
    **_each("continuous.pieces[].", "at_low at_high", _to_pair("bounded: by the true h there", "bounded: by lower")),
    "continuous.curve_gammas": _always("bounded: ascending, within the interval"),
    "continuous.curve_errors": _to_pair("recomputed", "bounded: by lower"),
    "continuous.pieces[].supports": _to_pair(
        "bounded: hold an optimum of every fold in the middle of the piece",
        "bounded: places in continuous.supports",
    ),
}

OPTIMUM = _to_pair("bounded: the least objective of all supports in the middle of the piece", "read")

PATH: Mapping[str, Treatment] = {
    **_each("surface.", "low high", _always("bounded: the pieces cover the interval between them")),
    "surface.supports": _always("bounded: features of the data"),
    **_each("surface.pieces[].", "tau low high", _always("bounded: every gamma of the interval once for every tau")),
    "surface.pieces[].supports": OPTIMUM,
    "surface.pieces[].proved": _always("bounded: true where there are supports, and all where status is proved"),
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where every row is; else read"),
    **_each("path[].", "gamma tau", GRID_ONCE),
    **_each("path[].", "support coefficients intercept objective", DONE),
    **_each("path[].", "lower upper", BOUNDS_OF_FIT),
    "path[].proved": PROVED,
    **DATA,
    **_each("request.", "gammas taus", _always("bounded: the grid of the path")),
    "request.gap": _always("bounded: in [0, 1); proved must agree with it"),
    "request.one_se": READ,
    **RUN,
}

FIT: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    **_each("", "backend formulation", READ),
    "status": _always("bounded: `proved` where upper - lower <= requested_gap upper + allowance; else read"),
    "tau": _always("bounded: at least the features of the support"),
    "gamma": _always("bounded: the objective must agree with it"),
    "support": _to_pair(
        "bounded: features of the data, within side; that no other is better by lower and upper",
        "bounded: features of the data, within side; that no other is better is read",
    ),
    **_each("", "coefficients intercept objective", DONE),
    "lower": _to_pair(
        "bounded: by all supports within side, with coefficients within boxes and assumed_box",
        "bounded: by the objective",
    ),
    "upper": _always("bounded: by the objective"),
    "assumed_box": _always("bounded: by the coefficients"),
    **_each(
        "side.",
        "restrictions.force_in restrictions.force_out restrictions.at_most[].count restrictions.at_most[].features "
        "restrictions.hierarchy[].feature restrictions.hierarchy[].parents restrictions.hierarchy[].every "
        "restrictions.nonnegative restrictions.nonpositive together box[].feature box[].low box[].high",
        _always("bounded: the support and its coefficients keep to it"),
    ),
    "gap": DONE,
    "requested_gap": _always("bounded: in [0, 1); status must agree with it"),
    "allowance": _always("bounded: by a thousandth of upper and 4e-6 of the targets' sum of squares"),
    **_each("", "nodes cuts seconds setup_seconds stop raw_status", READ),
    **DATA,
    **_each("", "warnings versions", READ),
}

REQUEST: Mapping[str, Treatment] = {
    **_each("request.", "gammas taus", _always("bounded: what was listed")),
    "request.gap": _always("bounded: the status must agree with it"),
    "request.one_se": READ,
}

NEAR: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where no limit cut a list; else read"),
    **_each("", "by within most gamma", _always("bounded: values and lists agree with it")),
    "chosen": READ,
    "sizes[].tau": _always("bounded: those asked for"),
    **_each("sizes[].", "best threshold models", DONE),
    **_each("sizes[].", "always never", _always("bounded: recomputed from the models")),
    "sizes[].lower": _to_pair("bounded: by the least value of all supports", "bounded: by best"),
    "sizes[].complete_to": _to_pair(
        "bounded: every support below it is listed", "bounded: by the threshold; that none is missing is read"
    ),
    **_each("sizes[].replacements[].", "feature other pairs", _always("bounded: recomputed from the models")),
    **_each("models[].", "tau support", _always("bounded: features of the data, within restrictions, each once")),
    "models[].value": _always("recomputed (of the 200 best of a size)"),
    **DATA,
    **_each("folds.", "spec seed k digest repeats", DONE),
    **REQUEST,
    **RUN,
}

COMMON: Mapping[str, Treatment] = {
    "schema": _always("bounded: a known word"),
    "status": _always("bounded: `proved` where upper - lower <= gap upper; else read"),
    **_each("", "gamma tau support", _always("bounded: a row of the table")),
    **_each("", "cv_error upper gap coefficients intercept", DONE),
    "lower": _to_pair("bounded: by the least CV error of all supports", "bounded: the least of the table"),
    **_each("table[].", "gamma tau", GRID_ONCE),
    "table[].support": _always("bounded: features of the data, within restrictions; cv_error agrees with it"),
    "table[].cv_error": DONE,
    "table[].lower": _to_pair("bounded: by the least CV error of all supports", "read"),
    **DATA,
    **_each("folds.", "spec seed k digest repeats", DONE),
    **REQUEST,
    **RUN,
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
    table: Mapping[str, Treatment], level: EnumerationLevel, absent: Collection[str] = ()
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
