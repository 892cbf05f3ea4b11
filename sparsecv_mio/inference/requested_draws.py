"""The repetitions of the procedure that `solve` requests: the bootstrap, stability selection, inference by splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.inference.bootstrap import WHAT as BOOTSTRAP
from sparsecv_mio.inference.bootstrap import add_bootstrap
from sparsecv_mio.inference.choices import DrawOptions, check_procedure
from sparsecv_mio.inference.draws import find_units
from sparsecv_mio.inference.splits import add_inference, check_splits, parse_splits
from sparsecv_mio.inference.stability_selection import WHAT as STABILITY_SELECTION
from sparsecv_mio.inference.stability_selection import add_stability_selection, parse_pairs
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.question import Question


@dataclass(frozen=True, eq=False)
class RequestedDraws:
    """The repetitions of the procedure on draws of the rows, checked when made.

    Attributes
    ----------
    bootstrap : int or None
        Number of bootstrap draws.
    halves : str or None
        Complementary pairs of halves and the threshold, as in `50:0.8`.
    options : DrawOptions
        Seed, gap and file of the draws.
    method : str or None
        Method of inference, as in `splits:50`.
    """

    bootstrap: int | None
    halves: str | None
    options: DrawOptions
    method: str | None = None

    def __post_init__(self) -> None:
        if self.halves is not None:
            parse_pairs(self.halves)
        if self.method is not None:
            parse_splits(self.method)

    def check(self, question: Question) -> None:
        """Raise an error if the procedure of a question cannot be repeated on the draws."""
        for what, value in ((BOOTSTRAP, self.bootstrap), (STABILITY_SELECTION, self.halves)):
            if value is not None:
                check_procedure(question, what)
                find_units(question.dataset, question.folds)
        if self.method is not None:
            check_splits(question, self.method)

    def add_to(self, record: Record, question: Question, deadline: Deadline) -> Record:
        """Return a record with the results of the draws; several repetitions share the time equally.

        Parameters
        ----------
        record : Record
            Answer for all rows.
        question : Question
            Question that the record answers.
        deadline : Deadline
            Deadline of all draws.
        """
        adders = list[Callable[..., Record]]()
        if self.bootstrap is not None:
            adders.append(partial(add_bootstrap, count=self.bootstrap))
        if self.halves is not None:
            pairs, threshold = parse_pairs(self.halves)
            adders.append(partial(add_stability_selection, count=pairs, threshold=threshold))
        if self.method is not None:
            adders.append(partial(add_inference, method=self.method))
        for n_left, add in zip(range(len(adders), 0, -1), adders, strict=True):
            part = deadline if n_left == 1 else deadline.next_part(deadline.remaining_seconds / n_left)
            record = add(record, question, options=self.options, deadline=part)
        return record
