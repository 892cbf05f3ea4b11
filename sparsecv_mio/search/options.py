"""The options of a search, checked in the same way for the command line and Python, and the callbacks of the caller.

Checks that do not need the data run when a `SearchOptions` object is built. The table `RULES` lists which options
require or exclude each other. The function `check_data` runs the checks that need the data. `request` returns the
requested options in the form that the record stores.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sparsecv_mio.certificate.parts import SearchRequest
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.loss_targets import check_training, prepare_for_loss
from sparsecv_mio.data.rows_of_folds import OfTrainingRows
from sparsecv_mio.declared_options import (
    DEPRECATED,
    OPTIONS,
    check_whole,
    settle_options,
    unexpected_keyword,
)
from sparsecv_mio.errors import BadInput, SparseCVError, match_keyword
from sparsecv_mio.formulation.backends import BACKENDS, backend_name, get_backend
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.model_space import BEYOND_FORCING, COEF_BOUNDS, NONE, RESTRICTIONS, Restrictions, finite_number
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import DEFAULT_LOSS, REASONS, Loss, TargetColumns, Ties, find_losses_of_option
from sparsecv_mio.words import NATIVE, ClassWeight, Intercept, Method, Model, Oracle, Scale, Within

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Made = TypeVar("Made", bound=DataclassInstance)


GRID = ("gammas", "taus")  # keywords of every function that searches a grid


def with_keywords(made: Made, keywords: Mapping[str, object], function: str, near: Iterable[str] = ()) -> Made:
    """Return options in which some fields are replaced; the options are checked again.

    Parameters
    ----------
    made : dataclass
        Frozen options.
    keywords : mapping of str to object
        New values by field; fields of `Restrictions` may be among them.
    function : str
        Name of the called function, for the error.
    near : iterable of str
        Other keywords of this function, for a suggestion after a misspelling.

    Returns
    -------
    dataclass
        Options of the same class.

    Raises
    ------
    TypeError
        If a keyword is not a field.
    BadInput
        If a value is out of range, or options cannot be combined.
    """
    names = {field.name for field in fields(made)}
    inside = RESTRICTIONS if "restrictions" in names else ()
    inner: dict[str, Any] = {name: keywords[name] for name in inside if name in keywords}
    values = {name: value for name, value in keywords.items() if name not in inner}
    for name in values:
        if name not in names:
            raise unexpected_keyword(function, name, (*near, *inside, *sorted(names)))
    if inner:
        whole = values.get("restrictions", getattr(made, "restrictions", NONE))
        values["restrictions"] = replace(whole if isinstance(whole, Restrictions) else NONE, **inner)
    return replace(made, **values)


def check_formulation(backend: str, formulation: str | None, loss: Loss = DEFAULT_LOSS) -> str | None:
    """Return the name of a formulation of a backend, after a check; None, the first formulation, is always valid."""
    chosen = get_backend(backend)
    if not loss.is_quadratic:
        chosen.check_takes(None, loss=loss)
    if formulation is None:
        return None
    return match_keyword(formulation, chosen.capabilities.of(loss), f"formulation of {backend}")


def parse_solver_options(given: str | Mapping[str, object] | Iterable[str] | None) -> tuple[str, ...]:
    """Return options of a solver as texts `NAME=VALUE`, from a mapping, a list, or a text separated by commas.

    Examples
    --------
    >>> parse_solver_options({"MIPFocus": 1, "presolve": False}), parse_solver_options("Seed=3, Cuts=0")
    (('MIPFocus=1', 'presolve=false'), ('Seed=3', 'Cuts=0'))
    """
    if isinstance(given, Mapping):
        settings = [
            f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in given.items()
        ]
    else:
        settings = given.split(",") if isinstance(given, str) else list(given or ())
    pairs = [tuple(text.strip() for text in str(setting).split("=", 1)) for setting in settings]
    for setting, pair in zip(settings, pairs, strict=True):
        if len(pair) < 2 or "" in pair:
            raise BadInput(f"solver_option: {str(setting)[:60]!r} has no name or no value; give NAME=VALUE")
        if [name for name, *_ in pairs].count(pair[0]) > 1:
            raise BadInput(f"solver_option {pair[0]} is given more than once; give one value")
    return tuple("=".join(pair) for pair in pairs)


def limits_of_mio(given: Mapping[str, Any], **others: Any) -> Limits:
    """Return the limits of one MIO, from the options `gap` and `time_limit` and from other limits by name."""
    seconds = given["time_limit"]
    return Limits(gap=given["gap"], seconds=math.inf if seconds is None else seconds, **others)


def check_limits(limits: Limits) -> None:
    """Raise `BadInput` if a limit of one MIO is out of range; infinite seconds or nodes mean no limit."""
    seconds = None if limits.seconds == math.inf else limits.seconds
    for name, value in (("gap", limits.gap), ("time_limit", seconds), ("threads", limits.threads)):
        OPTIONS[name].validate(value)
    check_whole("node_limit", None if limits.nodes == math.inf else limits.nodes, 1)


VENDORS = tuple(name for name in BACKENDS if name != NATIVE)
COUNT_MIOS = (Method.JOINT, Method.ALGORITHM1, Method.GRID)  # one MIO at a time, by any backend
CELL_BY_CELL = (Method.ALGORITHM1, Method.GRID)
UNPENALISED = "this search of gamma needs a penalty on every column, and adjustment columns have none"
ONE_TREE = "under these restrictions, the package has no bounds that cover several sizes or folds at once"
WITHIN = ("scale_within", "na_within")
OF_GRIDS = ("one_se", "stability", "refine", "mio_budget", "formulation", "sources")  # not of an interval of gamma
NESTED = "nested"  # the weight of the instability is chosen by nested cross-validation
MOST_WEIGHT = 1e9  # maximum weight of the instability


def format_setting(value: Any) -> str:
    """Return the text of a value of an option: on and off for booleans, none for None."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return (",".join(value) or "none") if isinstance(value, tuple) else str(value)


NO_OTHER = "other losses support only force_in, force_out, adjust, count and bounds on coefficients"

QUADRATIC = tuple(loss for loss in Loss if loss.is_quadratic)
BY_ROWS = tuple(loss for loss in Loss if loss.target.is_sum_over_rows)
OF_ROW_LOSSES = {  # options that require a loss of single rows, and the reason
    "stability": "with loss cox, single rows have no losses that change",
    "model": "averages weigh pairs by the losses of single rows",
    "na_within": "preprocessing in each fold is not supported with loss cox yet",
    "scale_within": "preprocessing in each fold is not supported with loss cox yet",
    **dict.fromkeys(("nonnegative", "nonpositive", COEF_BOUNDS), "loss cox has no bounds on coefficients yet"),
}
SQUARED_ALONE = {  # options that require squared-error loss, and the reason
    "backend": "for other losses, only the command fit uses solvers",
    "refine": "gamma is refined only for squared-error loss",
    **dict.fromkeys(("at_most", "hierarchy"), NO_OTHER),
}


@dataclass(frozen=True)
class Rule:
    """A requirement that one option, if given, imposes on another.

    Attributes
    ----------
    option : str
        Option that imposes the requirement if it differs from its default.
    other : str
        Option on which the requirement is imposed.
    words : tuple
        Values that the other option may then have.
    why : str
        Reason, for the message and for docs/cli.md.
    """

    option: str
    other: str
    words: tuple[Any, ...]
    why: str

    def describe(self) -> str:
        """Return the rule in words, without its reason.

        Examples
        --------
        >>> RULES[0].describe(), Rule("stability", "one_se", (False,), "").describe()
        ('requires method auto, joint, algorithm1 or grid', 'not supported with one_se')
        """
        if self.words in ((False,), (None,)):
            return f"not supported with {self.other}"
        *most, last = [format_setting(word) for word in self.words if word is not None]
        before = f"{', '.join(most)} or " if most else ""
        return f"requires {self.other} {before}{last}"


RULES = (
    Rule("backend", "method", (Method.AUTO, *COUNT_MIOS), "the other methods use the native engine only"),
    Rule("formulation", "backend", VENDORS, "the native engine has a single formulation"),
    Rule("solver_option", "backend", VENDORS, "the native engine does not call a solver"),
    Rule("mio_budget", "method", COUNT_MIOS, "the other methods solve no mixed-integer problems (MIOs)"),
    Rule("refine", "method", (Method.AUTO, Method.ROUNDS, *COUNT_MIOS),
         "method descent already varies gamma, and method bounds solves no pair"),
    Rule("one_se", "method", tuple(word for word in Method if word is not Method.BOUNDS), "bounds solves no pair"),
    Rule("stability", "method",
         tuple(word for word in Method if word not in (Method.BOUNDS, Method.DESCENT)),
         "method bounds solves no pair, and method descent tries a different gamma for each pair"),
    Rule("stability", "one_se", (False,), "these two options choose a pair by different rules"),
    Rule("model", "method",
         tuple(word for word in Method if word not in (Method.BOUNDS, Method.DESCENT)),
         "method bounds solves no pair, and method descent leaves most pairs unsolved"),
    Rule("one_se", "model", (Model.PAIR,), "the averaged model combines many pairs, and this option chooses one"),
    Rule("stability", "model", (Model.PAIR,), "the averaged model combines many pairs, and this option chooses one"),
    Rule("own_error", "model", (Model.AVERAGE,), "the CV error already estimates the error of a model of one pair"),
    Rule("loss", "intercept", (Intercept.FOLD, Intercept.NONE),
         "intercept=global centres the target, which requires squared-error loss"),
    Rule("loss", "method", (Method.AUTO, Method.JOINT),
         "with other losses the search method is always joint; for bounds without a search, use `sparsecv bounds`"),
    *(Rule(option, "loss", find_losses_of_option(option), why) for option, why in REASONS.items()),
    Rule("positive", "trials", (None,), "the positive class of trials is success"),
    Rule("na_within", "trials", (None,), "a row with successes and failures would be counted twice"),
    Rule("scale_within", "scale", (Scale.LENGTH, Scale.VARIANCE),
         "with scale none there is nothing to compute in each fold"),
    *(Rule(option, "intercept", (Intercept.FOLD, Intercept.NONE),
           "intercept=global centres the columns about their means over all rows")
      for option in WITHIN),
    *(Rule(option, "model", (Model.PAIR,), "averaged models use the preprocessing of all rows") for option in WITHIN),
    *(Rule("stability", option, (Within.ALL,), "stability compares models with the same preprocessing")
      for option in WITHIN),
    *(Rule(option, "loss", QUADRATIC, why) for option, why in SQUARED_ALONE.items()),
    *(Rule(option, "loss", BY_ROWS, why) for option, why in OF_ROW_LOSSES.items()),
    Rule("adjust", "method", tuple(word for word in Method if word is not Method.DESCENT), UNPENALISED),
    Rule("adjust", "refine", (False,), UNPENALISED),
    Rule("count", "model", (Model.PAIR,), "averaged models count each level as one feature"),
    Rule("count", "backend", (NATIVE,), "solver models count each level as one feature"),
    *(Rule(option, "method", (Method.AUTO, *CELL_BY_CELL), ONE_TREE)
      for option in BEYOND_FORCING if option != COEF_BOUNDS),
    Rule(COEF_BOUNDS, "method", (Method.AUTO, Method.ROUNDS, *CELL_BY_CELL), ONE_TREE),
    *(Rule(option, "refine", (False,), ONE_TREE) for option in BEYOND_FORCING),
)  # fmt: skip


@dataclass(frozen=True)
class ModelOptions:
    """The units of the penalty, the intercept, and the loss with the columns of its target, for all fits of models.

    Attributes
    ----------
    scale : {"length", "variance", "none"}
        Scale of the columns to which the ridge penalty applies.
    intercept : {"fold", "global", "none"}
        Intercept: fitted in each training set, the mean of all rows, or none.
    loss : {"squared", "logistic", "poisson"}
        Loss of the model. `logistic` requires a target of two classes; the CV error is the mean log loss of held-out
        rows. `poisson` requires counts; the CV error is the mean of half their deviance.
    positive : str, optional
        Class whose probability is modelled with logistic loss (:func:`sparsecv_mio.data.loss_targets.as_two_classes`).
    class_weight : "balanced", optional
        Weights of rows with which both classes have equal total weight, for logistic loss
        (:func:`sparsecv_mio.data.weights.with_class_weight`).
    exposure : str, optional
        Column of exposures, for Poisson loss (:func:`sparsecv_mio.data.loss_targets.as_counts`).
    offset : str, optional
        Column that is added to the linear predictor, for logistic and Poisson loss.
    trials : str, optional
        Column with the numbers of trials, for logistic loss and a target that counts the successes of each row.
    event, entry, strata : str, optional
        Columns of the events (or `COLUMN=VALUE`), of entry times and of strata, for Cox loss.
    ties : {"efron", "breslow"}
        Method for tied events, for Cox loss; `efron` by default.
    """

    scale: Scale = Scale.LENGTH
    intercept: Intercept = Intercept.FOLD
    loss: Loss = DEFAULT_LOSS
    positive: str | None = None
    class_weight: ClassWeight | None = None
    exposure: str | None = None
    offset: str | None = None
    trials: str | None = None
    event: str | None = None
    entry: str | None = None
    strata: str | None = None
    ties: Ties | None = None

    def in_classes(self, dataset: Dataset) -> Dataset:
        """Return the data with the target of the loss: 0 and 1 with weights, counts, or times, with offsets."""
        columns = TargetColumns.from_fields(self)
        return prepare_for_loss(dataset, self.loss, self.positive, self.class_weight, columns, self.ties)


@dataclass(frozen=True)
class GridOptions(ModelOptions):
    """Options of functions of a grid of (tau, gamma) pairs.

    Attributes
    ----------
    gap : float
        Relative gap between the bounds at which the search of a minimum ends; 0 solves every subproblem.
    time_limit : float, optional
        Time limit in seconds. The best answer so far is then returned with valid bounds, at most one second after the
        limit (:mod:`sparsecv_mio.search.deadline`).
    threads : int, optional
        Number of threads; all cores by default.
    restrictions : Restrictions
        Restrictions on the features of every model; each field may also be given by keyword.
    """

    gap: float = 1e-4
    time_limit: float | None = None
    threads: int | None = None
    restrictions: Restrictions = NONE

    @classmethod
    def of(cls, **words: Any) -> Self:
        """Return options from values by field, which may be text and may include fields of `Restrictions`."""
        return with_keywords(cls(), words, "of")

    def by_names(self, dataset: Dataset) -> Self:
        """Return the same options with restrictions that name columns of the data."""
        restrictions = self.restrictions.resolve_names(dataset.names, self.intercept is not Intercept.NONE)
        return replace(self, restrictions=restrictions)


@dataclass(frozen=True)
class SearchOptions(GridOptions):
    """The options of a search over a grid. They are checked when the object is built, and cannot be changed.

    Attributes
    ----------
    one_se : bool
        True to report and refit the pair of the one-standard-error rule.
    stability : float, "nested" or tuple of float, optional
        Weight of the instability: the reported pair minimises `h + weight * instability`. `nested` chooses the weight
        by nested cross-validation (:mod:`sparsecv_mio.search.api`). With several weights, the pair of the first is
        reported, and the record has the pairs of all.
    model : {"pair", "average"}
        Model that predicts: that of the reported pair, or the averaged model, a best subset that approximates the
        average of the near-optimal pairs (:mod:`sparsecv_mio.search.answer.average`).
    own_error : bool
        True to estimate the error of the averaged model too, from an average in each fold.
    method : {"auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent"}
        Order of the search. `rounds` shares work between taus and folds. `joint` solves the pair with the best
        estimate first (:mod:`sparsecv_mio.search.orders.winner_first`). `algorithm1` is Algorithm 1 of Cory-Wright and
        Gómez, which solves one MIO at a time. `grid` solves every pair. `bounds` solves no MIO. `descent` varies gamma
        outside of the grid (:mod:`sparsecv_mio.search.every_gamma.descent`). For `auto` see :func:`choose_method`.
    backend : str
        Solver of the MIOs of `joint`, `algorithm1` and `grid`, one of
        :data:`sparsecv_mio.formulation.backends.BACKENDS`.
    formulation : str, optional
        Formulation of the backend, for example `benders` for Gurobi; the first formulation by default.
    solver_option : mapping or sequence of str
        Options of the solver by its own names, for example `{"MIPFocus": 1}` for Gurobi. Tolerances, gaps and limits
        are refused, because the certificate depends on them.
    mio_budget : int, optional
        Maximum number of MIOs that `joint`, `algorithm1` or `grid` solves.
    refine : bool
        True to search the gammas between the neighbours of the reported gamma too, at the reported tau. The record has
        the result under `refined`, and the answer remains that of the grid. Deprecated: `gammas="LO..HI"` certifies
        the best gamma of an interval.
    scale_within, na_within : {"all", "folds"}
        Rows from which scales and imputed values are computed: all rows, or the training rows of each fold
        (:mod:`sparsecv_mio.data.rows_of_folds`).
    sources : str or sequence of str, optional
        Bounding methods to use, or, each with a minus sign, bounding methods not to use
        (:data:`sparsecv_mio.search.sources.registry.SOURCES`). All are used by default. The answer does not depend on
        this option.
    oracles : tuple of {"glru", "iacv", "treecv"}, optional
        Deprecated, without effect; see `sources`.

    Raises
    ------
    BadInput
        If a value is out of range, a word is unknown, or options cannot be combined (`RULES`).

    Examples
    --------
    >>> SearchOptions.of(method="joint", sources="-weighted-trees").sources
    ('-weighted trees',)
    >>> SearchOptions.of(method="descent", refine=True)
    Traceback (most recent call last):
    ...
    sparsecv_mio.errors.BadInput: refine: requires method auto, rounds, joint, algorithm1 or grid, not descent \
(method descent already varies gamma, and method bounds solves no pair)
    """

    one_se: bool = False
    stability: tuple[float, ...] | str | None = None
    model: Model = Model.PAIR
    own_error: bool = False
    method: Method = Method.AUTO
    backend: str = NATIVE
    formulation: str | None = None
    solver_option: tuple[str, ...] = ()
    mio_budget: int | None = None
    refine: bool = False
    sources: tuple[str, ...] = ()
    oracles: tuple[Oracle, ...] | None = None
    scale_within: Within = Within.ALL
    na_within: Within = Within.ALL

    def __post_init__(self) -> None:
        settle_options(self)
        object.__setattr__(self, "backend", backend_name(self.backend))
        object.__setattr__(self, "oracles", parse_oracles(self.oracles))
        object.__setattr__(self, "sources", parse_excluded_sources(self.sources))
        object.__setattr__(self, "stability", parse_stability(self.stability))
        object.__setattr__(self, "solver_option", parse_solver_options(self.solver_option))
        if faults := list(filter(None, map(self._fault, RULES))):
            raise BadInput("; ".join(faults))
        if self.solver_option:
            get_backend(self.backend).check_options(self.solver_option)
        object.__setattr__(self, "formulation", check_formulation(self.backend, self.formulation))

    def _fault(self, rule: Rule) -> str:
        """Return a message if a rule is violated, else an empty text."""
        holder = self.restrictions if rule.option in RESTRICTIONS else self
        value, setting = getattr(holder, rule.option), getattr(self, rule.other)
        unasked, vendors = value in (DEFAULTS[rule.option], ()), rule.words is VENDORS and setting != NATIVE
        is_only_method = setting is Method.JOINT and rule.why == ONE_TREE and not self.loss.is_quadratic
        if unasked or setting in rule.words or vendors or is_only_method:
            return ""
        values = value if isinstance(value, tuple) else (value,)
        text = ",".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)
        named = "" if value is True or holder is not self else f" {text}"
        said = f"{rule.option}{named}: {rule.describe()}"
        if rule.words in ((False,), (None,)):
            return f"{said} ({rule.why}); leave one of the two out"
        return f"{said}, not {format_setting(setting)} ({rule.why})"

    @property
    def workers(self) -> int:
        """Number of threads."""
        return self.threads or os.cpu_count() or 1

    @property
    def within_folds(self) -> OfTrainingRows:
        """Quantities that are computed from the training rows of each fold."""
        return OfTrainingRows(self.na_within, self.scale_within)

    @property
    def by_folds(self) -> tuple[str, ...]:
        """Names of the options that require preprocessing in each fold."""
        return tuple(name for name in WITHIN if getattr(self, name) is Within.FOLDS)

    @property
    def weights(self) -> tuple[float, ...]:
        """Given weights of the instability; empty if nested cross-validation chooses the weight."""
        return self.stability if isinstance(self.stability, tuple) else ()

    def request(self, grid: Grid) -> SearchRequest:
        """Return the requested options as the record stores them."""
        words = {name: _plain_option(getattr(self, name)) for name in RECORDED}
        words |= {name: getattr(self, name) or None for name in ("restrictions", "sources")}
        words["stability"] = self.weights or None
        words |= {name: None for name in WITHIN if words[name] == Within.ALL}
        return SearchRequest(
            tuple(grid.gammas.tolist()), tuple(grid.taus.tolist()), method_used=str(choose_method(self)), **words
        )

    def check_data(self, dataset: Dataset, folds: FoldPlan) -> None:
        """Raise `BadInput` if folds do not fit the data, are too few, or leave training rows of one class only."""
        if folds.n != dataset.n:
            raise BadInput(
                f"folds: the plan has {folds.n} rows, but the data have {dataset.n}; give a plan for these data"
            )
        self.within_folds.check(dataset)
        check_training(dataset, folds, self.intercept, self.loss)
        if self.one_se and not folds.has_standard_error:
            raise BadInput(
                "one_se: a single fold has no standard error; use at least two folds that score different rows"
            )


def describe_deprecated_options(options: SearchOptions) -> list[str]:
    """Return a line for each given option that is deprecated: its name, and the option to use instead.

    Examples
    --------
    >>> describe_deprecated_options(SearchOptions(oracles=("iacv",)))
    ['oracles has no effect and will be removed in 0.4; use --sources']
    """
    return [f"{name} {advice}" for name, advice in DEPRECATED.items() if getattr(options, name) != DEFAULTS[name]]


RECORDED = {field.name for field in fields(SearchRequest)} & {field.name for field in fields(SearchOptions)}
DEFAULTS = {field.name: field.default for field in (*fields(SearchOptions), *fields(Restrictions))}


def parse_oracles(words: str | Iterable[str] | None) -> tuple[Oracle, ...] | None:
    """Return the oracles named in a list or a text, each once; an empty tuple for `none`, and None for None.

    Raises
    ------
    BadInput
        If a keyword is not the name of an oracle, or `none` is combined with other keywords.

    Examples
    --------
    >>> parse_oracles("treecv,glru"), parse_oracles("none"), parse_oracles(None)
    ((<Oracle.GLRU: 'glru'>, <Oracle.TREECV: 'treecv'>), (), None)
    """
    if words is None:
        return None
    several = words.split(",") if isinstance(words, str) else list(words) if isinstance(words, Iterable) else [words]
    if not all(isinstance(word, str) for word in several):
        raise BadInput(f"oracles: {words!r} is not a list of keywords; give some of {', '.join(Oracle)}, or 'none'")
    named = [word.strip().lower() for word in several]
    if named == ["none"] or (not named and not isinstance(words, str)):
        return ()
    chosen = {match_keyword(word, (*Oracle, "none"), "oracles") for word in named}
    if "none" in chosen:
        raise BadInput("oracles: 'none' is given with other keywords; give 'none' alone, or leave it out")
    return tuple(oracle for oracle in Oracle if oracle in chosen)


def parse_excluded_sources(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the sources of bounds that are switched off (:func:`~sparsecv_mio.search.sources.registry.parse_sources`).

    Examples
    --------
    >>> parse_excluded_sources("-weighted-trees"), parse_excluded_sources(())
    (('-weighted trees',), ())
    """
    if given is None or given == ():
        return ()
    from sparsecv_mio.search.sources.registry import parse_sources  # imports every source

    return parse_sources(given)


def parse_stability(given: float | str | Iterable[float] | None) -> tuple[float, ...] | str | None:
    """Return the weights of the instability, or `nested`.

    Parameters
    ----------
    given : float, str, iterable of float or None
        Weight, weights, or the keyword `nested`.

    Raises
    ------
    BadInput
        If a weight is negative, too large or not finite, or a text is neither a weight nor `nested`.

    Examples
    --------
    >>> parse_stability("0.5"), parse_stability("nested"), parse_stability(None)
    ((0.5,), 'nested', None)
    """
    if given is None or (isinstance(given, str) and given == NESTED):
        return given
    try:
        if isinstance(given, str):
            weights: tuple[float, ...] = (finite_number(given, "stability"),)
        else:
            weights = tuple(map(float, given if isinstance(given, Iterable) else (given,)))
    except (TypeError, ValueError):
        weights = ()
    if not weights or not all(0.0 <= weight <= MOST_WEIGHT for weight in weights):
        raise BadInput(f"stability: {given!r} is not a weight; give a number from 0 to {MOST_WEIGHT:g}, or nested")
    return weights


def _plain_option(option: Any) -> Any:
    """Return the value of an option with keywords as plain text."""
    if isinstance(option, tuple):
        return tuple(map(str, option))
    return str(option) if isinstance(option, StrEnum) else option


def choose_method(options: SearchOptions) -> Method:
    """Return the requested method, or the method that `auto` chooses.

    `auto` chooses `rounds`, which is the fastest, with three exceptions. It chooses `joint` for logistic and Poisson
    loss and for solvers of backends, because each subproblem then takes long. Under restrictions other than forced
    columns and bounds on coefficients it chooses `algorithm1`.

    Parameters
    ----------
    options : SearchOptions
        Options of the search.

    Returns
    -------
    Method
        Method other than `auto`.

    Examples
    --------
    >>> str(choose_method(SearchOptions())), str(choose_method(SearchOptions(backend="scip")))
    ('rounds', 'joint')
    >>> str(choose_method(SearchOptions(loss="logistic")))
    'joint'
    """
    if options.method is not Method.AUTO:
        return options.method
    is_bounded = options.backend == NATIVE and options.restrictions.has_only_bounds
    if options.loss.is_quadratic and options.restrictions.side_constraints and not is_bounded:
        return Method.ALGORITHM1
    in_rounds = options.backend == NATIVE and options.loss.is_quadratic
    return Method.ROUNDS if in_rounds else Method.JOINT


File = str | os.PathLike[str]


@dataclass(frozen=True)
class Hooks:
    """The functions, files and events by which a caller observes, ends and stores a search.

    None of them changes the certified answer.

    Attributes
    ----------
    progress : callable, optional
        Function that is called with a :class:`~sparsecv_mio.search.observers.Progress` after each step.
    stop : threading.Event, optional
        Event that the caller sets to end the search with its best answer so far.
    lost : callable, optional
        Function that is called with the error if the checkpoint or the trace cannot be written, for example on a full
        disk; the search continues. Without this function a warning is given.
    began : float, optional
        Start of the time limit on the clock of `time.monotonic`; the time of the call by default.
    checkpoint, resume : path, optional
        File in which the search is stored at intervals, and file of a stored search to resume. A resumed search is
        stored in the same file unless `checkpoint` is given (:mod:`sparsecv_mio.search.observers`).
    trace : path, optional
        File in which the bounds are written as they improve (:mod:`sparsecv_mio.search.observers`).
    scheduler : str, optional
        Address of the scheduler of a dask cluster, whose workers compute parts of the steps.
    found : callable, optional
        Function that is called with the state of the search before the record is built from it.
    """

    progress: Callable[[Progress], None] | None = None
    stop: threading.Event | None = None
    lost: Callable[[SparseCVError], None] | None = None
    began: float | None = None
    checkpoint: File | None = None
    resume: File | None = None
    trace: File | None = None
    scheduler: str | None = None
    found: Callable[[Snapshot], None] | None = None

    @property
    def place_to_store(self) -> File | None:
        """File in which the search is stored: `checkpoint`, else `resume`; None if neither is given."""
        return self.resume if self.checkpoint is None else self.checkpoint


def merged_options(
    options: SearchOptions | None,
    hooks: Hooks | None,
    keywords: Mapping[str, Any],
    function: str,
    near: Iterable[str] = (),
) -> tuple[SearchOptions, Hooks]:
    """Return options and hooks with the fields that were given by keyword.

    Parameters
    ----------
    options, hooks : optional
        Options and hooks in which fields are replaced; the defaults if they are None.
    keywords : mapping
        New values of fields of either class, by name.
    function : str
        Name of the called function, for the error.
    near : iterable of str
        Other keywords of this function, for a suggestion after a misspelling.

    Returns
    -------
    options : SearchOptions
        Checked options.
    hooks : Hooks
        Hooks.

    Raises
    ------
    TypeError
        If a keyword is not a field of either class.
    BadInput
        If a value is out of range, or options cannot be combined.
    """
    ours = {field.name for field in fields(Hooks)}
    of_hooks = {name: value for name, value in keywords.items() if name in ours}
    others = {name: value for name, value in keywords.items() if name not in ours}
    chosen = with_keywords(options or SearchOptions(), others, function, (*GRID, *ours, *near))
    return chosen, with_keywords(hooks or Hooks(), of_hooks, function)
