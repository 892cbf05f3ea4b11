"""Declarations of the options of commands, functions, estimators and plans.

Each option is declared once, with its type, default value, keywords, help text and the check of its value. Requirements
between two options are checked in `sparsecv_mio.search.options`. This module imports no numerical library.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from sparsecv_mio.errors import BadInput, word_of
from sparsecv_mio.model_space import DEFAULT_GAMMAS, GAMMAS_OVER_ROWS, WIDE_GAMMAS
from sparsecv_mio.units import MOST_THREADS
from sparsecv_mio.words import By, ClassWeight, Encode, Intercept, Loss, Method, Missing, Model, Scale, Within

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def shown(name: str) -> str:
    """Return the name of an option as messages print it: the command-line name without dashes."""
    return name.replace("_", "-")


def plain_scalar(value: Any) -> Any:
    """Return a numpy scalar as the equivalent Python bool, number or text, and any other value unchanged.

    Examples
    --------
    >>> plain_scalar(3), plain_scalar("loo")
    (3, 'loo')
    """
    numpy = sys.modules.get("numpy")  # if numpy is not loaded, the value is not a numpy scalar
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


Documented = TypeVar("Documented", bound=Callable[..., Any])
SECTION = re.compile(r"^Attributes\n-{10}\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)
KEYWORDS = re.compile(r"^( *)\*\*\w+\n(?:\1 +\S.*\n|\n(?=\1 +\S))+", re.MULTILINE)


def keywords_are(*classes: type[DataclassInstance]) -> Callable[[Documented], Documented]:
    """Return a decorator that shows the fields of classes of options instead of the `**keywords` of a function.

    The signature and the docstring that `help` and the reference show then name every option with its default. The
    body still receives them as keywords, so that each option is declared and described once, in its class.

    Parameters
    ----------
    *classes : dataclasses
        The classes, whose docstrings describe the fields under `Attributes`. A parameter that the function declares
        itself has precedence.
    """

    def document(function: Documented) -> Documented:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        taken, options, lines = {one.name for one in own} | {"restrictions"}, list[inspect.Parameter](), list[str]()
        for cls in classes:
            new = [field for field in fields(cls) if field.name not in taken]
            options += [
                inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_shown_default(field),
                                  annotation=field.type) for field in new
            ]  # fmt: skip
            taken |= {field.name for field in new}
            lines += _described(cls, {field.name for field in new})
        function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        if function.__doc__ is not None:  # `python -OO` removes docstrings
            function.__doc__ = KEYWORDS.sub(
                lambda match: "".join(f"{match[1]}{line}\n" for line in lines), function.__doc__, count=1
            )
        return function

    return document


def _shown_default(field: Field[Any]) -> Any:
    """Return the default value of a field, a keyword as plain text."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return str(default) if isinstance(default, StrEnum) else default


def _described(cls: type, names: set[str]) -> list[str]:
    """Return the docstring lines, of a class and its bases, that describe the given fields."""
    lines = list[str]()
    for holder in reversed(cls.__mro__):
        section = SECTION.search(inspect.cleandoc(holder.__dict__.get("__doc__") or ""))
        for entry in re.split(r"\n(?=\S)", section[1].rstrip() if section else ""):
            heads = {name.strip() for name in entry.partition(" :")[0].split(",")}
            if heads & names:
                lines += entry.splitlines()
    return lines


def check_whole(name: str, value: float | None, least: int, most: int = 10**18) -> None:
    """Check a whole number.

    Parameters
    ----------
    name : str
        Name of the option.
    value : float or None
        Value of the option; None (not given) is accepted.
    least, most : int
        Bounds of the allowed range, both included.

    Raises
    ------
    BadInput
        The message names the option.
    """
    if value is None:
        return
    if not isinstance(value, Real):
        raise BadInput(f"{shown(name)}: {str(value)[:30]!r} is no whole number")
    if not least <= value <= most or value != int(value):
        room = f"at most {most:,}" if value > most else f"a whole number of at least {least}"
        raise BadInput(f"{shown(name)}: {value} is out of range, give {room}")


def _check_gap(name: str, value: Any) -> None:
    _check_real(name, value)
    if not 0.0 <= value < 1.0:
        raise BadInput(f"{name}: {value:g} is out of range, a relative gap is at least 0 and below 1")


def _check_seconds(name: str, value: Any) -> None:
    if value is None:
        return
    _check_real(name, value)
    if not 0.0 < value < math.inf:
        raise BadInput(f"{shown(name)}: {value:g} is out of range, give a positive number of seconds")


def _check_real(name: str, value: Any) -> None:
    if not isinstance(value, Real):
        raise BadInput(f"{shown(name)}: {str(value)[:30]!r} is no number")


@dataclass(frozen=True)
class Option:
    """An option with its type, default value and check.

    Attributes
    ----------
    name : str
        Name in Python and in plans; the command line uses dashes instead of underscores.
    kind : type
        Type of the value on the command line: str, int, float or bool.
    default : object
        Default value, unless a command, a function or an estimator sets another one.
    metavar : str
        Placeholder of the value in the help; empty for keywords, which are listed, and for switches.
    help : str
        One or two sentences; a default that needs an explanation is given at the end, in brackets.
    words : type, optional
        Enumeration of the allowed keywords.
    several : bool
        True if the option may be repeated.
    letter : str
        Short name on the command line.
    check : callable, optional
        Function of the name and the value that raises `BadInput` for an invalid value.
    """

    name: str
    kind: type
    default: Any
    metavar: str
    help: str
    words: type[StrEnum] | None = None
    several: bool = False
    letter: str = ""
    check: Callable[[str, Any], None] | None = None

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--{shown(self.name)}"

    def settled(self, value: Any) -> Any:
        """Return a checked value, a keyword as a member of its enumeration and a numpy scalar as a Python one."""
        value = plain_scalar(value)
        if self.check is not None:
            self.check(self.name, value)
        if self.kind is bool and not isinstance(value, bool):
            raise BadInput(f"{shown(self.name)}: {str(value)[:30]!r} is neither True nor False")
        if self.words is None or (value is None and self.default is None):
            return value
        return word_of(self.words, value, shown(self.name))


_FEATURES = "A,B,..."
_GAMMAS_OF_LOSSES = ", ".join(
    f"with {loss} loss {count} from {least:g} to {largest:g}"
    for loss, (least, largest, count) in GAMMAS_OVER_ROWS.items()
)

OPTIONS = {
    one.name: one
    for one in (
        # a table, and how it is read
        Option("target", str, None, "T", "Column to predict, by name or position. [NPZ, svmlight: y]", letter="-t"),
        Option("features", str, None, _FEATURES, "Use these columns only. [all but the target]"),
        Option("drop", str, None, "C,D,...", "Use all columns but these."),
        Option("sep", str, None, "CHAR",
               "Between the cells of a text table: a character, or comma, semicolon, tab, pipe or space (any run "
               "of blanks). [.csv: comma, .tsv and .txt: tab]"),
        Option("decimal", str, ".", "CHAR", "Decimal mark of a text table: point or comma."),
        Option("thousands", str, None, "CHAR",
               "Sets off thousands in numbers, groups of three digits: comma, point, space, apostrophe, or none where "
               "nothing does. [none; a number that could be two is refused]"),
        Option("comment", str, None, "CHAR", "Leave out lines that begin with it. [none]"),
        Option("skip_lines", str, None, "LINES",
               "Leave out lines of a text table by their numbers, 1:3,32 say: titles, units, totals. [none]"),
        Option("encoding", str, "utf-8", "NAME", "Of a text table."),
        Option("header", bool, True, "", "The first line holds numbers: columns are x0, x1, ..."),
        Option("index_col", str, None, "C", "Column that only numbers the rows, by name or position. [none]"),
        Option("na", str, Missing.ERROR, "",
               "Empty cells, NA and the like: refused, their rows left out, or filled with the mean or the median of "
               "their column over all rows, held-out ones included.", Missing),
        Option("na_indicator", bool, False, "",
               "With --na mean or median: a column of zeros and ones beside every filled one says which cells were "
               "empty."),
        Option("na_values", str, (), "V,W,...", "Cells that stand for nothing as well: -999, refused. [none]"),
        Option("keep_default_na", bool, True, "",
               "NA, null, none and the like are words: only empty cells and those of --na-values stand for nothing."),
        Option("encode", str, Encode.ERROR, "",
               "Columns of text values: refused, a column of zeros and ones for every value, or their ranks in an "
               "order that --order or the data declare. Two opposites (no, yes) are 0 and 1.", Encode),
        Option("order", str, (), "C=A<B<...",
               "Code the text values of a column by rank, 0, 1, ..., from the lowest value to the highest, whatever "
               "--encode is: 'size=small<medium<large'; may be repeated. [the order that the data declare]",
               several=True),
        Option("dates", str, (), "PART,...",
               "Turn every column of dates into numbers: days (since 1970-01-01), or some of year, month, weekday (1 "
               "is Monday), as columns such as sold.year; dayfirst or monthfirst if dates do not show it. [refused]"),
        Option("weights", str, None, "COLUMN",
               "How much each row counts in every fit and in the errors: a column of the data, or file:F with a number "
               "a line; any numbers from 0 on, a row of weight 0 is left out. [each once]"),
        Option("folds", str, "10", "SPEC",
               "K (shuffled), RxK (R repeats), loo, stratified:K (by the target), forward:K or forward:K:GAP "
               "(time series, GAP rows left out before each fold), blocks:B (blocks of B rows), holdout:F (one scored "
               "fold), groups:COLUMN (a group is a fold) or groups:COLUMN:K (K folds of whole groups), column:COLUMN "
               "or file:F (a fold id per row)."),
        Option("seed", int, None, "N", "Seed of the shuffle. [0]"),
        # the grid, and what a model may contain
        Option("gamma", str, None, "LIST",
               "Ridge weights: 0.01,0.1,1 or LO:HI:COUNT, logarithmic, inclusive; 0 is least squares; of solve also "
               "LO..HI, every one. "
               f"[{DEFAULT_GAMMAS}; if p >= n_train, {WIDE_GAMMAS}; {_GAMMAS_OF_LOSSES}, "
               "over n_train]"),
        Option("tau", str, None, "LIST",
               "Support sizes: K, LO:HI (inclusive) or a list; 0 is the intercept alone; log: all with "
               "tau log tau <= min(p, n_train). [1:p; if p > 30, 1 to n_train / 8, but to 10 at least and 50 at most, "
               "and p where p <= 300, p < n_train]"),
        Option("force_in", str, (), _FEATURES,
               "Features in every model, by name (a column of words: all its levels) or by position among the "
               "features; they are penalised as the others are, and count in --tau."),
        Option("adjust", str, (), _FEATURES,
               "Columns that every model adjusts for, as it does for an intercept: in, not penalised, and not counted "
               "in --tau."),
        Option("force_out", str, (), "C,D,...", "Features in no model, as if they were dropped."),
        Option("count", str, (), "factors|columns",
               "What counts as one feature. factors: the columns that --encode onehot makes of a column of words enter "
               "together and count as one; columns: each enters, and counts, by itself. [columns; `solve` uses factors "
               "where a note states it]"),
        Option("at_most", str, (), "K:A,B,...", "At most K of these features in a model; may be repeated.",
               several=True),
        Option("hierarchy", str, (), "RULE",
               "strong or weak: features named as products (a:b, a*b, a b, a^2) only with all, or at least one, of "
               "their factors; or AB=A,B (AB only with A and B), AB=A|B (with one at least). May be repeated.",
               several=True),
        Option("nonnegative", str, (), _FEATURES, "Features whose coefficient is not below 0; all: every one."),
        Option("nonpositive", str, (), _FEATURES, "Features whose coefficient is not above 0; all: every one."),
        # units and effort
        Option("loss", str, Loss.SQUARED, "",
               "What is fitted: squared for a target of numbers, logistic for one of two classes (0 and 1, no and yes, "
               "any two words), whose CV error is the mean log loss of held-out rows, poisson for counts (whole "
               "numbers from 0 on) with log link, whose CV error is the mean half deviance of held-out rows.", Loss),
        Option("exposure", str, None, "COLUMN",
               "With --loss poisson: how long, or of how many, each row was counted, numbers above 0; the model is of "
               "the rate. [1 for each row]"),
        Option("positive", str, None, "WORD",
               "With --loss logistic: the class whose probability is predicted. [the larger number, the later word]"),
        Option("class_weight", str, None, "balanced",
               "With --loss logistic: balanced lets both classes weigh the same, in every fit and in the log loss of "
               "held-out rows, as scikit-learn does; it goes with --weights. [each row once]", ClassWeight),
        Option("scale", str, Scale.LENGTH, "WORD",
               "What the penalty measures: length (centred unit l2 norm), variance (unit variance) or none.", Scale),
        Option("scale_within", str, Within.ALL, "",
               "Whether --scale measures a column on all rows or, in each fold, on its training rows.", Within),
        Option("na_within", str, Within.ALL, "",
               "Whether --na mean and median fill empty cells by all rows or, in each fold, by its training rows; the "
               "model of all rows by all rows.", Within),
        Option("intercept", str, Intercept.FOLD, "WORD",
               "fold (free in every training set), global (centre once on all rows) or none.", Intercept),
        Option("gap", float, 1e-4, "G", "Stop at this certified relative gap; 0 asks for every optimum.",
               check=_check_gap),
        Option("time_limit", float, None, "S", "Stop after S seconds with valid bounds; none: run until the end.",
               check=_check_seconds),
        Option("threads", int, None, "N", "Threads. [all cores]",
               check=partial(check_whole, least=1, most=MOST_THREADS)),
        # what is searched, and how
        Option("one_se", bool, False, "",
               "Report and refit the one-standard-error pair (the smallest tau) instead of the pair with the "
               "minimum CV error, which has a line of its own."),
        Option("stability", str, None, "WEIGHT|nested",
               "Fit the model at the pair with the least CV error + WEIGHT x instability, where the instability is the "
               "largest change that leaving out a fold makes to the losses of all rows. nested: the weight by "
               "nested CV, about six times as long. [none]"),
        Option("model", str, Model.PAIR, "",
               "Which model predicts. pair: the best subset at the pair that is reported; average: the average of the "
               "near-best pairs, weighted by how far the errors of the rows tell them from the best one, put on the "
               "fewest features that keep it. The certificate is of the pair in either case.", Model),
        Option("own_error", bool, False, "",
               "With --model average: also estimate the error of the averaged model, by the same rule within every "
               "fold. Optimistic, as its weights saw the rows left out, and many times cheaper than --nested."),
        Option("method", str, Method.AUTO, "",
               "rounds: every cell in rounds of growing effort, work shared between taus and folds; joint: best-first "
               "over all pairs, one MIO at a time, the likely best one solved, the others raised above it; "
               "algorithm1: bounds, then one MIO at a time (the paper's); grid: every cell an MIO (the baseline); "
               "bounds: certified bounds alone, no branching (exit code 3 unless they prove the pair); descent: gamma "
               "and tau in turn, gamma free between the least and the largest one given; proved then means that no "
               "single change of gamma or tau improves the pair. [auto: rounds, the fastest; joint with another "
               "--backend than native]",
               Method),
        Option("backend", str, "native", "B",
               "The solver of each MIO of joint, algorithm1 and grid; see `sparsecv backends`. Any but native without "
               "--method means joint. [native]"),
        Option("formulation", str, None, "F", "Which of the backend's models: benders of gurobi, say."),
        Option("solver_option", str, (), "NAME=VALUE",
               "Option of the backend's solver by its own name, MIPFocus=1 of gurobi, say; may be repeated. Tolerances "
               "and limits are kept: the certificate rests on them.", several=True),
        Option("mio_budget", int, None, "R", "Stop joint, algorithm1 or grid after R MIOs. [none]",
               check=partial(check_whole, least=0)),
        Option("refine", bool, False, "",
               "Deprecated: --gamma LO..HI proves the best gamma of an interval. Searches gamma from the value before "
               "the answer's to the value after it too; stored separately, as `refined`."),
        Option("sources", str, (), "NAME,...|-NAME,...",
               "Sources of bounds that the search uses, or with minus (--sources=-NAME) those that it leaves out; all, "
               "none. The answer is the same. `--sources help` names them. [all]"),
        Option("oracles", str, None, "LIST|none",
               "Deprecated, without effect: some of glru, iacv, treecv. Use --sources."),
        Option("by", str, None, "",
               "cv: the CV error of the features, the same in every fold; objective: the training objective on all "
               "rows. [cv; with --loss logistic, objective]", By),
        # where a run is stored, and what is shown
        Option("checkpoint", str, None, "FILE",
               "Store the run here now and then; --resume carries it on. A run there that has not ended is not written "
               "over."),
        Option("resume", str, None, "FILE", "Carry on a stored run, and go on storing it there."),
        Option("trace", str, None, "FILE", "Write the course of the bounds here, for `sparsecv plot`."),
        Option("progress_json", str, None, "FILE",
               "Write how far the run is here while it goes on, as JSON lines for schedulers and other programs."),
        Option("scheduler", str, None, "ADDRESS",
               "Scheduler of a dask cluster, tcp://HOST:PORT, which does the work."),
        Option("json", str, None, "FILE", "Write the record here; - is standard output."),
        Option("proof", str, None, "FILE", "Write a proof of the bounds here, for `sparsecv check`."),
        Option("full", bool, False, "", "Print the table of every gamma, not a summary."),
        Option("quiet", bool, False, "", "Only the answer: no live view, table or warnings.", letter="-q"),
    )
}  # fmt: skip


def defaults(*names: str) -> dict[str, Any]:
    """Return the default values of a group of options, by name."""
    return {name: OPTIONS[name].default for name in names}


FORMAT = dict.fromkeys(
    ("sep", "decimal", "thousands", "comment", "skip_lines", "encoding", "header", "index_col")
)  # for reading the file of a record; the record supplies the values that are not given
READING = defaults(*FORMAT, "na", "na_indicator", "na_values", "keep_default_na", "encode", "order", "dates")
OF_TABLES = defaults("features", "drop") | READING  # for a table with a target column
TABLE = defaults("target") | OF_TABLES
DEALING = defaults("weights", "folds", "seed")
FORCING = defaults("force_in", "force_out", "adjust")
LISTING = FORCING | defaults("count")  # the set of models that `near` lists
RESTRICTING = LISTING | defaults("at_most", "hierarchy", "nonnegative", "nonpositive")
UNITS = defaults("scale", "intercept")
RAW_UNITS = {"scale": Scale.NONE, "intercept": Intercept.NONE}  # defaults of the oracles: columns unchanged
LASTING = defaults("time_limit")
COMMAND_SECONDS = 300.0  # default time limit of the command `solve`; Python and plans have no default limit
STOPPING = defaults("gap") | LASTING
LIMITS = LASTING | defaults("threads")
EFFORT = STOPPING | LIMITS
LOSSES = defaults("loss", "positive", "class_weight", "exposure")
SEARCHING = LOSSES | defaults("one_se", "stability", "model", "own_error") | EFFORT | defaults(
    "method", "backend", "formulation", "solver_option", "mio_budget", "refine", "scale_within", "na_within"
)  # fmt: skip
ACCELERATING = defaults("sources", "oracles")
STORING = defaults("checkpoint", "resume", "trace")

DEPRECATED = {  # options that the next minor release removes, and what to use
    "oracles": "is without effect and will be removed in 0.4; --sources switches sources of bounds",
    "refine": "will be removed in 0.4; --gamma LO..HI proves the best gamma of an interval",
}

MOST_USED = "Most used"
PANELS: dict[str, tuple[str, ...]] = {  # panels of the help with their options, including options of single commands
    MOST_USED: ("target", "loss", "folds", "gamma", "tau", "one_se", "model", "nested", "time_limit", "json", "quiet"),
    "Data": (*TABLE, "id", "weights", "exposure"),
    "Folds and grid": ("folds", "seed", "gamma", "tau"),
    "Which models": (*RESTRICTING, *UNITS, "scale_within", "na_within", "together", "box", "assume_box"),
    "What is asked": (
        "positive",
        "class_weight",
        "criterion",
        "one_se",
        "stability",
        "model",
        "own_error",
        "nested",
        "refine",
    ),
    "Limits and effort": (*EFFORT, "checkpoint", "resume"),
    "Output": ("reference", "json", "proof", "trace", "progress_json", "save_held_out", "log", "full", "quiet"),
    "For experts": (
        "method",
        "backend",
        "formulation",
        "solver_option",
        "mio_budget",
        "sources",
        "oracles",
        "scheduler",
    ),
}
PANELS |= {  # each in one
    panel: tuple(name for name in names if name not in PANELS[MOST_USED])
    for panel, names in PANELS.items() if panel != MOST_USED
}  # fmt: skip
IN_PLANS = (  # options of commands that are settings of a plan; a task has one thread
    *("folds", "seed", "gamma", "tau"),
    *(name for name in UNITS | SEARCHING | ACCELERATING | RESTRICTING if name != "threads"),
)


def plan_panels() -> dict[str, tuple[str, ...]]:
    """Return the options of commands that are settings of a plan, by panel of the help."""
    panels = {panel: tuple(name for name in names if name in IN_PLANS) for panel, names in PANELS.items()}
    return {panel: names for panel, names in panels.items() if names}


def settle_options(options: DataclassInstance) -> None:
    """Check every declared field of a frozen options object, and convert keywords to enumeration members.

    Keywords may be in upper or lower case.

    Raises
    ------
    BadInput
        If a number is out of range or a keyword is unknown; the message names the option.
    """
    for field in fields(options):
        if field.name in OPTIONS:
            object.__setattr__(options, field.name, OPTIONS[field.name].settled(getattr(options, field.name)))
