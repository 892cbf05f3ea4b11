"""Options of full-data fits and of lists of near-optimal models, checked once for the command line and Python."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any, Self

from sparsecv_mio.certificate.parts import GridRequest, Side
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.declared_options import check_whole, settle_options
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.formulation.backends import backend_name, get_backend
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.model_space import COEF_BOUNDS, NONE, RESTRICTIONS, Restrictions, finite_number, parse_coef_bounds
from sparsecv_mio.problem.constraints import SideConstraints, constraints_of
from sparsecv_mio.search.options import (
    NO_OTHER,
    GridOptions,
    ModelOptions,
    check_formulation,
    check_limits,
    parse_solver_options,
)
from sparsecv_mio.targets import REASONS, find_losses_of_option
from sparsecv_mio.words import NATIVE, By, Intercept


@dataclass(frozen=True)
class SideOptions(Restrictions):
    """Restrictions of one fit, and groups of features that enter together.

    The other fields are those of :class:`~sparsecv_mio.model_space.Restrictions`.

    Attributes
    ----------
    together : sequence of sequences of str
        Sets of features that are chosen all or none, each feature counted.
    box : mapping of str to (float, float), optional
        Deprecated form of `coef_bounds`; will be removed in 0.4.

    Examples
    --------
    >>> SideOptions(nonnegative="a", together=[["b", "c"]]).recorded().words()
    'a not below 0; b, c all or none'
    """

    together: Sequence[Sequence[str]] = ()
    box: InitVar[Mapping[str, tuple[float, float]] | None] = None

    def __post_init__(self, box: Mapping[str, tuple[float, float]] | None = None) -> None:
        if box:
            text = "box is deprecated and will be removed in 0.4; use coef_bounds"
            warnings.warn(text, SparseCVWarning, stacklevel=3)
            object.__setattr__(self, COEF_BOUNDS, (*parse_coef_bounds(self.coef_bounds), *parse_coef_bounds(box)))
        super().__post_init__()

    def resolve_names(self, names: Sequence[str], constant: bool = True) -> Self:
        """Return the same options by the names of the data, after checking groups."""
        made = super().resolve_names(names, constant)
        for name in (name for group in self.together for name in group):
            if name in made.adjust:
                raise BadInput(
                    f"adjust, together: column {name!r} is in both options, but adjustment columns are in every model; "
                    "remove it from one of the two options"
                )
        return made

    def on(self, data: StandardData) -> SideConstraints:
        """Return the constraints in standard coordinates.

        Parameters
        ----------
        data : StandardData
            Data set to which `within` adapted these options.
        """
        self.check_vary(set(data.dataset.names).difference(data.names, self.force_out))
        return constraints_of(data, self, [group for group in self.together if group])

    def recorded(self) -> Side:
        """Return the constraints in the form of a record."""
        restrictions = Restrictions(**{name: getattr(self, name) for name in RESTRICTIONS})
        return Side(restrictions or None, tuple(tuple(group) for group in self.together if group) or None)


@dataclass(frozen=True)
class FitOptions(ModelOptions):
    """Options for solving one mixed-integer optimisation problem (MIO) on all rows; checked when made, and immutable.

    Attributes
    ----------
    backend : str
        Name of the solver, see `sparsecv backends`.
    formulation : str, optional
        Name of one of the backend's models; its first by default.
    solver_option : mapping or sequence of str
        Options of the backend's solver by its own names.
    limits : Limits, optional
        Gap, seconds, nodes, threads, log; a gap of 1e-7 and one thread by default.
    side : SideOptions, optional
        Side constraints.
    start : sequence of str, optional
        Names of the features of an initial support.
    assume_box : float, optional
        Bound M: coefficients are assumed to lie in [-M, M], in the units of the file. The lower bound, and the proof,
        then hold for such models only, and the record states this. For the native backend, without side constraints.

    Raises
    ------
    BadInput
        If a value is out of range, a keyword is unknown, or options are not compatible.

    Examples
    --------
    >>> FitOptions.of(backend="HIGHS").backend
    'highs'
    """

    backend: str = NATIVE
    formulation: str | None = None
    solver_option: tuple[str, ...] = ()
    limits: Limits | None = None
    side: SideOptions | None = None
    start: Sequence[str] | None = None
    assume_box: float | None = None

    @classmethod
    def of(cls, **words: Any) -> FitOptions:
        """Return options from keywords given as text."""
        options: dict[str, Any] = dict(words)
        return cls(**options)

    def __post_init__(self) -> None:
        backend = backend_name(self.backend)
        settle_options(self)
        object.__setattr__(self, "backend", backend)
        object.__setattr__(self, "formulation", check_formulation(backend, self.formulation, self.loss))
        object.__setattr__(self, "solver_option", parse_solver_options(self.solver_option))
        if self.solver_option:
            get_backend(backend).check_options(self.solver_option)
        if self.limits is not None:
            check_limits(self.limits)
        check_loss(self, NONE)
        if self.offset is not None and self.backend != NATIVE:
            raise BadInput(f"offset: requires backend native, not {self.backend} (models of solvers have no offset)")
        if self.assume_box is not None:
            if not self.loss.is_quadratic:
                raise BadInput(f"loss {self.loss}: not supported with assume-box; leave assume-box out")
            self._check_box(self.assume_box)

    def _check_box(self, end: float) -> None:
        if not (math.isfinite(end) and end > 0.0):
            raise BadInput(f"assume_box {end:g} is out of range; give a positive, finite number")
        if self.backend != NATIVE:
            raise BadInput(f"assume_box: requires backend native, not {self.backend}; use coef_bounds instead")
        if self.side not in (None, SideOptions()):
            raise BadInput("assume_box: not supported with side constraints; leave out one of the two")


def check_loss(how: ModelOptions, restrictions: Restrictions) -> None:
    """Raise `BadInput` for options and restrictions that are not compatible with the loss.

    Parameters
    ----------
    how : FitOptions or PathOptions
        Options.
    restrictions : Restrictions
        Restrictions.
    """
    loss = how.loss
    for name, why in REASONS.items():
        if getattr(how, name) is not None and name not in loss.target.options:
            raise BadInput(f"{name}: requires loss {' or '.join(find_losses_of_option(name))}, not {loss} ({why})")
    if loss.is_quadratic:
        return
    for kind in {"at_most", "hierarchy"}.intersection(restrictions.side_constraints):
        raise BadInput(f"{kind}: requires loss squared, not {loss} ({NO_OTHER})")
    if how.intercept is Intercept.GLOBAL:
        why = "because it centres the target, which requires squared-error loss"
        raise BadInput(f"loss {loss}: intercept global is not supported, {why}; give fold or none")


@dataclass(frozen=True)
class PathOptions(GridOptions):
    """Options for the best subsets of every size; checked when made, and immutable.

    Attributes
    ----------
    gap : float
        Relative gap at which a fit counts as proved.
    threads : int, optional
        Number of threads, stored in the record; the trees of a path use one thread.

    Raises
    ------
    BadInput
        If a value is out of range or a keyword is unknown.

    Examples
    --------
    >>> PathOptions.of(scale="variance").gap
    1e-07
    """

    gap: float = 1e-7

    @classmethod
    def of_record(cls, record: Record, seconds: float) -> Self:
        """Return options with the units and restrictions of a record, and a time limit."""
        request, about = record.request, record.data
        return cls.of(
            scale=about.scale, intercept=about.intercept, time_limit=seconds, threads=request.threads,
            restrictions=request.restrictions or NONE, loss=record.loss, positive=request.positive,
        )  # fmt: skip

    def __post_init__(self) -> None:
        settle_options(self)
        check_loss(self, self.restrictions)

    def request(self, gammas: Iterable[float], taus: Iterable[int]) -> GridRequest:
        """Return the request in the form of a record.

        Parameters
        ----------
        gammas, taus : iterables
            Grid.
        """
        within = self.restrictions or None
        return GridRequest(tuple(gammas), tuple(taus), self.gap, False, self.time_limit, self.threads, within)


NEAR_SHARE, MOST_NEAR = 0.01, 1000


@dataclass(frozen=True)
class CommonOptions(PathOptions):
    """Options for the best common subset; checked when made, and immutable.

    The fields are those of `PathOptions`. The supported restrictions are features forced in or out, adjustment columns,
    and factors that enter with all levels.

    Raises
    ------
    BadInput
        If a value is out of range, a keyword is unknown, or a restriction is not supported.
    """

    gap: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lists(self, "criterion common")


@dataclass(frozen=True)
class NearOptions(PathOptions):
    """Options for lists of near-optimal models; checked when made, and immutable.

    The other fields are those of `PathOptions`; the gap is that of the cross-validation that chooses gamma and tau. The
    supported restrictions are features forced in or out, adjustment columns, and factors that enter with all levels.

    Attributes
    ----------
    within : float
        Maximum relative excess of a value over the best of its size: 0.01 is one per cent.
    most : int, optional
        Maximum number of models of a size to list, the best ones; None for all.
    by : {"cv", "objective"}, optional
        Kind of value: the CV error of the support, the same in every fold, or the training objective on all rows. The
        default is the CV error, but with `loss="logistic"` the training objective.

    Raises
    ------
    BadInput
        If a value is out of range, a keyword is unknown, or a restriction is not supported.

    Examples
    --------
    >>> NearOptions.of(by="objective", within=0.05).most
    1000
    """

    gap: float = 1e-4
    within: float = NEAR_SHARE
    most: int | None = MOST_NEAR
    by: By | None = None

    def __post_init__(self) -> None:
        word = str(self.within).strip()
        within = finite_number(word.removesuffix("%"), "within") / (100.0 if word.endswith("%") else 1.0)
        if within < 0.0:
            raise BadInput(f"within: {within:g} is out of range; give a share of at least 0, for example 0.01 for 1%")
        object.__setattr__(self, "within", within)
        check_whole("most", self.most, 1)
        super().__post_init__()
        check_lists(self, "near-optimal lists")

    @property
    def valued_by(self) -> By:
        """Kind of value, given or by default."""
        return self.by or (By.CV if self.loss.is_quadratic else By.OBJECTIVE)


def check_lists(how: PathOptions, who: str) -> None:
    """Raise `BadInput` for restrictions that lists of models do not support.

    Parameters
    ----------
    how : PathOptions
        Options.
    who : str
        Name of the feature, for the error message.
    """
    if how.restrictions.count and not how.loss.is_quadratic:
        raise BadInput(
            f"count: {who} support this option with loss squared only, not with {how.loss}; leave this option out, "
            "and each level of a factor counts as one feature"
        )
    for kind in replace(how.restrictions, count=()).side_constraints[:1]:
        supported = "force_in, force_out, adjust and count"
        raise BadInput(f"{kind}: not supported with {who}; leave it out (only {supported} are supported)")
