"""The losses, their requirements on the target, and the terms in which the results for each loss are reported.

`problem/row_losses` defines the losses mathematically. This module imports no numerical library, so the command line
can be parsed without numpy.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class Loss(StrEnum):
    """The loss that a fit minimises: squared error, log loss, half deviance, or negative log partial likelihood."""

    SQUARED = "squared"
    LOGISTIC = "logistic"
    POISSON = "poisson"
    COX = "cox"

    @property
    def target(self) -> Target:
        """The target that the loss is for, and the terms for its models."""
        return TARGETS[self]

    @property
    def is_quadratic(self) -> bool:
        """True if the loss is quadratic: its fits need the moments of the training rows only, not the rows."""
        return self.target.is_quadratic


DEFAULT_LOSS = Loss.SQUARED
LARGER_GAMMAS = "give larger gammas"  # advice for separated classes, which excludes the hint to try smaller gammas


class Ties(StrEnum):
    """The method for tied events of Cox regression."""

    EFRON = "efron"
    BRESLOW = "breslow"


class Values(StrEnum):
    """The values of a target; they decide how the data are prepared and what a record stores of them."""

    NUMBERS = "numbers"
    CLASSES = "two classes"
    COUNTS = "counts"
    TIMES = "survival times"


FIELDS_OF_VALUES = {Values.CLASSES: "classes", Values.COUNTS: "counts"}  # field of a record on its target


class Target(NamedTuple):
    """The target of a loss, and the terms for its models and errors.

    Attributes
    ----------
    values : Values
        Values of the target.
    model : str
        Name of the regression.
    row_loss : str
        Loss of one row.
    losses : str
        Losses of several rows.
    cv_error : str
        Meaning of the CV error.
    total : str
        Sum that a fit minimises, without the penalty.
    null_model : str
        Model without features, whose error is the baseline of the explained share.
    explained : str
        Name of the share that a model explains of the losses of held-out rows.
    link : {"identity", "logit", "log"}
        Link function: the linear predictor is the link of the prediction. The prediction of a time is the logarithm of
        a hazard ratio, with the link `identity`.
    unit : str
        Unit of the coefficients; empty if it is that of the target.
    ratio : str
        Exponential of a coefficient; empty if it has no meaning.
    options : tuple of str
        Options that are not for every loss (`REASONS`).
    proof_restrictions : tuple of str, optional
        Restrictions that a proof covers; None if the loss has no proofs.
    is_quadratic : bool
        True for squared error, whose fits need the moments of the training rows only.
    gammas_over_rows : (float, float, int), optional
        Smallest and largest default gamma times the number of training rows, and the number of gammas; None if they do
        not depend on the rows.
    separated : str
        Rows that a hyperplane separates when fits without a ridge penalty have no minimum.
    has_intercept : bool
        False if a model has no intercept, because only differences of linear predictors count.
    is_sum_over_rows : bool
        False if the loss of some rows is no sum of losses of single rows.
    """

    values: Values
    model: str
    row_loss: str
    losses: str
    cv_error: str
    total: str
    null_model: str
    explained: str
    link: str = "identity"
    unit: str = ""
    ratio: str = ""
    options: tuple[str, ...] = ()
    proof_restrictions: tuple[str, ...] | None = None
    is_quadratic: bool = False
    gammas_over_rows: tuple[float, float, int] | None = None
    separated: str = ""
    has_intercept: bool = True
    is_sum_over_rows: bool = True

    @property
    def has_classes(self) -> bool:
        """True if the target has two classes."""
        return self.values is Values.CLASSES

    @property
    def has_counts(self) -> bool:
        """True if the target has counts."""
        return self.values is Values.COUNTS

    @property
    def has_times(self) -> bool:
        """True if the target has survival times."""
        return self.values is Values.TIMES

    @property
    def held_out_error(self) -> str:
        """Name of the error of held-out rows: the loss of a row, unless the error depends on the number of folds."""
        return self.row_loss if self.is_sum_over_rows else "CV error"

    def name_matched_sets(self) -> Target:
        """Return the terms for survival times whose strata are matched sets of one case with its controls."""
        loss, total, cv_error = (
            words.replace("partial likelihood", "conditional likelihood")
            for words in (self.row_loss, self.total, self.cv_error)
        )
        return self._replace(
            model="conditional logistic", ratio="odds ratio", unit="log odds ratios", row_loss=loss, total=total,
            cv_error=cv_error,
        )  # fmt: skip


TARGETS = {
    Loss.SQUARED: Target(
        values=Values.NUMBERS, model="ridge", row_loss="squared error", losses="squared errors",
        cv_error="mean squared error", total="||y - Xb||^2", null_model="the mean",
        explained="R^2 of held-out rows",
        proof_restrictions=("adjust", "force_out", "count"), is_quadratic=True,
    ),
    Loss.LOGISTIC: Target(
        values=Values.CLASSES, model="logistic", row_loss="log loss", losses="log losses", cv_error="mean log loss",
        total="sum of log losses", null_model="the class frequencies",
        explained="share of the log loss explained (McFadden R^2)", link="logit",
        unit="log odds", ratio="odds ratio", options=("positive", "class_weight", "offset", "trials"),
        proof_restrictions=(), gammas_over_rows=(0.3, 30.0, 5), separated="the two classes",
    ),
    Loss.POISSON: Target(
        values=Values.COUNTS, model="Poisson", row_loss="half deviance", losses="half deviances",
        cv_error="mean half deviance", total="sum of half deviances", null_model="the mean rate",
        explained="share of the deviance explained", link="log",
        unit="log rates", ratio="rate ratio", options=("exposure", "offset"), gammas_over_rows=(3.0, 3000.0, 7),
        separated="the rows of count 0 from the others",
    ),
    Loss.COX: Target(
        values=Values.TIMES, model="Cox", row_loss="negative log partial likelihood",
        losses="negative log partial likelihoods", cv_error="cross-validated negative log partial likelihood per event",
        total="negative log partial likelihood", null_model="the model without features",
        explained="share of the deviance explained", unit="log hazard ratios", ratio="hazard ratio",
        options=("event", "entry", "strata", "ties"), gammas_over_rows=(1.0, 100.0, 7), has_intercept=False,
        is_sum_over_rows=False,
    ),
}  # fmt: skip


REASONS = {  # options that some losses alone have, and the reason
    "positive": "no other loss has classes",
    "class_weight": "no other loss has classes",
    "exposure": "only counts have exposures",
    "trials": "no other loss has successes and failures",
    "offset": "with squared-error loss, subtract the offset from the target instead",
    **dict.fromkeys(("event", "entry", "strata", "ties"), "only survival times have events and risk sets"),
}


def find_losses_of_option(option: str) -> tuple[Loss, ...]:
    """Return the losses that have an option which is not for every loss.

    Examples
    --------
    >>> [str(loss) for loss in find_losses_of_option("offset")]
    ['logistic', 'poisson']
    """
    return tuple(loss for loss in Loss if option in loss.target.options)


def find_loss_of_values(values: Values) -> Loss:
    """Return the first loss for a target with such values.

    Examples
    --------
    >>> str(find_loss_of_values(Values.COUNTS))
    'poisson'
    """
    return next(loss for loss in Loss if loss.target.values is values)


class TargetColumns(NamedTuple):
    """Columns that the target of a loss needs in addition to the features, or None.

    Attributes
    ----------
    exposure : str, optional
        Column of exposures.
    offset : str, optional
        Column of offsets.
    trials : str, optional
        Column of the numbers of trials, if the target is the number of successes.
    event : str, optional
        Column that marks the events of survival times, or `COLUMN=VALUE`.
    entry, strata : str, optional
        Columns of entry times and of strata.
    """

    exposure: str | None = None
    offset: str | None = None
    trials: str | None = None
    event: str | None = None
    entry: str | None = None
    strata: str | None = None

    @classmethod
    def from_fields(cls, holder: object) -> TargetColumns:
        """Return the columns that are attributes of options or of the data of a record; none of another object."""
        return cls(*(getattr(holder, option, None) for option in cls._fields))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the given columns."""
        return tuple(filter(None, self.by_option().values()))

    def by_option(self) -> dict[str, Any]:
        """Return the name of each column, by option."""
        return self._asdict() | {"event": None if self.event is None else split_event(self.event)[0]}

    @property
    def predictor_columns(self) -> TargetColumns:
        """The columns that enter the linear predictor: exposures and offsets."""
        return TargetColumns(self.exposure, self.offset)

    def keep_for_loss(self, loss: Loss) -> TargetColumns:
        """Return the columns that a loss has."""
        return TargetColumns(
            *(name if option in loss.target.options else None for option, name in self._asdict().items())
        )


NO_TARGET_COLUMNS = TargetColumns()


def split_event(event: str) -> tuple[str, str | None]:
    """Return the column that marks events, and the value that means an event; None if none is given.

    Examples
    --------
    >>> split_event("status=2"), split_event("died")
    (('status', '2'), ('died', None))
    """
    column, equals, value = event.rpartition("=")
    return (column.strip(), value.strip()) if equals else (event, None)
