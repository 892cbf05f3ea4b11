"""The result of a verification: verified parts, fields that disagree, and the treatment of every field.

Each check names its fields and belongs to a part. A field is *recomputed*, *bounded* by the parts that name it, or only
*read*; the treatment follows from the checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from typing import Any

from sparsecv_mio.errors import VerificationFailed

ENUMERATE_PAIR = 15  # features that vary up to which the reported pair is enumerated
ENUMERATE_GRID = 12  # and the whole grid
MOST_ENUMERATED = 3000  # folds of pairs whose optima are enumerated for their instability
COST_LIMIT = 5e10  # elementary operations of an enumeration
MOST_FITS = 20_000  # of one part of a verification, each of some 0.5 ms
SAME = 1e-12  # relative: numbers of the record that were once one number
RECOMPUTED, BOUNDED, READ = "recomputed", "bounded: ", "read"


class EnumerationLevel(IntEnum):
    """How far supports are tried: every pair, the reported pair and the least bound, or neighbours only."""

    GRID = 0
    PAIR = 1
    NEIGHBOURS = 2


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
        What the record claims and this verification could not prove, and the fields that it could only read; empty if
        everything is proved.
    fields : tuple of (treatment, tuple of fields)
        How every field was treated: `recomputed`, `bounded: ` and the parts that bound it, or `read`.
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
    """Collects the outcome of one check after another, and which field each is of."""

    progress: Callable[[int, int], None] | None = None
    caveat: str = ""
    verified: list[str] = field(default_factory=list)
    reread: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _seen: int = 0  # failures before the present part
    _named: dict[str, None] = field(default_factory=dict)  # fields of the present part, in their order
    _bounds: dict[str, list[str]] = field(default_factory=dict)
    _left: dict[str, str] = field(default_factory=dict)
    _recomputed: set[str] = field(default_factory=set)
    _unproved: set[str] = field(default_factory=set)

    def that(self, holds: bool, name: str, message: str) -> bool:
        """Note a failure unless something holds; return whether it does.

        Parameters
        ----------
        name : str
            Path of the field, which is bounded by this.
        message : str
            What is wrong with it.
        """
        self._named[_pattern(name)] = None
        if not holds:
            self.failures.append(Failure(name, message))
        return holds

    def at_most(self, name: str, said: float, most: float, what: str, slack: float = 0.0) -> bool:
        """Note a failure where a number of the record exceeds what was computed.

        Parameters
        ----------
        name : str
            Path of the field, which is bounded by this.
        what : str
            What it exceeds then, with its number.
        slack : float
            By how much it may.
        """
        return self.that(said <= most + slack, name, f"{said!r} exceeds {what}")

    def at_least(self, name: str, said: float, least: float, what: str, slack: float = 0.0) -> bool:
        """Note a failure where a number of the record is below what was computed, as `at_most`."""
        return self.that(least <= said + slack, name, f"{said!r} is below {what}")

    def equal(self, name: str, said: object, found: object) -> bool:
        """Note a failure unless the record says what the data give.

        Parameters
        ----------
        name : str
            Path of the field, which is recomputed.
        """
        self.recomputed(name)
        return self.that(said == found, name, f"the record says {said!r:.60}, the data give {found!r:.60}")

    def close(self, name: str, said: float, found: float, tolerance: float) -> bool:
        """Note a failure unless the record says nearly what was recomputed.

        Parameters
        ----------
        name : str
            Path of the field, which is recomputed.
        tolerance : float
            Largest difference, in their unit.
        """
        self.recomputed(name)
        holds = said == found or abs(said - found) <= tolerance
        return self.that(holds, name, f"the record says {said!r}, recomputed {found!r}")

    def recomputed(self, *names: str) -> None:
        """Say that fields, and all that is in them, are recomputed."""
        self._recomputed.update(map(_pattern, names))

    def bounded(self, *names: str) -> None:
        """Say that this part bounds fields that no check of it names; with a dot at the end all that is in one."""
        self._named.update(dict.fromkeys(map(_pattern, names)))

    def leaves(self, what: str, *names: str) -> None:
        """Say what of fields is only read, beside what bounds them."""
        self._left.update((_pattern(name), what) for name in names)

    def only_read(self, name: str, why: str) -> None:
        """Note that a field which could be recomputed of another record is only read of this one.

        Parameters
        ----------
        name : str
            Path of the field.
        """
        self._unproved.add(name)
        self.reread.append(f"{name} ({why})")

    def tell(self, done: int, total: int) -> None:
        """Say how much of a part that takes long is done."""
        if self.progress is not None:
            self.progress(done, total)

    def part(self, words: str) -> bool:
        """End a part; return whether no check since the part before has failed, which makes it a verified one."""
        holds, self._seen = len(self.failures) == self._seen, len(self.failures)
        if holds:
            self.verified.append(words)
        for name in self._named:
            self._bounds.setdefault(name, []).append(words)
        self._named = {}
        return holds

    def report(self, record: Any = None) -> VerifyReport:
        """Return what was found so far.

        Parameters
        ----------
        record : dataclass, optional
            The record whose fields were checked, at the end of a verification.
        """
        treated = [] if record is None else self._treated(list(dict.fromkeys(field_paths(record))))
        only_read = [", ".join(names) for words, names in treated if words == READ]
        unproved = f"read, not recomputed: {', '.join(sorted(self._unproved))}" if self._unproved else ""
        return VerifyReport(
            tuple(self.verified), (*self.reread, *only_read), tuple(self.failures),
            "; ".join(filter(None, (self.caveat, unproved))),
            tuple((words, tuple(names)) for words, names in treated),
        )  # fmt: skip

    def _treated(self, paths: list[str]) -> list[tuple[str, list[str]]]:
        """Group fields by how they were treated; a part whose fields are all treated alike stands for them."""
        groups: dict[str, list[str]] = {}
        for section in dict.fromkeys(map(section_of, paths)):
            inside = {path: self._treatment(path) for path in paths if section_of(path) == section}
            inside = {path: words for path, words in inside.items() if path not in self._unproved}
            alike = len(set(inside.values())) == 1
            for path, words in [(section, next(iter(inside.values())))] if alike else inside.items():
                groups.setdefault(words, []).append(path)
        order = {RECOMPUTED: 0, READ: 2}
        return sorted(groups.items(), key=lambda item: order.get(item[0], 1))

    def _treatment(self, path: str) -> str:
        ends = list(re.finditer(r"\.|\[\]|$", path))
        if not self._recomputed.isdisjoint(path[: end.start()] for end in ends):
            return RECOMPUTED
        names = [path[: end.end()] for end in ends if end.group() != "[]"]
        bounds = [words for name in names for words in self._bounds.get(name, ())]
        bounds += [self._left[name] for name in names if name in self._left]
        return BOUNDED + "; ".join(dict.fromkeys(bounds)) if bounds else READ


def _pattern(name: str) -> str:
    """Return the path of a field without the numbers of items and the names of features."""
    head, in_coefficients, _ = re.sub(r"\[\d+\]", "[]", name).partition("coefficients.")
    return head + in_coefficients.rstrip(".")


def section_of(path: str) -> str:
    """Return the field of the record that a path begins with.

    Examples
    --------
    >>> section_of("table[].gamma"), section_of("gap")
    ('table', 'gap')
    """
    return path.partition(".")[0].removesuffix("[]")


def field_paths(part: Any, prefix: str = "") -> Iterator[str]:
    """Yield the paths of the fields that a part of a record holds, `[]` for the items of a list, some repeatedly."""
    if hasattr(part, "json_items"):  # folds, by column
        yield from (f"{prefix}[].{name}" for name in ("fold", "support", "error", "decided"))
    elif is_dataclass(part):
        for declared_field in fields(part):
            yield from field_paths(getattr(part, declared_field.name), f"{prefix}.{declared_field.name}".lstrip("."))
    elif isinstance(part, tuple) and part and is_dataclass(part[0]):
        for item in part:
            yield from field_paths(item, f"{prefix}[]")
    elif part is not None and not (isinstance(part, tuple) and not part):
        yield prefix
