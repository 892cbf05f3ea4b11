"""What a descent has done and what is left to try; a checkpoint holds it as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    here : list of float, optional
        In a checkpoint: the gammas of the row where the descent stands.
    trial : str, list of float, list of int, bool, optional
        In a checkpoint: the move that is being tried, gammas and taus of its run, and whether that has begun.
    """

    steps: list[DescentStep] = field(default_factory=list)
    proposed: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    lined: bool = False
    over: bool = False
    certain: bool = True
    nodes: int = 0
    mios: int = 0
    here: list[float] | None = None
    trial: tuple[str, list[float], list[int], bool] | None = None
