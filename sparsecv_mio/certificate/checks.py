"""What a verification found: the parts recomputed, the parts only read, the fields that disagree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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
        How every field was treated, see :mod:`sparsecv_mio.certificate.treatment`.
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
