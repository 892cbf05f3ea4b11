"""Functions that choose columns of a table: target, features, folds, weights, exposures and ids."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, quoted_name
from sparsecv_mio.errors import BadInput, WrongColumn, did_you_mean


@dataclass(frozen=True)
class Wanted:
    """The columns that the user requests, before the header is known."""

    target: str | int
    features: Sequence[str] | None
    drop: Sequence[str] | None
    aux: tuple[str, ...]
    needed: bool = True  # True if the data must have the target
    index: str | None = None  # a column that only numbers the rows
    two_words: bool | None = False  # True if the target may hold two text values, None if the caller has no loss
    sure: bool = False  # True if the number format is known, as for a second read
    role: str = "id, fold, group, weight, exposure or offset column"  # role of the columns in `aux`, for messages

    def __post_init__(self) -> None:
        """Raise `BadInput` if the target is neither a name nor a position."""
        if not isinstance(self.target, str | Integral):
            raise BadInput(
                "target: must be the name or position of a column; for arrays use solve(Dataset.from_arrays(X, y)) or "
                "use BestSubsetRidgeCV().fit(X, y)"
            )

    @property
    def classes_by(self) -> str:
        """Keyword that makes a target of two text values two classes."""
        return "two_words=True" if self.two_words is None else 'loss="logistic"'

    @property
    def has_fixed_options(self) -> bool:
        """True if the options are those of a record, for its data or new rows, so no others can be proposed."""
        return self.sure or not self.needed

    def select_columns(self, header: Sequence[str], void: Collection[int] = ()) -> Selection:
        """Return the positions of the requested columns in a header.

        Parameters
        ----------
        header : sequence of str
            Names of the columns.
        void : collection of int
            Positions of columns that have neither a name nor values; they are left out.

        Raises
        ------
        BadInput
            If a name is missing, unknown or given twice, or a column has two uses.

        Examples
        --------
        >>> Wanted("y", None, ["b"], ("g",)).select_columns(["a", "b", "g", "y"]).names
        ('a',)
        """
        features, drop = _words(self.features, "features"), _words(self.drop, "drop")
        if features is not None and drop is not None:
            raise BadInput("features and drop exclude each other; use one of the two")
        names, no_features = self._complete_names(header, void)
        if self.has_fixed_options and features is not None:  # names of a record are never positions
            if self.needed:
                _position(names, str(self.target), "target")
            _check_there(features, names)
        _check_repeated_names(names)
        goal = self._find_target(names)
        aux = tuple(_position(names, name, self.role) for name in dict.fromkeys(self.aux))
        _check_use(names, aux, {goal}, "is the target and cannot be the column of an option too")
        unavailable = set(aux) if self.needed else set[int]()
        if features is None:
            places = self._undropped_places(names, drop or (), goal) - unavailable
            places -= {names.index(name) for name in no_features}
        else:
            places = self._requested_places(names, features, goal, unavailable)
        _check_unnamed(names, places)
        if not places:
            raise BadInput("no feature is left; keep at least one column in addition to the target")
        return Selection(names, goal, tuple(sorted(places)), aux)

    def _find_target(self, names: tuple[str, ...]) -> int | None:
        """Return the position of the target; None if new rows do not have it."""
        if not self.needed and (self.target == "" or self.target not in names):
            return None
        if not str(self.target).strip():
            raise BadInput(f"the target is missing; give one of {_list_names(names)}")
        return _column(names, str(self.target), "target")

    @staticmethod
    def _undropped_places(names: tuple[str, ...], drop: Iterable[str], goal: int | None) -> set[int]:
        """Return the positions of all columns except the target and the dropped ones."""
        dropped = {_column(names, name, "dropped column") for name in drop}
        _check_use(names, dropped, {goal}, "is the target and cannot be dropped")
        return {*range(len(names))} - dropped - {goal}

    @staticmethod
    def _requested_places(
        names: tuple[str, ...], features: Sequence[str], goal: int | None, unavailable: set[int]
    ) -> set[int]:
        """Return the positions of the requested features; `unavailable` columns have another use."""
        header = {*names}
        names_only = [name for name in features if name not in header and not name.strip().isdigit()]
        _check_there([name for name in names_only if name.strip() not in header], names)
        places = {_column(names, name, "feature") for name in features}
        _check_use(names, places, {goal}, "is the target and cannot be a feature")
        _check_use(
            names, places, unavailable, "gives folds, weights, exposures, offsets or ids and cannot be a feature"
        )
        return places

    def _complete_names(self, header: Sequence[str], void: Collection[int]) -> tuple[tuple[str, ...], list[str]]:
        """Return the names of all columns, and the columns that are no features: void ones and the index."""
        names = tuple(f"(column {j + 1})" if j in void else name for j, name in enumerate(header))
        no_features = [names[j] for j in void]
        if self.index is not None:  # it may have no name
            place = _column(names, self.index, "index column")
            names = (*names[:place], names[place] or "(index)", *names[place + 1 :])
            no_features.append(names[place])
        return names, no_features


@dataclass(frozen=True)
class Selection:
    """Positions in a header: the target, if any, the features in file order, and the auxiliary columns by name."""

    header: tuple[str, ...]
    target: int | None
    features: tuple[int, ...]
    aux: tuple[int, ...]

    @property
    def goal(self) -> str:
        """Name of the target, empty if there is none."""
        return "" if self.target is None else self.header[self.target]

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names."""
        return tuple(self.header[j] for j in self.features)

    @property
    def numeric(self) -> tuple[int, ...]:
        """Positions of every column that must hold numbers: the features, then the target."""
        return self.features if self.target is None else (*self.features, self.target)


def _check_use(names: Sequence[str], places: Iterable[int], others: Collection[int | None], clash: str) -> None:
    """Raise `BadInput` if a column has two uses that exclude each other."""
    for place in places:
        if place in others:
            raise BadInput(f"column {names[place]!r} {clash}; use another column, or remove one of the two options")


def _check_unnamed(names: tuple[str, ...], places: Iterable[int]) -> None:
    """Raise `BadInput` if a feature has no name."""
    unnamed = [j for j in sorted(places) if not names[j]]
    if not unnamed:
        return
    several = len(unnamed) > 1
    numbers = ", ".join(str(j + 1) for j in unnamed)
    taken = any(str(j) in names for j in unnamed)  # a position then refers to the column of this name
    drop = "" if taken else f", or give {drop_keyword(*map(str, unnamed))}"
    raise BadInput(
        f"{'columns' if several else 'column'} {numbers} {'have' if several else 'has'} no name; name "
        f"{'them' if several else 'it'} in the header{drop}"
    )


def _check_repeated_names(names: tuple[str, ...]) -> None:
    """Raise `BadInput` if two columns have the same name; columns without a name are checked later."""
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise BadInput(f"column name {twice[0]!r} is in the header more than once; give every column a different name")


def _words(given: Sequence[str | int] | None, option: str) -> list[str] | None:
    """Return names or positions of columns as a list of texts; a single value is allowed."""
    if given is None:
        return None
    several = [given] if isinstance(given, str | Integral) else given
    if not isinstance(several, Iterable) or not all(isinstance(name, str | Integral) for name in several):
        raise BadInput(f"{option}: {given!r} is not a list of column names or positions; give such a list")
    names = [str(name) for name in several]
    for name, count in Counter(names).items():
        if count > 1:
            raise BadInput(f"column {name!r} is listed twice in {option}; list it once")
    return names


def _column(names: tuple[str, ...], given: str, role: str) -> int:
    """Return the position of a column given by name or, if no column has that name, by position."""
    word = str(given).strip()
    for name in (str(given), word):
        if name in names:
            return names.index(name)
    if word.isascii() and word.isdigit():
        if len(word) < 10 and int(word) < len(names):
            return int(word)
        raise BadInput(f"{role} {word} is neither a name nor one of the positions 0..{len(names) - 1}; give one")
    return _position(names, word, role)


def _position(names: tuple[str, ...], name: str, role: str) -> int:
    if name not in names:
        if all(item.strip() in names for item in name.split(",")):
            remedy = "give them as a list of names" if role in ("feature", "dropped column") else "give one of them"
            raise WrongColumn(role, name, f"has the names of several columns; {remedy}")
        near = did_you_mean(name, names)
        raise WrongColumn(role, name, f"is not in the data{near}; the columns are {_list_names(names)}")
    return names.index(name)


def _check_there(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise `BadInput` that names the features that are not columns of the data."""
    header = set(names)
    missing = [name for name in wanted if name not in header]
    if len(missing) == 1:
        _position(tuple(names), missing[0], "feature")
    if missing:
        named = abbreviate_list([repr(name) for name in missing])
        raise BadInput(f"features {named} are not in the data; the columns are {_list_names(tuple(names))}")


def _list_names(names: tuple[str, ...]) -> str:
    """Return names for a message; a long list has the first names and the last, which is often the target."""
    if not names:
        return "none: the table is empty"
    if len(names) <= MOST_NAMED:
        return ", ".join(map(quoted_name, names))
    first, last = ", ".join(map(quoted_name, names[: MOST_NAMED - 1])), quoted_name(names[-1])
    return f"{first}, ..., {last} ({len(names)} in all)"


def drop_keyword(*names: str) -> str:
    """Return the keyword that drops columns.

    Examples
    --------
    >>> drop_keyword("a", "b")
    'drop=["a", "b"]'
    """
    return f"drop={json.dumps(names, ensure_ascii=False)}"
