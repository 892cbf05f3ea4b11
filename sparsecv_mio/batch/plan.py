"""A plan file becomes tasks: the product of its lists, less what is excluded, and what is included besides."""

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
from typing import Any

from sparsecv_mio.batch.changes import changed
from sparsecv_mio.batch.designs import DESIGN_KEYS
from sparsecv_mio.batch.oracles import ORACLES, settings_of
from sparsecv_mio.batch.oracles import SETTINGS as OF_ORACLES
from sparsecv_mio.batch.ours import OURS, SEARCH
from sparsecv_mio.batch.settings import COMMON, SEEDS, check_settings
from sparsecv_mio.batch.sources import Source, sources_of
from sparsecv_mio.data.folds import fold_columns
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.files import check_readable
from sparsecv_mio.grids import MOST_DIGITS
from sparsecv_mio.version import __version__

DEFAULTS: Mapping[str, Any] = {"folds": "10", "seed": 0, "estimator": OURS}
MOST_TASKS = 1_000_000
MOST_BYTES = 10_000_000
MOST_PARTS = 50
LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){{{MOST_PARTS}}}""")


@dataclass(frozen=True)
class Task:
    """One run: a data set and the settings of the estimator that is run on it.

    Attributes
    ----------
    source : Source
    settings : dict
        By name; those that mean nothing to the estimator are not there.
    """

    source: Source
    settings: Mapping[str, Any]

    @cached_property
    def address(self) -> str:
        """Name of the task: a digest of the data, of the settings and of the version; equal tasks have equal names."""
        content = {"data": self.source.digest, "settings": self.settings, "version": __version__}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def estimator(self) -> str:
        """Name of the estimator."""
        return str(self.settings["estimator"])

    @property
    def columns_of_folds(self) -> tuple[str, ...]:
        """Columns of the data that give the folds, and are no features."""
        return fold_columns(str(self.settings.get("folds", "")))

    def settings_without(self, names: Iterable[str]) -> str:
        """Return the settings but for some as a text, the same for equal ones."""
        kept = {name: self.settings[name] for name in self.settings.keys() - set(names)}
        return json.dumps(kept, sort_keys=True)

    def words(self) -> str:
        """Return the settings in a line."""
        return words_of(self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the task as JSON material."""
        return {"data": self.source.name, "source": dict(self.source.spec), "settings": dict(self.settings)}


def words_of(settings: Mapping[str, Any]) -> str:
    """Return settings in a line.

    Examples
    --------
    >>> words_of({"folds": "10", "seed": 0})
    'folds=10 seed=0'
    """
    return " ".join(f"{name}={value}" for name, value in settings.items())


def kind_of(task: Mapping[str, Any]) -> str:
    """Return what a task, as `Task.to_dict` gives it, shares with those that differ from it by seeds alone."""
    settings = {name: value for name, value in task["settings"].items() if name not in SEEDS}
    return json.dumps([task["source"], settings], sort_keys=True)


def read_plan(
    path: str | Path, changes: Sequence[str] = (), warn: Callable[[str], None] | None = None
) -> list[Task]:
    """Read a plan.

    Parameters
    ----------
    path : str or Path
        A TOML file: tables `[[data]]` that name data sets, `[vary]` with a value or a list of values for settings,
        `[[exclude]]` and `[[include]]`. Files are looked for beside the plan.
    changes : sequence of str
        Values to take in place of the plan's, see :func:`~sparsecv_mio.batch.changes.changed`.
    warn : callable, optional
        Told in a line of every setting that means nothing to any estimator of the plan.

    Returns
    -------
    list of Task
        In the order of the data; no task twice.

    Raises
    ------
    BadInput
        The message names the table and the key that is wrong.
    """
    place = Path(path)
    try:
        check_readable(place, "plan", most=MOST_BYTES)
        text = place.read_text(encoding="utf-8")
        if LONG_KEY.search(text):  # which takes tomllib a memory of the square of their number
            raise BadInput(f"plan {str(place)!r} has a key of more than {MOST_PARTS} parts with dots between them")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"plan {str(place)!r} cannot be read: {error}".splitlines()[0]) from None
    try:
        plan = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"plan {str(place)!r} is no TOML: {str(error).splitlines()[0]}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"plan {str(place)!r} holds a number, or lists in lists, too long to be meant") from None
    try:
        _check_shape(plan)
        asked = changed(plan, changes)
        tasks = tasks_of(asked, place.parent)
    except BadInput as error:
        raise BadInput(f"plan {str(place)!r}: {error}") from None
    if warn is not None:
        used = {name for task in tasks for name in task.settings}
        for name in asked.get("vary", {}):
            if name not in used:
                warn(f"setting {name!r} is used by none of the estimators of the plan")
        tested = [task.settings for task in tasks if task.settings.get("test") is not None]
        if len({one.get("seed") for one in tested}) > 1 and len({one.get("split") for one in tested}) == 1:
            warn("seeds deal folds, every one of them is tested on the same rows: vary split for other test rows")
    return tasks


def lists_of_numbers(tasks: Iterable[Task]) -> list[str]:
    """Say of `gamma` and `tau`, where numbers of a list make tasks of their own, how a grid of them is written.

    Parameters
    ----------
    tasks : iterable of Task

    Examples
    --------
    >>> lists_of_numbers(tasks_of({"data": [{"sklearn": "diabetes"}], "vary": {"gamma": [0.1, 1.0]}}))
    ['2 values of gamma: a task for each; a grid of both is the string "0.1,1.0"']
    """
    given: dict[str, dict[float, None]] = {"gamma": {}, "tau": {}}
    for task in tasks:
        for name, values in given.items():
            if isinstance(value := task.settings.get(name), int | float):
                values[value] = None
    return [
        f"{len(values)} values of {name}: a task for each; a grid of {'both' if len(values) == 2 else 'all'} is the "
        f'string "{",".join(map(str, values))}"'
        for name, values in given.items()
        if len(values) > 1
    ]


def tasks_of(plan: Mapping[str, Any], folder: str | Path = ".") -> list[Task]:
    """Make the tasks of a plan.

    Parameters
    ----------
    plan : mapping
        As in the file, see :func:`read_plan`.
    folder : str or Path
        Where its files are looked for.

    Raises
    ------
    BadInput
        As :func:`read_plan`.

    Examples
    --------
    >>> plan = {"data": [{"sklearn": "diabetes"}], "vary": {"folds": ["10", "loo"], "estimator": ["sparsecv", "lasso"]}}
    >>> [task.words() for task in tasks_of(plan)][:2]
    ['folds=10 seed=0 estimator=sparsecv', 'folds=10 seed=0 estimator=lasso']
    """
    _check_shape(plan)
    sources = [source for table in plan["data"] for source in sources_of(table, Path(folder))]
    vary = plan.get("vary", {})
    _known(vary, ("estimator", *COMMON, *SEARCH, *OF_ORACLES), "[vary]")
    lists = {name: _listed(vary.get(name, DEFAULTS.get(name))) for name in {**DEFAULTS, **vary}}
    excluded = [_rule(rule, "[[exclude]]", ("design", *DESIGN_KEYS)) for rule in plan.get("exclude", [])]
    found: dict[str, Task] = {}
    for task in itertools.chain(
        (task for task in _product(sources, lists) if not any(_matches(task, rule) for rule in excluded)),
        _included(plan.get("include", []), sources, lists),
    ):
        found.setdefault(task.address, task)
        if len(found) > MOST_TASKS:
            raise BadInput(f"the plan makes more than {MOST_TASKS:,} tasks: make its lists shorter")
    if not found:
        raise BadInput("the plan excludes all of its tasks")
    different = {task.settings_without(SEEDS): task for task in reversed(found.values())}
    for task in reversed(different.values()):
        check_settings(task.settings)
    return list(found.values())


def _check_shape(plan: Mapping[str, Any]) -> None:
    """Refuse a plan that is not made of the tables that plans are made of, or has values that no setting takes."""
    _known(plan, ("data", "vary", "include", "exclude"), "the plan")
    if not plan.get("data"):
        raise BadInput("the plan names no data: give at least one table [[data]]")
    for name, value in plan.items():
        header = f"[{name}]" if name == "vary" else f"[[{name}]]"
        tables = [value] if name == "vary" else value
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise BadInput(f"{header} must be {'a table' if name == 'vary' else 'tables'}, not {str(value)[:30]!r}")
        for table in tables:
            for key, one in table.items():
                _check_values(one, f"{header}: {key}")


def _check_values(value: Any, where: str) -> None:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_values(one, where)
    elif isinstance(value, date | time):
        raise BadInput(f"{where}: {value} is a date or a time: give a number, or a text in quotes")
    elif isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise BadInput(f"{where}: a number of more than {MOST_DIGITS} digits is never meant")


def _product(sources: Iterable[Source], lists: Mapping[str, list[Any]]) -> Iterator[Task]:
    for source in sources:
        for values in itertools.product(*lists.values()):
            yield _task(source, dict(zip(lists, values, strict=True)))


def _task(source: Source, given: Mapping[str, Any]) -> Task:
    if given["estimator"] in ORACLES:
        return Task(source, settings_of(given))
    means = (*COMMON, "estimator", *(SEARCH if given["estimator"] == OURS else ()))
    return Task(source, {name: given[name] for name in means if given.get(name) is not None})


def _included(rules: Iterable[Any], sources: list[Source], lists: Mapping[str, list[Any]]) -> Iterator[Task]:
    """Yield tasks that are asked for one by one: settings that are not named are the first of their lists."""
    for rule in rules:
        given = _rule(rule, "[[include]]")
        named = given.pop("data", None)
        chosen = [source for source in sources if named in (None, source.name)]
        if not chosen:
            raise BadInput(f"[[include]]: no data set is called {named!r}{did_you_mean(str(named), _names(sources))}")
        first = {name: values[0] for name, values in lists.items()}
        yield from (_task(source, {**first, **given}) for source in chosen)


def _matches(task: Task, rule: Mapping[str, Any]) -> bool:
    have = {**dict(task.source.spec), **task.settings, "data": task.source.name}
    return all(have.get(name) in _listed(value) for name, value in rule.items())


def _rule(rule: Any, where: str, more: Iterable[str] = ()) -> dict[str, Any]:
    if not isinstance(rule, dict):
        raise BadInput(f"{where} must be a table")
    _known(rule, ("data", "estimator", *COMMON, *SEARCH, *OF_ORACLES, *more), where)
    return dict(rule)


def _known(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    allowed = tuple(names)
    for name in table:
        if name not in allowed:
            raise BadInput(f"{where}: unknown key {name!r}{did_you_mean(name, allowed)}, use {', '.join(allowed)}")


def _names(sources: Iterable[Source]) -> list[str]:
    return [source.name for source in sources]


def _listed(value: Any) -> list[Any]:
    found = value if isinstance(value, list) else [value]
    if not found:
        raise BadInput("[vary]: a list is empty: leave the key out or give a value")
    return found
