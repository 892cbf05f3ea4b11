"""Declarations of the options of commands, functions, estimators and plans.

Each option has one declaration, with its type, default value, keywords, help text and the check of its value. The
options that only one command has are declared with the command. The module `sparsecv_mio.search.options` checks which
options require or exclude each other. This module imports no numerical library.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from sparsecv_mio.errors import BadInput, did_you_mean, parse_keyword
from sparsecv_mio.model_space import DEFAULT_GAMMAS, WIDE_GAMMAS
from sparsecv_mio.targets import DEFAULT_LOSS, Loss, Ties
from sparsecv_mio.thresholds import FEW_FOLDS, SMALL
from sparsecv_mio.units import MOST_THREADS, exceeds_double
from sparsecv_mio.words import By, ClassWeight, Encode, Intercept, Method, Missing, Model, Scale, Within

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def option_name(name: str) -> str:
    """Return the name of an option on the command line, without dashes in front; messages use the name in Python."""
    return name.replace("_", "-")


def keyword_names(words: str) -> str:
    """Return a warning with the names of options in Python, unless it has these names already.

    Examples
    --------
    >>> keyword_names("--drop id omits the column; --tau 1:3 or --time-limit none")
    "`drop` id omits the column; taus='1:3' or time_limit=None"
    """
    plural = {"tau": "taus", "gamma": "gammas"}
    if "in Python)" in words:
        return words

    def rename(found: re.Match[str]) -> str:
        name = plural.get(found[1], found[1].replace("-", "_"))
        value = found[2] or ""
        shown = value.capitalize() if value.isdigit() or value == "none" else repr(value)
        return f"{name}={shown}" if value else f"`{name}`"

    return re.sub(r"(?<!\S)--([a-z][a-z-]*)(?: (\d[^\s;]*[\w%]|none\b))?", rename, words)


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
        every = signature.parameters.values()
        own = [parameter for parameter in every if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {parameter.name for parameter in own} | {"restrictions"}
        options, lines = list[inspect.Parameter](), list[str]()
        for cls in classes:
            new = [field for field in fields(cls) if field.name not in taken]
            options += [
                inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_shown_default(field),
                                  annotation=field.type) for field in new
            ]  # fmt: skip
            taken |= {field.name for field in new}
            lines += _field_descriptions(cls, {field.name for field in new})
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


def _field_descriptions(cls: type, names: set[str]) -> list[str]:
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
        raise BadInput(f"{name}: {str(value)[:30]!r} is not a whole number; give a whole number")
    if not least <= value <= most or value != int(value):
        allowed = f"at most {most:,}" if value > most else f"a whole number of at least {least}"
        raise BadInput(f"{name}: {value} is out of range; give {allowed}")


def check_integer(name: str, value: Any, least: int, most: int = 10**18) -> None:
    """Check a number that must be an integer: `True`, 2.0 and None are refused.

    Parameters
    ----------
    name : str
        Name of the option.
    value : object
        Value of the option.
    least, most : int
        Bounds of the allowed range, both included.

    Raises
    ------
    BadInput
        The message names the option.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise BadInput(f"{name}: {str(value)[:30]!r} is not an integer; give an integer of at least {least}")
    check_whole(name, int(value), least, most)


def _check_gap(name: str, value: Any) -> None:
    _check_real(name, value)
    if not 0.0 <= value < 1.0:
        raise BadInput(f"{name}: {value:g} is out of range; give a number of at least 0 and below 1")


def _check_seconds(name: str, value: Any) -> None:
    if value is None:
        return
    _check_real(name, value)
    if not 0.0 < value < math.inf:
        limitless = ", or None for no limit" if value == math.inf else ""
        raise BadInput(f"{name}: {value:g} is out of range; give a positive number of seconds{limitless}")


def _check_column(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        example = "COLUMN or COLUMN=VALUE" if name == "event" else "COLUMN"
        raise BadInput(f"{name}: {value!r:.40} is not the name of a column; give a text, {name}={example}")


def _check_real(name: str, value: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise BadInput(f"{name}: {str(value)[:30]!r} is not a number; give a number")
    if exceeds_double(value):
        raise BadInput(f"{name}: the number exceeds the largest float, 1.8e308; give a smaller number")


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
    alias : str
        Another long name on the command line.
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
    alias: str = ""

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--{option_name(self.name)}"

    def validate(self, value: Any) -> Any:
        """Return a checked value, a keyword as a member of its enumeration and a numpy scalar as a Python one."""
        value = plain_scalar(value)
        if self.check is not None:
            self.check(self.name, value)
        if self.kind is bool and not isinstance(value, bool):
            raise BadInput(f"{self.name}: {str(value)[:30]!r} is neither True nor False; give one of these")
        if self.words is None or (value is None and self.default is None):
            return value
        return parse_keyword(self.words, value, self.name)


_FEATURES = "A,B,..."


def _describe_gammas(grid: str) -> str:
    """Return a grid `LO:HI:COUNT` in words."""
    low, high, count = grid.split(":")
    return f"{count} values from {float(low):g} to {float(high):g}"


_GAMMAS_OF_LOSSES = "; ".join(
    f"with {loss} loss, {{2}} values from {{0:g}} to {{1:g}}, divided by n_train".format(*loss.target.gammas_over_rows)
    for loss in Loss
    if loss.target.gammas_over_rows is not None
)

OPTIONS = {
    one.name: one
    for one in (
        # a table, and how it is read
        Option("target", str, None, "T",
               "Column to predict, by name or position; with --loss cox, the column of times. [y in NPZ and svmlight "
               "files]", letter="-t", alias="--time"),
        Option("features", str, None, _FEATURES, "Use only these columns as features. [all but the target]"),
        Option("drop", str, None, "C,D,...", "Use all columns except these. [none]"),
        Option("sep", str, None, "CHAR",
               "Separator of a text table: a character, or comma, semicolon, tab, pipe or space (any run of blanks). "
               "[comma for .csv, tab for .tsv and .txt]"),
        Option("decimal", str, ".", "CHAR", "Decimal mark of a text table: point or comma. [point]"),
        Option("thousands", str, None, "CHAR",
               "Thousands separator in numbers: comma, point, space, apostrophe or none. [none; ambiguous numbers are "
               "an error]"),
        Option("comment", str, None, "CHAR", "Skip lines that begin with this character. [none]"),
        Option("skip_lines", str, None, "LINES",
               "Numbers of the lines of a text table to skip, such as titles, units and totals: 1:3,32. [none]"),
        Option("encoding", str, "utf-8", "NAME", "Character encoding of a text table. [utf-8]"),
        Option("header", bool, True, "", "The first line of the file contains data, not names; the columns are named "
                                         "x0, x1, ..."),
        Option("index_col", str, None, "C", "Column of row numbers to ignore, by name or position. [none]"),
        Option("na", str, Missing.ERROR, "",
               "Treatment of missing values (empty values, NA and similar). error: stop with a message; drop: remove "
               "rows with missing values; mean, median: impute from all rows, including held-out rows. With "
               "`solve --na-within folds`, only the training rows of each fold are used.", Missing),
        Option("na_indicator", bool, False, "",
               "With --na mean or median: add, next to every imputed column, a 0/1 column that marks the missing "
               "values."),
        Option("na_values", str, (), "V,C=W,...",
               "Additional missing-value codes: -999 or refused for all columns, bmi=-9 for the column bmi. [none]"),
        Option("keep_default_na", bool, True, "",
               "Treat NA, null, none and similar words as text; only empty values and the codes of --na-values are "
               "missing."),
        Option("encode", str, Encode.ERROR, "",
               "Treatment of text columns. error: stop with a message; onehot: make a 0/1 column for every value, or "
               "one 0/1 column for two opposite values, such as no and yes; ordinal: use ranks 0, 1, ... in the order "
               "given by --order or by the data.", Encode),
        Option("order", str, (), "C=A<B<...",
               "Encode a text column by ranks 0, 1, ... in the given order, for any value of --encode: "
               "'size=small<medium<large'. May be repeated. [order given by the data]",
               several=True),
        Option("categories", str, (), "C,D,...",
               "Treat the values of these columns, such as the codes 1, 2 and 3, as text values, with --encode onehot "
               "unless another encoding is given. [none]"),
        Option("dates", str, (), "PART,...",
               "Convert date columns to numbers. days gives the days since 1970-01-01. year, month and weekday "
               "(Monday is 1) give a column for each part, such as sold.year. Add dayfirst or monthfirst if the order "
               "is ambiguous. [without this option, a date column is an error]"),
        Option("weights", str, None, "COLUMN",
               "Weight of each row in fits and errors: a column, or file:F with one number per line. Weights are at "
               "least 0; a row of weight 0 is dropped. [1]"),
        Option("folds", str, "10", "SPEC",
               "Folds: K (shuffled; stratified by the class with --loss logistic), RxK (R repeats), loo, "
               "stratified:K (by the target), forward:K or forward:K:GAP "
               "(time series; the GAP rows before each fold are not used for training), blocks:B (blocks of B rows), "
               "holdout:F (one "
               "fold with a share F of the rows), groups:COLUMN (each group is a fold), groups:COLUMN:K (K folds that "
               "keep groups together), column:COLUMN or file:F (a fold label per row). "
               "[10; with --loss logistic, stratified:10]"),
        Option("seed", int, None, "N", "Seed that assigns rows to folds at random. For any --folds, it also determines "
                                       "the outer folds of `solve --nested`, and the draws of --bootstrap, "
                                       "--stability-selection and --infer. [0]"),
        # the grid, and what a model may contain
        Option("gamma", str, None, "LIST",
               "Ridge weights: a list 0.01,0.1,1, or LO:HI:COUNT for a logarithmic grid; 0 is least squares. `solve` "
               "and `path` also take an interval LO..HI, which covers every value. "
               f"[{_describe_gammas(DEFAULT_GAMMAS)}; {_describe_gammas(WIDE_GAMMAS)} if there are at least as many "
               f"features (p) as training rows (n_train); {_GAMMAS_OF_LOSSES}]"),
        Option("tau", str, None, "LIST",
               "Model sizes (numbers of features): K, LO:HI (inclusive) or a list; 0 is the model without features; "
               "log: all sizes with tau log tau <= min(p, n_train), where p is the number of features and n_train the "
               "number of training rows. [1:p if p <= 30; otherwise 1:m, with m equal to n_train / 8, but at least "
               "10 and at most 50; in addition p, if p <= 300 and p < n_train]"),
        Option("force_in", str, (), _FEATURES,
               "Features that every model contains, by name (a text column: all its levels) or by position among the "
               "features. They are penalised and count in --tau. [none]"),
        Option("adjust", str, (), _FEATURES,
               "Adjustment columns. Every model contains them; they are not penalised and do not count in --tau. "
               "[none]"),
        Option("force_out", str, (), "C,D,...", "Features that no model may use. [none]"),
        Option("count", str, (), "factors|columns",
               "Unit that --tau counts. factors: all levels of a text column (--encode onehot) enter together and "
               "count as one feature; columns: each column enters and counts separately. [columns; but factors, with a "
               f"note, in `solve`, `near` and `path` if the data then have at most {SMALL} features, and there are at "
               f"most {FEW_FOLDS} folds]"),
        Option("at_most", str, (), "K:A,B,...", "Use at most K of these features in a model. May be repeated. [none]",
               several=True),
        Option("hierarchy", str, (), "RULE",
               "strong: a product of features (named a:b, a*b, a b or a^2) enters only with both a and b; weak: a "
               "product enters only with a or b. AB=A,B: AB enters only with A and B; AB=A|B: AB enters only with A "
               "or B. May be repeated. [none]",
               several=True),
        Option("nonnegative", str, (), _FEATURES,
               "Features whose coefficients must be at least 0; all: every feature. [none]"),
        Option("nonpositive", str, (), _FEATURES,
               "Features whose coefficients must be at most 0; all: every feature. [none]"),
        Option("coef_bounds", str, (), "A=LOW..HIGH,...",
               "Bounds on coefficients, in units of the file. One side may be empty (a=..5); all= bounds every feature "
               "that is not named. The coefficient of a feature outside the model is 0, even if its bounds exclude 0; "
               "--force-in prevents this. [none]"),
        # units and effort
        Option("loss", str, DEFAULT_LOSS, "",
               "Loss function. squared: numeric target. logistic: target of two classes (0 and 1, or any two words); "
               "the CV error is the mean log loss. poisson: counts with log link; the CV error is the mean half "
               "deviance. cox: survival times; the CV error is the negative log partial likelihood per event.",
               Loss),
        Option("exposure", str, None, "COLUMN",
               "With --loss poisson: the time or population, above 0, to which the count of each row refers. The model "
               "then predicts a rate. [1]"),
        Option("offset", str, None, "COLUMN",
               "With --loss logistic or poisson: a column that is added to the linear predictor with the fixed "
               "coefficient 1, for example known log odds. --exposure E equals an offset of log E; if both are given, "
               "they are added. [0]"),
        Option("trials", str, None, "COLUMN",
               "With --loss logistic: the number of trials of each row; the target is the number of successes (grouped "
               "binomial data). All trials of a row are in one fold. [two classes]"),
        Option("positive", str, None, "WORD",
               "With --loss logistic: the class whose probability is predicted. [the larger number, or the last word "
               "in alphabetical order]"),
        Option("class_weight", str, None, "balanced",
               "With --loss logistic: balanced gives both classes equal weight in fits and errors, as in scikit-learn; "
               "it can be combined with --weights. [none]", ClassWeight),
        Option("event", str, None, "COLUMN[=VALUE]",
               "With --loss cox: the column that marks events; without =VALUE, the column must hold 0 (censored) and 1 "
               "(event). The target is the time.", check=_check_column),
        Option("entry", str, None, "COLUMN",
               "With --loss cox: the time after which each row is at risk (delayed entry). [always at risk]",
               check=_check_column),
        Option("strata", str, None, "COLUMN",
               "With --loss cox: the stratum of each row, with its own baseline hazard. [one stratum]",
               check=_check_column),
        Option("ties", str, None, "",
               "With --loss cox: the method for tied events, as in R's coxph. [efron]", Ties),
        Option("scale", str, Scale.LENGTH, "WORD",
               "Scale of the columns that the penalty uses: length (centred, unit l2 norm), variance (unit variance) "
               "or none. [length]", Scale),
        Option("scale_within", str, Within.ALL, "",
               "Rows from which the scales of --scale are computed. all: all rows; folds: in each fold, only its "
               "training rows.", Within),
        Option("na_within", str, Within.ALL, "",
               "Rows from which --na mean and median impute. all: all rows; folds: in each fold, only its training "
               "rows (all rows for the full-data model).", Within),
        Option("intercept", str, Intercept.FOLD, "WORD",
               "Intercept. fold: estimated in every training set; global: columns and target are centred once, on all "
               "rows; none: no intercept. [fold]", Intercept),
        Option("gap", float, 1e-4, "G",
               "Relative gap up to which the answer is certified; with `solve`, 0 solves every pair that may be the "
               "best.",
               check=_check_gap),
        Option("time_limit", float, None, "S",
               "Stop S seconds after the start (`fit`: after S seconds in the solver), with valid bounds; none: no "
               "limit. The time for compiling, at the first run on a machine, does not count. [none]",
               check=_check_seconds),
        Option("threads", int, None, "N", "Number of threads. [all cores]",
               check=partial(check_whole, least=1, most=MOST_THREADS)),
        # what is searched, and how
        Option("one_se", bool, False, "",
               "Report and refit the one-standard-error pair: the pair with the smallest tau whose CV error is within "
               "one standard error of the minimum. The pair with the minimum CV error is printed in a separate line."),
        Option("stability", str, None, "WEIGHT|nested",
               "Report the pair that minimises CV error + WEIGHT x instability. The instability is the mean "
               "absolute change in the losses of all rows when the most influential fold is held out. nested: choose "
               "the weight by nested CV, which takes about six times as long. [none]"),
        Option("model", str, Model.PAIR, "",
               "Model for predictions. pair: the best subset at the reported pair. average: a small model whose "
               "predictions are close to the weighted average over the near-optimal pairs; pairs with smaller CV "
               "errors have larger weights. The certificate refers to the reported pair in both cases.", Model),
        Option("own_error", bool, False, "",
               "With --model average: also estimate the error of the averaged model, from one averaged model per "
               "fold. This estimate is optimistic, because the weights depend on the held-out rows, but takes much "
               "less time than --nested."),
        Option("method", str, Method.AUTO, "",
               "Search method. rounds: all subproblems in rounds of growing effort, with shared work; joint: "
               "best-first over all pairs, one MIO problem at a time; algorithm1: bounds, then one MIO problem at a "
               "time (the paper's algorithm); grid: an MIO problem for every subproblem (baseline); bounds: certified "
               "bounds only, without branching (exit code 3 if they do not certify the choice); descent: gamma and "
               "tau are changed in turn, between the smallest and the largest given gamma, until no single change "
               "lowers the CV error. [auto: rounds, the fastest method; joint with another --backend or --loss; "
               "algorithm1 with --at-most or --hierarchy]",
               Method),
        Option("backend", str, "native", "B",
               "Solver of the MIO problems of joint, algorithm1 and grid; `sparsecv backends` lists them. If the "
               "backend is not native, the default method is joint, or algorithm1 with --at-most, --hierarchy or "
               "bounds on coefficients. [native]"),
        Option("formulation", str, None, "F",
               "MIO formulation of the backend, such as benders for gurobi. [the first that `sparsecv backends` "
               "lists]"),
        Option("solver_option", str, (), "NAME=VALUE",
               "Option of the solver, under the name that the solver uses, such as MIPFocus=1 for gurobi. May be "
               "repeated. "
               "Tolerances and limits cannot be changed, because the certificate depends on them. [none]",
               several=True),
        Option("mio_budget", int, None, "R", "Stop joint, algorithm1 or grid after R MIO problems. [none]",
               check=partial(check_whole, least=0)),
        Option("refine", bool, False, "",
               "Deprecated: use --gamma LO..HI, which certifies the best gamma of an interval. Searches for a gamma "
               "with a smaller CV error between the neighbours of the reported gamma (field `refined`)."),
        Option("sources", str, (), "NAME,...|-NAME,...",
               "Bounding methods that the search uses: names, all or none. Names with a minus sign (--sources=-NAME) "
               "are switched off, and all others are used. The answer does not depend on this option. An "
               "unknown name prints all names. [all]"),
        Option("oracles", str, None, "LIST|none",
               "Deprecated, has no effect; use --sources. Accepted values: some of glru, iacv, treecv, or none. "
               "[none]"),
        Option("by", str, None, "",
               "Value by which models are ranked. cv: the CV error of the same features in every fold; objective: the "
               "training objective on all rows. [cv; objective with --loss logistic or poisson]", By),
        # where a run is stored, and what is shown
        Option("checkpoint", str, None, "FILE",
               "Store the run in this file from time to time; --resume continues the run. An unfinished run in the "
               "file is not overwritten. [none]"),
        Option("resume", str, None, "FILE", "Continue the run stored in this file, and store its progress there. "
                                            "[none]"),
        Option("trace", str, None, "FILE",
               "Write the course of the search to this file, for `sparsecv plot`. Each line has the bounds of all "
               "pairs, and the search order and gamma of the steps since the previous line. Writing takes at most 5% "
               "of the time. [none]"),
        Option("progress_json", str, None, "FILE",
               "Write progress as JSON lines to this file, for schedulers and other programs. [none]"),
        Option("scheduler", str, None, "ADDRESS",
               "Address of a dask scheduler, tcp://HOST:PORT, whose workers run the search. [none]"),
        Option("json", str, None, "FILE", "Write the record to this file; - is standard output. [none]"),
        Option("proof", str, None, "FILE",
               "Write a proof of the bounds to this file, for `sparsecv check`. The proof is made after the search, "
               "without a time limit, and may take longer than the search. [none]"),
        Option("full", bool, False, "", "Print the tables of every gamma instead of a summary."),
        Option("quiet", bool, False, "",
               "Print only the answer, and the warnings and hints that restrict its meaning; no progress, no tables.",
               letter="-q"),
    )
}  # fmt: skip


def defaults(*names: str) -> dict[str, Any]:
    """Return the default values of a group of options, by name."""
    return {name: OPTIONS[name].default for name in names}


FORMAT = dict.fromkeys(
    ("sep", "decimal", "thousands", "comment", "skip_lines", "encoding", "header", "index_col")
)  # for reading the file of a record; the record supplies the values that are not given
READING = defaults(
    *FORMAT, "na", "na_indicator", "na_values", "keep_default_na", "encode", "order", "categories", "dates"
)
OF_TABLES = defaults("features", "drop") | READING  # for a table with a target column
TABLE = defaults("target") | OF_TABLES
DEALING = defaults("weights", "folds", "seed")
FORCING = defaults("force_in", "force_out", "adjust")
LISTING = FORCING | defaults("count")  # the set of models that `near` lists
RESTRICTING = LISTING | defaults("at_most", "hierarchy", "nonnegative", "nonpositive", "coef_bounds")
UNITS = defaults("scale", "intercept")
LASTING = defaults("time_limit")
COMMAND_SECONDS = 300.0  # default time limit of the command `solve`; Python and plans have no default limit
STOPPING = defaults("gap") | LASTING
LIMITS = LASTING | defaults("threads")
EFFORT = STOPPING | LIMITS
LOSSES = defaults(
    "loss", "positive", "class_weight", "exposure", "offset", "trials", "event", "entry", "strata", "ties"
)
SEARCHING = LOSSES | defaults("one_se", "stability", "model", "own_error") | EFFORT | defaults(
    "method", "backend", "formulation", "solver_option", "mio_budget", "refine", "scale_within", "na_within"
)  # fmt: skip
ACCELERATING = defaults("sources", "oracles")
STORING = defaults("checkpoint", "resume", "trace")

DEPRECATED = {  # options that the next minor release removes, and what to use
    "oracles": "has no effect and will be removed in 0.4; use --sources",
    "refine": "will be removed in 0.4; use --gamma LO..HI, which certifies the best gamma of an interval",
}

IN_PYTHON = {  # options of commands without a keyword, and what to use
    "bootstrap": "use bootstrap(record, data, draws=B) of sparsecv_mio",
    "stability_selection": "use stability_selection(record, data, pairs=PAIRS) of sparsecv_mio",
    "reference": "a record has a coefficient for each level; subtract the coefficient of the reference level from the "
    "others",
    "infer": "use infer(record, data) of sparsecv_mio",
    "baselines": "use compare_baselines(record, data, baselines=LIST) of sparsecv_mio",
    "draw_gap": "use gap=... of bootstrap, stability_selection or infer",
    "draw_file": "use store=FILE of bootstrap, stability_selection or infer",
    "loss": "use the estimators BestSubsetLogistic, BestSubsetPoisson and their CV variants",
    "criterion": "use best_common_subset of sparsecv_mio.near.common_subset",
    "json": "use record.write_record(FILE)",
    "proof": "use write_proof of sparsecv_mio.proofs.proof_writing",
    "full": "only commands print; use record.to_frame()",
    "groups": 'use folds="groups:COLUMN" with a column of the data; with an estimator, use fit(X, y, groups=...)',
    "Cs": "use gammas with the values 1 / C",
    "C": "use gamma=1 / C",
    "random_state": "use seed=... of solve, or cv=KFold(10, shuffle=True, random_state=...) of an estimator",
    "quiet": "only commands print",
    "encode": "put OneHotEncoder before the estimator in a pipeline",
    "na_indicator": "put SimpleImputer(add_indicator=True) before the estimator in a pipeline",
}


def unexpected_keyword(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error about an unknown keyword, with its counterpart in Python or a similar keyword.

    Parameters
    ----------
    function : str
        Name of the called function or class.
    name : str
        Unknown keyword.
    known : iterable of str
        Keywords of the function; deprecated ones are not suggested.

    Examples
    --------
    >>> unexpected_keyword("solve", "fold", ["folds", "refine"])
    TypeError("solve() got an unexpected keyword argument 'fold' (did you mean 'folds'?)")
    >>> unexpected_keyword("solve", "json", ["folds"])
    TypeError("solve() got an unexpected keyword argument 'json'; use record.write_record(FILE)")
    """
    similar = did_you_mean(name, [word for word in known if word not in DEPRECATED])
    advice = f"; {IN_PYTHON[name]}" if name in IN_PYTHON else similar
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{advice}")


MOST_USED = "Most used"
PANELS: dict[str, tuple[str, ...]] = {  # panels of the help with their options, including options of single commands
    MOST_USED: (
        "target", "loss", "na", "encode", "folds", "gamma", "tau", "one_se", "model", "nested", "gap", "time_limit",
        "threads", "json", "quiet",
    ),
    "Data": (*TABLE, "id", "weights", "exposure", "offset", "trials", "event", "entry", "strata", "ties"),
    "Folds and grid": ("folds", "seed", "gamma", "tau"),
    "Models": (*RESTRICTING, *UNITS, "scale_within", "na_within", "together", "box", "assume_box"),
    "Choice": (
        "positive", "class_weight", "criterion", "one_se", "stability", "model", "own_error", "nested", "baselines",
        "refine",
    ),
    "Uncertainty": ("bootstrap", "stability_selection", "infer", "draw_gap", "draw_file"),
    "Limits and effort": (*EFFORT, "checkpoint", "resume"),
    "Output": ("reference", "json", "proof", "trace", "progress_json", "save_held_out", "log", "full", "quiet"),
    "For experts": (
        "method", "backend", "formulation", "solver_option", "mio_budget", "sources", "oracles", "scheduler",
    ),
}  # fmt: skip
PANELS |= {  # each in one
    panel: tuple(name for name in names if name not in PANELS[MOST_USED])
    for panel, names in PANELS.items() if panel != MOST_USED
}  # fmt: skip
IN_PLANS = {"folds", "seed", "gamma", "tau", *UNITS, *SEARCHING, *ACCELERATING, *RESTRICTING} - {
    "threads"  # a task of a plan has one thread
}  # options of commands that are settings of a plan


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
            object.__setattr__(options, field.name, OPTIONS[field.name].validate(getattr(options, field.name)))
    loss = getattr(options, "loss", DEFAULT_LOSS)
    if not loss.target.has_intercept and getattr(options, "intercept", None) is Intercept.FOLD:  # the default
        object.__setattr__(options, "intercept", Intercept.NONE)
