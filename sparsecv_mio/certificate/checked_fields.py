"""The result of a verification: the verified parts, the fields that disagree, and how each field was checked.

Each check belongs to a part of the record, such as the table, and names the fields that it concerns. The report calls a
field *recomputed* if a check computes its value again. The report calls a field *bounded* if a check only compares the
field with recomputed numbers or with other fields, and *read* if no check uses the field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from typing import Any, TypeGuard, TypeVar

from sparsecv_mio.errors import VerificationFailed

T = TypeVar("T")
Tolerance = Callable[[Any, str], float]  # of a recomputed part and the name of a field

ENUMERATE_PAIR = 15  # varying features, up to which the reported pair is enumerated
ENUMERATE_GRID = 12  # varying features, up to which the whole grid is enumerated
MOST_ENUMERATED = 3000  # maximum number of subproblems enumerated to check the instability
COST_LIMIT = 5e10  # elementary operations of an enumeration
MOST_FITS = 20_000  # fits in one part of a verification, about 0.5 ms each
SAME = 1e-12  # relative difference of numbers that come from the same number
RECOMPUTED, BOUNDED, READ = "recomputed", "bounded: ", "read"
BOUNDED_NUMBERS = {  # numbers that the verdict names if they are not recomputed, by the pattern of their fields
    r"upper": "upper bounds", r"table\[\]\.standard_error": "standard errors", r"mae": "MAE",
    r"stability\.instability_lower": "bounds on the instability",
    r"(.*\.)?(tie_width|allowance)$": "effects of ties and rounding",
}  # fmt: skip
VERBS = frozenset(  # first words of messages whose subject is the field
    ("is", "are", "has", "have", "must", "does", "do", "refers", "exceeds", "differs", "contains", "omits")
)


def are_nearly_equal(a: float, b: float, scale: float = 0.0) -> bool:
    """Return True if two numbers are equal up to their last digits.

    Parameters
    ----------
    scale : float, optional
        Additional scale: the difference is compared with the largest of both numbers and this one.
    """
    return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= SAME * max(abs(a), abs(b), scale))


class EnumerationLevel(IntEnum):
    """Extent of the enumeration: every pair, the reported pair and the smallest bound, or neighbours only."""

    GRID = 0
    PAIR = 1
    NEIGHBOURS = 2


@dataclass(frozen=True)
class Failure:
    """A field of the record that disagrees with the data or with the rest of the record."""

    field: str
    message: str

    def __str__(self) -> str:
        """Return the field and the message; a message that begins with a verb has the field as its subject."""
        return f"{self.field}{' ' if self.message.split(' ', 1)[0] in VERBS else ': '}{self.message}"


@dataclass(frozen=True)
class VerifyReport:
    """The result of a verification: recomputed fields, fields that were only read, and disagreements.

    Attributes
    ----------
    verified : tuple of str
        Parts in which everything agrees.
    reread : tuple of str
        Fields that were only read, and checks omitted because of their cost.
    failures : tuple of Failure
        Disagreements.
    caveat : str
        Claims of the record that this verification could not prove, and fields that it could only read; empty if
        everything is proved.
    fields : tuple of (treatment, tuple of fields)
        Treatment of every field: `recomputed`, `bounded: ` with the parts that bound it, or `read`.
    read_numbers : tuple of str
        Descriptions of numbers of the table that can be neither recomputed nor bounded.
    is_optimality_open : bool
        True if this verification could not prove that the models are optimal.
    """

    verified: tuple[str, ...]
    reread: tuple[str, ...]
    failures: tuple[Failure, ...]
    caveat: str = ""
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    read_numbers: tuple[str, ...] = ()
    is_optimality_open: bool = False

    @property
    def ok(self) -> bool:
        """True if there is no disagreement."""
        return not self.failures

    @property
    def verdict(self) -> str:
        """One line on the outcome: whether the record agrees with the data, and the claims that were not verified."""
        holds = "the record agrees with the data" if self.ok else "the record does not agree with the data"
        read = f"; only read: {', '.join(self.read_numbers)}" if self.read_numbers else ""
        if self.caveat or not self.ok:
            return f"{holds}{f'; {self.caveat}' if self.caveat else ''}{read}"
        less = f"; only compared with bounds: {', '.join(self._bounded_only)}" if self._bounded_only else ""
        return f"{holds}: its answer was recomputed and its bounds were verified{less}{read}"

    @property
    def _bounded_only(self) -> list[str]:
        """Descriptions of the numbers of the answer that were compared with bounds, and not recomputed."""
        paths = [path for treatment, named in self.fields if treatment.startswith(BOUNDED) for path in named]
        return [words for pattern, words in BOUNDED_NUMBERS.items() if any(re.match(pattern, path) for path in paths)]

    def __str__(self) -> str:
        """Return the verdict and the disagreements, as `sparsecv verify --quiet` prints them."""
        return "\n".join([self.verdict, *(f"disagrees: {failure}" for failure in self.failures)])

    def __repr__(self) -> str:
        shown = "\n".join(str(self).splitlines()[:2])
        return f"VerifyReport({shown}{f', ... {len(self.failures)} disagreements' if len(self.failures) > 1 else ''})"

    def __bool__(self) -> bool:
        """Return `ok`."""
        return self.ok

    def raise_if_failed(self) -> None:
        """Raise `VerificationFailed` for the first failure; its message names the field."""
        if self.failures:
            first = self.failures[0]
            more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
            raise VerificationFailed(f"verification failed: field {first}{more}", first.field)


@dataclass
class Checks:
    """Collector of the outcomes of checks and of the fields that they concern."""

    progress: Callable[[int, int], None] | None = None
    data_advice: str = ""  # advice if the data are not those of the record
    caveat: str = ""
    verified: list[str] = field(default_factory=list)
    reread: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    read_numbers: list[str] = field(default_factory=list)
    _seen: int = 0  # failures before the current part
    _named: dict[str, None] = field(default_factory=dict)  # fields of the current part, in order
    _bounds: dict[str, list[str]] = field(default_factory=dict)
    _left: dict[str, str] = field(default_factory=dict)
    _recomputed: set[str] = field(default_factory=set)
    _unproved: set[str] = field(default_factory=set)

    def require(self, holds: bool, name: str, message: str) -> bool:
        """Record a failure unless a condition holds; return the condition.

        Parameters
        ----------
        name : str
            Path of the field, which this check bounds.
        message : str
            Description of the failure.
        """
        self._named[_pattern(name)] = None
        if not holds:
            self.failures.append(Failure(name, message))
        return holds

    def has_value(self, value: T | None, name: str, message: str) -> TypeGuard[T]:
        """Record a failure if a value is None; return True if it is not.

        Parameters
        ----------
        name : str
            Path of the field, which this check bounds.
        message : str
            Description of the failure.
        """
        return self.require(value is not None, name, message)

    def require_between(self, name: str, said: float, low: float, high: float, rtol: float = 0.0) -> bool:
        """Record a failure if a number of the record is outside its interval, up to a relative tolerance."""
        inside = low * (1.0 - rtol) <= said <= high * (1.0 + rtol)
        return self.require(inside, name, f"{said!r} is outside of [{low!r}, {high!r}]")

    def require_at_most(self, name: str, said: float, most: float, what: str, slack: float = 0.0) -> bool:
        """Record a failure if a number of the record exceeds a computed bound.

        Parameters
        ----------
        name : str
            Path of the field, which this check bounds.
        what : str
            Description of the bound, with its number.
        slack : float
            Allowed excess.
        """
        return self.require(said <= most + slack, name, f"{said!r} exceeds {what}")

    def require_at_least(self, name: str, said: float, least: float, what: str, slack: float = 0.0) -> bool:
        """Record a failure if a number of the record is below a computed bound; see `require_at_most`."""
        return self.require(least <= said + slack, name, f"{said!r} is below {what}")

    def check_optional(self, name: str, said: float | None, found: float | None, room: float) -> None:
        """Check that a number is given if it can be computed, and that it is close to the computed one.

        Parameters
        ----------
        name : str
            Path of the field.
        room : float
            Largest difference.
        """
        words = "is given, but must be null" if found is None else "is null, but must be given"
        if self.require((said is None) == (found is None), name, words) and said is not None and found is not None:
            self.close(name, said, found, room)

    def require_same(self, name: str, said: float, found: float, what: str, scale: float = 0.0) -> bool:
        """Record a failure unless a number of the record equals another one up to its last digits.

        Parameters
        ----------
        name : str
            Path of the field, which this check bounds.
        what : str
            Source of the other number.
        scale : float
            Additional scale of the difference.
        """
        return self.require(are_nearly_equal(said, found, scale), name, f"is {said!r}, but {what} {found!r}")

    def require_equal(self, name: str, said: object, found: object) -> bool:
        """Record a failure unless the record equals the recomputed value.

        Parameters
        ----------
        name : str
            Path of the field, which is recomputed.
        """
        self.mark_recomputed_fields(name)
        shown = [_shorten(text) for text in _describe_difference(said, found)]
        return self.require(said == found, name, f"the record has {shown[0]}, but the data give {shown[1]}")

    def close(self, name: str, said: float, found: float, tolerance: float) -> bool:
        """Record a failure unless the record is close to the recomputed value.

        Parameters
        ----------
        name : str
            Path of the field, which is recomputed.
        tolerance : float
            Maximum difference.
        """
        self.mark_recomputed_fields(name)
        holds = said == found or abs(said - found) <= tolerance
        return self.require(holds, name, f"the record has {said!r}, but the recomputed value is {found!r}")

    def compare_fields(
        self, path: str, said: Any, found: Any, names: Iterable[str], tolerance: Tolerance = lambda part, name: 0.0
    ) -> None:
        """Record a failure for each field of a part of the record that differs from the recomputed part.

        Parameters
        ----------
        path : str
            Path of the part.
        names : iterable of str
            Names of the fields.
        tolerance : callable
            Function that returns the maximum difference of a number.
        """
        for name in names:
            value, own = getattr(said, name), getattr(found, name)
            if isinstance(value, float) and isinstance(own, float):
                self.close(f"{path}.{name}", value, own, tolerance(found, name))
            else:
                self.require_equal(f"{path}.{name}", value, own)

    def compare_parts(self, path: str, said: Sequence[Any], found: Sequence[Any], tolerance: Tolerance) -> None:
        """Record a failure for each field of a list of parts that differs from the recomputed parts."""
        if self.require(len(said) == len(found), path, f"has {len(said)} entries, but the data give {len(found)}"):
            for i, (part, other) in enumerate(zip(said, found, strict=True)):
                self.compare_fields(f"{path}[{i}]", part, other, vars(part), tolerance)

    def mark_recomputed_fields(self, *names: str) -> None:
        """Mark fields, with everything in them, as recomputed."""
        self._recomputed.update(map(_pattern, names))

    def mark_bounded_fields(self, *names: str) -> None:
        """Mark fields as bounded by the current part; a trailing dot includes everything in a field."""
        self._named.update(dict.fromkeys(map(_pattern, names)))

    def leaves(self, what: str, *names: str) -> None:
        """Record which aspect of bounded fields is only read."""
        self._left.update((_pattern(name), what) for name in names)

    def only_read(self, name: str, why: str) -> None:
        """Record that a field is only read in this record, although it can be recomputed in others.

        Parameters
        ----------
        name : str
            Path of the field.
        """
        self._unproved.add(name)
        self.reread.append(f"{name} ({why})")

    def tell(self, done: int, total: int) -> None:
        """Report the progress of a long part."""
        if self.progress is not None:
            self.progress(done, total)

    def end_part(self, words: str) -> bool:
        """End a part; return True if no check failed in it, so that it is verified."""
        holds, self._seen = len(self.failures) == self._seen, len(self.failures)
        if holds:
            self.verified.append(words)
        for name in self._named:
            self._bounds.setdefault(name, []).append(words)
        self._named = {}
        return holds

    def report(self, record: Any = None) -> VerifyReport:
        """Return the results so far.

        Parameters
        ----------
        record : dataclass, optional
            Record whose fields were checked, at the end of a verification.
        """
        paths = [] if record is None else [*field_paths(record)]
        paths += ["warnings"] if hasattr(record, "warnings") else []  # an empty list may have lost a warning
        treated = self._group_by_treatment(list(dict.fromkeys(paths)))
        only_read = [", ".join(names) for words, names in treated if words == READ]
        unproved = f"read but not checked: {', '.join(sorted(self._unproved))}" if self._unproved else ""
        return VerifyReport(
            tuple(self.verified), (*self.reread, *only_read), tuple(self.failures),
            "; ".join(filter(None, (self.caveat, unproved))),
            tuple((words, tuple(names)) for words, names in treated), tuple(self.read_numbers),
            bool(self.caveat),
        )  # fmt: skip

    def _group_by_treatment(self, paths: list[str]) -> list[tuple[str, list[str]]]:
        """Return fields grouped by treatment; a part with equally treated fields is listed as a whole."""
        groups: dict[str, list[str]] = {}
        for section in dict.fromkeys(map(section_name, paths)):
            inside = {path: self._treatment(path) for path in paths if section_name(path) == section}
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


def _describe_difference(said: object, found: object) -> tuple[str, str]:
    """Return two values as text; of two objects of one dataclass or two mappings, only the differing entries."""
    if type(said) is type(found) and is_dataclass(said):
        said, found = ({each.name: getattr(value, each.name) for each in fields(said)} for value in (said, found))
    if isinstance(said, Mapping) and isinstance(found, Mapping):
        pairs = {name: (said.get(name), found.get(name)) for name in {**said, **found}}
        texts = {name: _describe_difference(*pair) for name, pair in pairs.items() if pair[0] != pair[1]}
        one, two = ("; ".join(f"{name} {text[side]}" for name, text in texts.items()) for side in (0, 1))
        return one, two
    if isinstance(said, tuple) and isinstance(found, tuple):
        return ", ".join(map(str, said)) or "nothing", ", ".join(map(str, found)) or "nothing"
    return _describe_value(said), _describe_value(found)


def _describe_value(value: object) -> str:
    return "nothing" if value is None else repr(value)


def _shorten(text: str) -> str:
    """Return a text of at most 60 characters; a longer one without its middle."""
    return text if len(text) <= 60 else f"{text[:36]}...{text[-20:]}"


def _pattern(name: str) -> str:
    """Return the path of a field without item numbers and feature names."""
    head, in_coefficients, _ = re.sub(r"\[\d+\]", "[]", name).partition("coefficients.")
    return head + in_coefficients.rstrip(".")


def section_name(path: str) -> str:
    """Return the field of the record with which a path begins.

    Examples
    --------
    >>> section_name("table[].gamma"), section_name("gap")
    ('table', 'gap')
    """
    return path.partition(".")[0].removesuffix("[]")


def field_paths(part: Any, prefix: str = "") -> Iterator[str]:
    """Yield the paths of the fields in a part of a record, `[]` for list items, possibly repeatedly."""
    if hasattr(part, "json_items"):  # folds, which are stored by column
        yield from (f"{prefix}[].{name}" for name in ("fold", "support", "error", "decided"))
    elif is_dataclass(part):
        for declared_field in fields(part):
            yield from field_paths(getattr(part, declared_field.name), f"{prefix}.{declared_field.name}".lstrip("."))
    elif isinstance(part, tuple) and part and is_dataclass(part[0]):
        for item in part:
            yield from field_paths(item, f"{prefix}[]")
    elif part is not None and not (isinstance(part, tuple) and not part):
        yield prefix
