"""What a descent has done and what is left to try; a checkpoint holds it as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparsecv_mio.certificate.codec import plain, read
from sparsecv_mio.certificate.record import DescentStep


@dataclass
class Journal:
    """The moves of a descent.

    Attributes
    ----------
    steps : list of DescentStep
    proposed : list of float
        Gammas left to try from where the descent stands.
    seen : list of float
        Gammas whose row was solved.
    lined : bool
        The line of the grid through here was searched.
    over : bool
        No move is left.
    certain : bool
        Every move that was turned down is certified to be no better.
    nodes, mios : int
        Of the runs that ended.
    """

    steps: list[DescentStep] = field(default_factory=list)
    proposed: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    lined: bool = False
    over: bool = False
    certain: bool = True
    nodes: int = 0
    mios: int = 0

    def plain(self) -> dict[str, Any]:
        """Return it as JSON material."""
        return {
            "steps": [plain(step, DescentStep, "steps") for step in self.steps],
            "proposed": self.proposed, "seen": self.seen, "lined": self.lined, "over": self.over,
            "certain": self.certain, "spent": [self.nodes, self.mios], "trial": None,
        }  # fmt: skip

    @classmethod
    def of(cls, found: dict[str, Any]) -> Journal:
        """Return the inverse of `plain`; raises what a wrong type raises."""
        nodes, mios = found["spent"]
        return cls(
            steps=[read(step, DescentStep, "steps") for step in found["steps"]],
            proposed=[float(gamma) for gamma in found["proposed"]],
            seen=[float(gamma) for gamma in found["seen"]],
            lined=bool(found["lined"]), over=bool(found["over"]), certain=bool(found["certain"]),
            nodes=int(nodes), mios=int(mios),
        )  # fmt: skip
