"""Lines on the screen, callbacks of scikit-learn that see a fit and may end it."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sparsecv_mio.sklearn import BestSubsetRidge, BestSubsetRidgeCV, versions
from sparsecv_mio.sklearn.watching import warn_unproved

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 20)), RNG.normal(size=60)
has_callbacks = hasattr(versions.CallbackSupportMixin, "set_callbacks")
newer = pytest.mark.skipif(not has_callbacks, reason="scikit-learn before 1.9")


class Witness:
    """A callback that counts what it is told, and asks for the end after some reports."""

    def __init__(self, most: float = np.inf) -> None:
        self.most, self.seen, self.fitted = most, list[str](), None

    def setup(self, estimator: Any, context: Any) -> None:
        self.seen.append("setup")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.seen.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        self.seen.append(f"end {context.task_name}")
        self.fitted = fitted_estimator
        return self.seen.count("end report") >= self.most

    def teardown(self, estimator: Any, context: Any) -> None:
        self.seen.append("teardown")


@newer
@pytest.mark.parametrize("model", [BestSubsetRidge(3), BestSubsetRidgeCV(gammas=0.1, taus=2, cv=3)])
def test_callbacks_see_the_fit_from_begin_to_end(model: Any) -> None:
    witness = Witness()
    model.set_callbacks(witness).fit(X, Y)
    assert witness.seen[:2] == ["setup", "begin fit"] and witness.seen[-2:] == ["end fit", "teardown"]
    assert witness.seen.count("begin report") == witness.seen.count("end report") > 0
    assert (witness.fitted.predict(X) == model.predict(X)).all()


@newer
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_may_end_the_fit() -> None:
    model = BestSubsetRidgeCV(gap=0.0, cv="loo").set_callbacks(Witness(1)).fit(X, Y)
    assert model.status_ == "interrupted" and np.isfinite(model.predict(X)).all()


# of an object by itself: a search that was abandoned may still be compiling, and numba sets filters of its own then
@pytest.mark.parametrize(("status", "words"), [("limit", "reached its limit"), ("interrupted", "was interrupted")])
def test_what_is_not_proved_is_a_warning(status: str, words: str) -> None:
    took = SimpleNamespace(warnings=("a copy", "45 of 60 s went into compiling"))
    with pytest.warns(ConvergenceWarning, match=f"SimpleNamespace {words} before the answer .* 1 and 2.5 as") as caught:
        warn_unproved(SimpleNamespace(status_=status, lower_=1.0, upper_=2.5, record_=took))
    assert str(caught[0].message).endswith("as bounds; 45 of 60 s went into compiling")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unproved(SimpleNamespace(status_="proved"))


def test_lines_say_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    BestSubsetRidgeCV(gammas=0.1, taus=2, cv=3, verbose=1).fit(X, Y)
    assert capsys.readouterr().out.startswith("BestSubsetRidgeCV: 0 s, ")
    BestSubsetRidgeCV(gammas=0.1, taus=2, cv=3).fit(X, Y)
    assert capsys.readouterr().out == ""
