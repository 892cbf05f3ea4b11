"""The repetitions of the procedure that the command `solve` requests: the bootstrap, and stability selection."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.inference.bootstrap import WHAT as BOOTSTRAP
from sparsecv_mio.inference.bootstrap import add_bootstrap
from sparsecv_mio.inference.choices import DrawOptions, check_procedure
from sparsecv_mio.inference.draws import find_units
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
    """

    bootstrap: int | None
    halves: str | None
    options: DrawOptions

    def __post_init__(self) -> None:
        if self.halves is not None:
            parse_pairs(self.halves)

    def check(self, question: Question) -> None:
        """Raise `BadInput` if the procedure of a question cannot be repeated on the draws."""
        for what, value in ((BOOTSTRAP, self.bootstrap), (STABILITY_SELECTION, self.halves)):
            if value is not None:
                check_procedure(question, what)
                find_units(question.dataset, question.folds)

    def add_to(self, record: Record, question: Question, deadline: Deadline) -> Record:
        """Return a record with the results of the draws; with both repetitions the first has half of the time.

        Parameters
        ----------
        record : Record
            Answer for all rows.
        question : Question
            Question that the record answers.
        deadline : Deadline
            Deadline of all draws.
        """
        if self.bootstrap is not None:
            first = deadline if self.halves is None else deadline.next_part(deadline.remaining_seconds / 2.0)
            record = add_bootstrap(record, question, self.bootstrap, self.options, deadline=first)
        if self.halves is None:
            return record
        pairs, threshold = parse_pairs(self.halves)
        return add_stability_selection(record, question, pairs, self.options, threshold, deadline)
