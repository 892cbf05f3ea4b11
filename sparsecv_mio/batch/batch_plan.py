"""Functions that check the plan of a batch and expand the plan into tasks, one for each combination of values."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.batch.oracle_tasks import ORACLES, SWITCHES, check_oracle, used_settings
from sparsecv_mio.batch.oracle_tasks import SETTINGS as OF_ORACLES
from sparsecv_mio.batch.peers import ESTIMATORS, find_peer
from sparsecv_mio.batch.sources import DESIGN_KEYS, DESIGNS, DataSource, make_sources
from sparsecv_mio.data.folds import fold_columns
from sparsecv_mio.declared_options import ACCELERATING, DEPRECATED, OPTIONS, RESTRICTING, SEARCHING, UNITS
from sparsecv_mio.errors import BadInput, did_you_mean, match_keyword
from sparsecv_mio.files import check_readable
from sparsecv_mio.model_space import MOST_DIGITS, gammas, interval
from sparsecv_mio.targets import DEFAULT_LOSS, Loss, TargetColumns
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from sparsecv_mio.search.options import SearchOptions

OURS = "sparsecv"  # name of the estimator of this package
_OF_ANY_SEARCH = UNITS | SEARCHING | ACCELERATING | RESTRICTING
OF_SEARCHES = tuple(name for name in _OF_ANY_SEARCH if name != "threads")  # a task has one thread
BOTH = "both"  # keyword of `one_se` for the models of both rules
TRAINING = "training"
REFITS = ("all", TRAINING)
SEARCH = ("gamma", "tau", *OF_SEARCHES, "cpu_limit")
SEEDS = ("seed", "split")
COMMON = ("folds", "seed", "test", "split", "refit")
TABLES = ("data", "vary", "include", "exclude")  # tables of a plan
NUMBERS_TOO = {"gamma": (int, float), "tau": (int,), "folds": (int,), "stability": (int, float)}  # and texts
KINDS: Mapping[str, type] = {
    **{name: option.kind for name, option in OPTIONS.items() if name not in RESTRICTING},
    **{"cpu_limit": float, "test": float, "split": int, "refit": str, "estimator": str},
    **dict.fromkeys(SWITCHES, bool),
}  # fmt: skip
ONE_SE = (True, False, BOTH)
NOT_OF_PEERS = ("class_weight",)  # peers do not weight classes


def check_estimator_name(name: str) -> None:
    """Raise `BadInput` for an unknown estimator."""
    estimators = (OURS, *ESTIMATORS, *ORACLES)
    if name not in estimators:
        raise BadInput(f"estimator {name!r} is unknown{did_you_mean(name, estimators)}; use {', '.join(estimators)}")


def check_settings(given: Mapping[str, Any]) -> None:
    """Raise an error for settings that are invalid for all data.

    Parameters
    ----------
    given : mapping
        Settings of a task, by name.

    Raises
    ------
    BadInput
        If a setting is invalid; the message begins with its name.

    Examples
    --------
    >>> check_settings({"estimator": "sparsecv", "gap": 2.0})
    Traceback (most recent call last):
    ...
    sparsecv_mio.errors.BadInput: gap: 2 is out of range; give a number of at least 0 and below 1
    """
    for name, value in given.items():
        if value is not None:
            _check_kind(name, value)
    check_estimator_name(str(given["estimator"]))
    match_keyword(given.get("refit", "all"), REFITS, "refit")
    if given.get("test") is not None:
        check_share(given["test"])
    if given["estimator"] in ORACLES:
        check_oracle(given)
    elif given["estimator"] == OURS:
        try:
            _check_search(given)
        except BadInput as error:
            raise BadInput(with_keys(str(error))) from None
    else:
        find_peer(str(given["estimator"]), given.get("loss", DEFAULT_LOSS))


def _check_kind(name: str, value: Any) -> None:
    """Raise an error for a value of the wrong type, such as a text instead of a number."""
    switch = isinstance(value, bool)
    number, whole = isinstance(value, int | float) and not switch, isinstance(value, int) and not switch
    fits, words = {
        float: (number, "is not a number; give a number without quotes"),
        int: (whole and value >= 0, "is not a whole number of at least 0; give such a number without quotes"),
        bool: (switch, "is unknown; use true or false"),
        str: (isinstance(value, str), "is not a text; give a text in quotes"),
    }.get(KINDS.get(name, object), (True, ""))
    if name == "one_se":
        fits, words = value in ONE_SE, "is unknown; use true, false or 'both'"
    elif name in NUMBERS_TOO:
        fits = isinstance(value, list) or (isinstance(value, (str, *NUMBERS_TOO[name])) and not switch)
        words = "is neither a number nor a text; give a number, or a text in quotes"
    if not fits:
        raise BadInput(f"{name}: {value!r} {words}")


def check_share(share: Any) -> None:
    """Raise `BadInput` for an invalid share of test rows.

    Parameters
    ----------
    share : object
        Value in the plan.
    """
    if not (isinstance(share, int | float) and 0.0 < share < 1.0):
        raise BadInput(f"test: {share!r} is not a share of the rows; give a number above 0 and below 1")


def make_search_options(settings: Mapping[str, Any]) -> SearchOptions:
    """Return the options of the search for some settings.

    Parameters
    ----------
    settings : mapping
        Settings as for :func:`~sparsecv_mio.batch.one_task.run_search`; settings of other estimators are ignored.
    """
    from sparsecv_mio.search.options import SearchOptions  # loads numba

    given = {name: settings[name] for name in OF_SEARCHES if settings.get(name) is not None}
    if given.get("one_se") == BOTH:
        del given["one_se"]
    return SearchOptions.of(threads=1, **given)


def _check_search(given: Mapping[str, Any]) -> None:
    """Raise an error for options of the search that are out of range or cannot be combined."""
    from sparsecv_mio.search.options import Hooks
    from sparsecv_mio.search.question import check_interval

    options = make_search_options(given)
    limit, gamma = given.get("cpu_limit"), given.get("gamma")
    if limit is not None and not 0.0 < limit < float("inf"):
        raise BadInput(f"cpu_limit: {limit:g} is out of range; give a positive number of seconds")
    if isinstance(gamma, str):
        every = interval(gamma, "gamma")
        if every is None:
            gammas(gamma, "gamma")
        else:
            check_interval(every, options, Hooks())


def with_keys(message: str) -> str:
    """Return a message about options with their names as in plans.

    Examples
    --------
    >>> with_keys("taus: '99' is out of range")
    "tau: '99' is out of range"
    """
    return re.sub(r"^(gamma|tau)s\b", r"\1", message).replace("=False", "=false")


RANGE = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
RANGED = ("seed", "split", "draw", "n", "p", "support")  # settings for which LO:HI is a range
MOST_TASKS = 1_000_000  # maximum number of tasks, and of values of a range


def plan_with_changes(plan: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return a plan with changed values.

    Parameters
    ----------
    plan : mapping
        Content of the plan file.
    changes : sequence of str
        Changes `NAME=VALUES` of settings in `[vary]` or of keys of designs. Values are as in the file, or `LO:HI` for
        seeds, splits, draws and sizes, both ends included.

    Raises
    ------
    BadInput
        If a change has no value, or no design of the plan has the key.

    Examples
    --------
    >>> plan = {"data": [{"design": "toeplitz"}], "vary": {"folds": "5"}}
    >>> plan_with_changes(plan, ["split=0:2", "draw=[1, 2]", "folds=loo"])
    {'data': [{'design': 'toeplitz', 'draw': [1, 2]}], 'vary': {'folds': 'loo', 'split': [0, 1, 2]}}
    """
    data, vary = [dict(table) for table in plan.get("data", [])], dict(plan.get("vary", {}))
    for change in changes:
        name, mark, text = change.partition("=")
        if not mark or not name or not text:
            raise BadInput(f"--set {change!r} is not a setting; write NAME=VALUES, for example split=0:19")
        value = _value(name, text)
        designs = [table for table in data if name in DESIGNS.get(str(table.get("design")), ())]
        if name not in DESIGN_KEYS:
            vary[name] = value
        elif designs:
            for table in designs:
                table[name] = value
        else:
            raise BadInput(f"--set {name}: no design of the plan has this key; check the spelling of the key")
    return {**plan, "data": data, "vary": vary}


def _value(name: str, text: str) -> Any:
    ends = RANGE.fullmatch(text)
    if name in RANGED and ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if not low <= high < low + MOST_TASKS:
            raise BadInput(
                f"--set {name}={text} is not a valid range; give LO:HI with LO at most HI, and at most "
                f"{MOST_TASKS:,} values"
            )
        return list(range(low, high + 1))
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


DEFAULTS: Mapping[str, Any] = {"folds": "10", "seed": 0, "estimator": OURS}
PLAN_BYTES = 10_000_000
MOST_PARTS = 50
LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){{{MOST_PARTS}}}""")


@dataclass(frozen=True)
class Task:
    """One run: a data set and the settings of an estimator.

    Attributes
    ----------
    source : DataSource
        Data source.
    settings : dict
        Settings by name, without those that the estimator does not use.
    """

    source: DataSource
    settings: Mapping[str, Any]

    @cached_property
    def address(self) -> str:
        """Name of the task: a digest of data, settings and version; equal tasks have equal names."""
        content = {"data": self.source.digest, "settings": self.settings, "version": __version__}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def estimator(self) -> str:
        """Name of the estimator."""
        return str(self.settings["estimator"])

    @property
    def loss(self) -> Loss:
        """Loss of a search or a peer; squared error for an oracle, which reads the target itself."""
        return DEFAULT_LOSS if self.estimator in ORACLES else Loss(_loss_name(self.settings))

    @property
    def auxiliary_columns(self) -> tuple[str, ...]:
        """Columns of the data for folds and offsets, which are not features."""
        return (*fold_columns(str(self.settings.get("folds", ""))), *self.target_columns.names)

    @property
    def target_columns(self) -> TargetColumns:
        """Columns of exposures and offsets, if the loss has them."""
        return TargetColumns(*(self.settings.get(option) for option in TargetColumns._fields)).keep_for_loss(self.loss)

    def format_other_settings(self, names: Iterable[str]) -> str:
        """Return the settings without the given ones as a text that is equal for equal settings."""
        other_settings = {name: self.settings[name] for name in self.settings.keys() - set(names)}
        return json.dumps(other_settings, sort_keys=True)

    def words(self) -> str:
        """Return the settings as one line."""
        return format_settings(self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the task as JSON material."""
        return {"data": self.source.name, "source": dict(self.source.spec), "settings": dict(self.settings)}


def format_settings(settings: Mapping[str, Any]) -> str:
    """Return settings as one line.

    Examples
    --------
    >>> format_settings({"folds": "10", "seed": 0})
    'folds=10 seed=0'
    """
    return " ".join(f"{name}={value}" for name, value in settings.items())


def kind_of_task(task: Mapping[str, Any]) -> str:
    """Return the data and settings that a task, from `Task.to_dict`, shares with tasks that differ only in seeds."""
    settings = {name: value for name, value in task["settings"].items() if name not in SEEDS}
    return json.dumps([task["source"], settings], sort_keys=True)


def read_plan(path: str | Path, changes: Sequence[str] = (), warn: Callable[[str], None] | None = None) -> list[Task]:
    """Return the tasks of a plan file.

    Parameters
    ----------
    path : str or Path
        TOML file with tables `[[data]]` that name data sets, `[vary]` with a value or a list of values for settings,
        `[[exclude]]` and `[[include]]`. Paths of files are relative to the plan.
    changes : sequence of str
        Values that replace those of the plan, see :func:`~sparsecv_mio.batch.batch_plan.plan_with_changes`.
    warn : callable, optional
        Function that is called with a message for every setting that no estimator of the plan uses.

    Returns
    -------
    list of Task
        Distinct tasks in the order of the data.

    Raises
    ------
    BadInput
        If a table or key is invalid; the message names it.
    """
    place = Path(path)
    plan = _parse_plan(place)
    try:
        _check_shape(plan)
        changed = plan_with_changes(plan, changes)
        tasks = make_tasks(changed, place.parent)
    except BadInput as error:
        raise BadInput(f"plan {str(place)!r}: {error}") from None
    if warn is not None:
        for message in _list_useless_settings(changed, tasks):
            warn(message)
    return tasks


def _parse_plan(place: Path) -> dict[str, Any]:
    """Return the content of a plan file."""
    try:
        check_readable(place, "plan", most=PLAN_BYTES)
        text = place.read_text(encoding="utf-8")
        if LONG_KEY.search(text):  # tomllib needs memory quadratic in the length of dotted keys
            raise BadInput(
                f"plan {str(place)!r} has a key of more than {MOST_PARTS} parts separated by dots; shorten the key"
            )
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"plan {str(place)!r} cannot be read: {error}".splitlines()[0] + "; give a text file") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"plan {str(place)!r} is not a TOML file: {str(error).splitlines()[0]}; correct it") from None
    except (ValueError, RecursionError):
        raise BadInput(
            f"plan {str(place)!r} has a number with too many digits, or lists that are nested too deeply; correct it"
        ) from None


def _list_useless_settings(plan: Mapping[str, Any], tasks: Sequence[Task]) -> Iterator[str]:
    """Yield a message for every setting that no estimator uses, is deprecated, or leaves the test rows unchanged."""
    for name in plan.get("vary", {}):
        if not any(name in task.settings for task in tasks):
            yield f"setting {name!r} is not used by any estimator of the plan; remove it"
    for name, advice in DEPRECATED.items():
        if any(task.settings.get(name) for task in tasks):
            yield f"setting {name!r} {advice}"
    tested = [task.settings for task in tasks if task.settings.get("test") is not None]
    seeds, splits = ({settings.get(name) for settings in tested} for name in ("seed", "split"))
    if len(seeds) > 1 and len(splits) == 1:
        yield "seed changes only the folds; to change the test rows as well, vary split"


def lists_of_numbers(tasks: Iterable[Task]) -> list[str]:
    """Return notes that each value in a list of `gamma` or `tau` makes a separate task, and how to write a grid.

    Examples
    --------
    >>> lists_of_numbers(make_tasks({"data": [{"sklearn": "diabetes"}], "vary": {"gamma": [0.1, 1.0]}}))
    ['each of the 2 values of gamma makes a separate task; for one task with a grid, write gamma = "0.1,1.0"']
    """
    notes, settings = [], [task.settings for task in tasks]
    for name in ("gamma", "tau"):
        values = dict.fromkeys(one[name] for one in settings if isinstance(one.get(name), int | float))
        if len(values) > 1:
            notes.append(
                f"each of the {len(values)} values of {name} makes a separate task; for one task with a grid, write "
                f'{name} = "{",".join(map(str, values))}"'
            )
    return notes


def make_tasks(plan: Mapping[str, Any], folder: str | Path = ".") -> list[Task]:
    """Return the tasks of a plan.

    Parameters
    ----------
    plan : mapping
        Content of the plan file, see :func:`read_plan`.
    folder : str or Path
        Folder to which paths of files are relative.

    Raises
    ------
    BadInput
        As for :func:`read_plan`.

    Examples
    --------
    >>> plan = {"data": [{"sklearn": "diabetes"}], "vary": {"folds": ["10", "loo"], "estimator": ["sparsecv", "lasso"]}}
    >>> [task.words() for task in make_tasks(plan)][:2]
    ['folds=10 seed=0 estimator=sparsecv', 'folds=10 seed=0 estimator=lasso']
    """
    _check_shape(plan)
    sources = [source for table in plan["data"] for source in make_sources(table, Path(folder))]
    vary = plan.get("vary", {})
    _check_keys(vary, ("estimator", *COMMON, *SEARCH, *OF_ORACLES), "[vary]")
    lists = {name: _list_values(name, vary.get(name, DEFAULTS.get(name))) for name in {**DEFAULTS, **vary}}
    excluded = [_rule(rule, "[[exclude]]", ("design", *DESIGN_KEYS)) for rule in plan.get("exclude", [])]
    tasks: dict[str, Task] = {}
    every = (
        _task(source, dict(zip(lists, values, strict=True)))
        for source in sources for values in itertools.product(*lists.values())
    )  # fmt: skip
    kept = (task for task in every if not any(_matches(task, rule) for rule in excluded))
    for task in itertools.chain(kept, _make_included_tasks(plan.get("include", []), sources, lists)):
        tasks.setdefault(task.address, task)
        if len(tasks) > MOST_TASKS:
            raise BadInput(f"plan: more than {MOST_TASKS:,} tasks; shorten the lists of the plan")
    if not tasks:
        raise BadInput("plan: every task is excluded by [[exclude]]; exclude fewer tasks")
    different = {task.format_other_settings(SEEDS): task for task in reversed(tasks.values())}
    for task in reversed(different.values()):
        check_settings(task.settings)
    return list(tasks.values())


def _check_shape(plan: Mapping[str, Any]) -> None:
    """Raise an error for a plan with invalid tables, or with values that no setting allows."""
    if stray := next((name for name in plan if name not in TABLES), None):
        raise BadInput(
            f"plan: [{stray}] is not a table of a plan; use {', '.join(TABLES)}, and put settings into [vary]"
        )
    if not plan.get("data"):
        raise BadInput("plan: there is no data set; give at least one table [[data]]")
    for name, value in plan.items():
        header = f"[{name}]" if name == "vary" else f"[[{name}]]"
        tables = [value] if name == "vary" else value
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise BadInput(f"{header} must be {'a table' if name == 'vary' else 'tables'}, not {str(value)[:30]!r}")
        for table in tables:
            for key, setting in table.items():
                _check_values(setting, f"{header}: {key}")


def _check_values(value: Any, where: str) -> None:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_values(item, where)
    elif isinstance(value, date | time):
        raise BadInput(f"{where}: {value} is a date or a time; give a number, or a text in quotes")
    elif isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise BadInput(f"{where}: a number has more than {MOST_DIGITS} digits; give a smaller number")


def _task(source: DataSource, given: Mapping[str, Any]) -> Task:
    if given["estimator"] in ORACLES:
        return Task(source, used_settings(given))
    means = (*COMMON, "estimator", *(SEARCH if given["estimator"] == OURS else _peer_settings(_loss_name(given))))
    return Task(source, {name: given[name] for name in means if given.get(name) is not None})


def _peer_settings(loss: str) -> tuple[str, ...]:
    """Return the settings of a peer with a loss."""
    if loss not in set(Loss):  # refused later
        return ("loss",)
    target = Loss(loss).target
    options = tuple(option for option in target.options if option not in NOT_OF_PEERS)
    return () if target.is_quadratic else ("loss", *options)


def _loss_name(given: Mapping[str, Any]) -> str:
    return str(given.get("loss", DEFAULT_LOSS)).lower()


def _make_included_tasks(
    rules: Iterable[Any], sources: list[DataSource], lists: Mapping[str, list[Any]]
) -> Iterator[Task]:
    """Yield the tasks of `[[include]]`; a setting that is not named has the first value of its list."""
    for rule in rules:
        settings = _rule(rule, "[[include]]")
        named = settings.pop("data", None)
        chosen = [source for source in sources if named in (None, source.name)]
        if not chosen:
            names = [source.name for source in sources]
            raise BadInput(f"[[include]]: there is no data set {named!r}{did_you_mean(str(named), names)}")
        first = {name: values[0] for name, values in lists.items()}
        yield from (_task(source, {**first, **settings}) for source in chosen)


def _matches(task: Task, rule: Mapping[str, Any]) -> bool:
    have = {**dict(task.source.spec), **task.settings, "data": task.source.name}
    return all(have.get(name) in _list_values(name, value) for name, value in rule.items())


def _rule(rule: Any, where: str, more: Iterable[str] = ()) -> dict[str, Any]:
    if not isinstance(rule, dict):
        raise BadInput(f"{where} is not a table; write key = value below its header")
    _check_keys(rule, ("data", "estimator", *COMMON, *SEARCH, *OF_ORACLES, *more), where)
    return dict(rule)


def _check_keys(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    allowed = tuple(names)
    for name in table:
        if name not in allowed:
            raise BadInput(f"{where}: unknown key {name!r}{did_you_mean(name, allowed)}; use {', '.join(allowed)}")


def _list_values(name: str, value: Any) -> list[Any]:
    """Return the values of a key of `[vary]` or of a rule, of which there is at least one."""
    items = value if isinstance(value, list) else [value]
    if not items:
        raise BadInput(f"plan: {name} is an empty list; remove it or give a value")
    if not any(isinstance(item, Mapping) for item in items):
        return items
    from sparsecv_mio.search.options import parse_solver_options

    # options of a solver, as one text for task names and tables
    return [",".join(parse_solver_options(item)) if isinstance(item, Mapping) else item for item in items]
