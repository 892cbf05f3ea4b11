"""Choose target, features and auxiliary columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral

from sparsecv_mio.errors import BadInput, did_you_mean

SHOWN_NAMES = 8


@dataclass(frozen=True)
class Wanted:
    """The user's words about columns, before any header is known."""

    target: str | int
    features: Sequence[str] | None
    drop: Sequence[str] | None
    aux: tuple[str, ...]
    needed: bool = True  # whether the data must have the target
    index: str | None = None  # a column that only numbers the rows
    two_words: bool = False  # whether the target may hold two words
    sure: bool = False  # whether it is known how numbers are written, as where rows are read once more

    @property
    def settled(self) -> bool:
        """Whether the way to read is that of a record, so that no other can be proposed: its data, or new rows."""
        return self.sure or not self.needed

    def within(self, header: Sequence[str]) -> Selection:
        """Resolve the words against a header; see :func:`select_columns`."""
        self = replace(self, features=_words(self.features, "features"), drop=_words(self.drop, "drop"))
        header, drop = self._numbered(list(header))
        if not self.needed and self.target not in header:
            gone = {_column(tuple(header), name, "dropped column") for name in drop or ()}
            rest = [name for j, name in enumerate(header) if j not in gone]
            return select_features(header, rest if self.features is None else self.features)
        return select_columns(header, self.target, self.features, drop, self.aux)

    def _numbered(self, header: list[str]) -> tuple[list[str], Sequence[str] | None]:
        """Return the header and the columns to drop, with the one that numbers the rows, which may be nameless."""
        if self.index is None:
            return header, self.drop
        place = _column(tuple(header), self.index, "index column")
        header[place] = header[place] or "(index)"
        if self.features is not None:
            return header, self.drop
        return header, list(dict.fromkeys([*(self.drop or ()), header[place]]))


@dataclass(frozen=True)
class Selection:
    """Positions in a header: the target, if any, the features in file order, the auxiliary columns by name."""

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


def select_features(header: Sequence[str], features: Sequence[str]) -> Selection:
    """Resolve the names of features where there is no target; see :func:`select_columns`.

    Examples
    --------
    >>> select_features(["a", "b", "c"], ["c", "a"]).names
    ('a', 'c')
    """
    names = tuple(header)
    _check_header(names)
    return Selection(names, None, tuple(sorted(_positions(names, features))), ())


def select_columns(
    header: Sequence[str],
    target: str | int,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    aux: Sequence[str] = (),
) -> Selection:
    """Resolve the user's words against the names of the columns.

    Parameters
    ----------
    header : sequence of str
        Column names of the data.
    target : str or int
        A name; where no column has it, a 0-based position.
    features, drop : sequence of str, optional
        Names to keep or to leave out, or positions as for the target. Features keep the order of the file.
    aux : sequence of str
        Group and fold columns: never features.

    Raises
    ------
    BadInput
        If a name is missing, unknown or given twice, or a column has two uses.

    Examples
    --------
    >>> select_columns(["a", "b", "g", "y"], "y", drop=["b"], aux=["g"]).names
    ('a',)
    """
    names = tuple(header)
    _check_header(names)
    goal = _target(names, target)
    extra = tuple(_position(names, name, "fold, group or weight column") for name in dict.fromkeys(aux))
    if goal in extra:
        raise BadInput(f"column {names[goal]!r} is the target and cannot give the folds too: use another column")
    if features is not None and drop is not None:
        raise BadInput("features and drop were both given: use one of the two")
    _check_repeats(features, "features")
    _check_repeats(drop, "drop")
    if features is not None:
        kept = _positions(names, features)
        if goal in kept:
            raise BadInput(f"column {names[goal]!r} is the target and cannot be a feature: take it off the features")
        for j in extra:
            if j in kept:
                uses = "gives the folds or weights and cannot be a feature"
                raise BadInput(f"column {names[j]!r} {uses}: take it off the features")
    else:
        gone = {_column(names, name, "dropped column") for name in drop or ()}
        if goal in gone:
            raise BadInput(
                f"column {names[goal]!r} is the target and cannot be dropped: take it off the dropped columns"
            )
        kept = set(range(len(names))) - gone - {goal, *extra}
    if not kept:
        raise BadInput("no feature is left: keep at least one column beside the target")
    return Selection(names, goal, tuple(sorted(kept)), extra)


def _check_header(names: tuple[str, ...]) -> None:
    for j, name in enumerate(names):
        if not name:
            raise BadInput(
                f"column {j + 1} has no name: name it in the header, or leave it out with index_col={j} if it only "
                "numbers the rows"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(f"column name {twice[0]!r} stands in the header more than once: give every column its own name")


def _words(given: Sequence[str | int] | None, option: str) -> list[str] | None:
    """Return names or positions of columns as texts; a single one may stand alone."""
    if given is None:
        return None
    several = [given] if isinstance(given, str | Integral) else given
    if not isinstance(several, Iterable) or not all(isinstance(one, str | Integral) for one in several):
        raise BadInput(f"{option}: {given!r} is no list of names or positions of columns")
    return [str(one) for one in several]


def _check_repeats(given: Sequence[str] | None, option: str) -> None:
    twice = [name for name, count in Counter(given or ()).items() if count > 1]
    if twice:
        raise BadInput(f"column {twice[0]!r} is named twice in {option}: name it once")


def _target(names: tuple[str, ...], target: str | int) -> int:
    word = str(target).strip()
    if not word:
        raise BadInput(f"no target was named: use one of {_listed(names)}")
    return _column(names, word, "target")


def _column(names: tuple[str, ...], given: str, role: str) -> int:
    """Return the place of a column that is given by name or, where none has that name, by its place."""
    word = str(given).strip()
    if word in names:
        return names.index(word)
    if word.isascii() and word.isdigit():
        if len(word) < 10 and int(word) < len(names):
            return int(word)
        raise BadInput(f"{role} {word} is neither a name nor one of the positions 0..{len(names) - 1}")
    return _position(names, word, role)


def _position(names: tuple[str, ...], name: str, role: str) -> int:
    if name not in names:
        near = did_you_mean(name, names)
        raise BadInput(f"{role} {name!r} is not in the data{near}: its columns are {_listed(names)}")
    return names.index(name)


def _positions(names: tuple[str, ...], features: Sequence[str]) -> set[int]:
    missing = [name for name in features if name not in names and not name.strip().isdigit()]
    if len(missing) > 1:
        named = ", ".join(map(repr, missing))
        raise BadInput(f"features {named} are not in the data: its columns are {_listed(names)}")
    return {_column(names, name, "feature") for name in features}


def _listed(names: tuple[str, ...]) -> str:
    """Write names for a message; of many the first ones and the last, which is the target in most files."""
    if len(names) <= SHOWN_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN_NAMES - 1])}, ..., {names[-1]} ({len(names)} in all)"
