"""One estimator for scikit-learn 1.5 to 1.9: what newer ones have is used where it is there."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetRidge, BestSubsetRidgeCV, linear
from sparsecv_mio.sklearn.linear import warn_unproved


def test_callbacks_are_those_of_scikit_learn_where_it_has_them() -> None:
    newer = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)
    assert hasattr(linear.CallbackSupportMixin, "set_callbacks") == newer


def test_data_are_checked_and_columns_remembered() -> None:
    estimator: Any = BaseEstimator()
    linear.validate_data(estimator, [[1.0, 2.0], [3.0, 4.0]])
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="NaN"):
        linear.validate_data(estimator, [[float("nan"), 1.0]], reset=False)


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 20)), RNG.normal(size=60)
has_callbacks = hasattr(linear.CallbackSupportMixin, "set_callbacks")
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


X_LINEAR, Y_LINEAR = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)


def test_columns_have_their_names() -> None:
    frame = pd.DataFrame(X_LINEAR, columns=["y", "b", "c"])
    data = BestSubsetRidge(1).fit(frame, Y_LINEAR).record_.data
    assert data.names == ("y", "b", "c") and data.target == "y_"
    assert BestSubsetRidge(1).fit(frame, pd.Series(Y_LINEAR, name="t")).record_.data.target == "t"
    assert BestSubsetRidge(1).fit(X_LINEAR, Y_LINEAR).record_.data.names == ("x0", "x1", "x2")


def test_the_callers_arrays_stay_writable() -> None:
    mine = X_LINEAR.copy()
    BestSubsetRidge(1).fit(mine, Y_LINEAR)
    mine[0, 0] = 7.0


def test_coefficients_of_many_names_stay_in_their_columns() -> None:
    frame = pd.DataFrame(X_LINEAR, columns=["z", "a", "m"])
    model = BestSubsetRidge().fit(frame, Y_LINEAR)
    assert model.coef_.tolist() == [model.record_.path[-1].coefficients[name] for name in frame.columns]


def test_what_cannot_be_predicted_from_is_refused() -> None:
    with pytest.raises(NotFittedError):
        BestSubsetRidge().predict(X_LINEAR)
    with pytest.raises(ValueError, match="expecting 3 features"):
        BestSubsetRidge().fit(X_LINEAR, Y_LINEAR).predict(X_LINEAR[:, :2])
    with pytest.raises(TypeError, match="dense data is required"):
        BestSubsetRidge().fit(csr_array(X_LINEAR), Y_LINEAR)
    with pytest.raises(ValueError, match="^column 'a' holds text 'red' in row 1: encode it .*OneHotEncoder"):
        BestSubsetRidge().fit(pd.DataFrame({"a": pd.Categorical(["red"] * 20), "b": Y_LINEAR}), Y_LINEAR)


@pytest.mark.parametrize("frame", [False, True])
def test_cells_that_are_no_numbers_are_named_with_what_cures_them(frame: bool) -> None:
    def refused(cells: object, said: str) -> None:
        array = np.array(X_LINEAR, dtype=object)
        array[2, 1] = cells
        given = pd.DataFrame(array) if frame else array
        with pytest.raises(BadInput, match=f"^[^\n]*row 3[^\n]*{said}[^\n]*$"):
            BestSubsetRidge(1).fit(given, Y_LINEAR)
        with pytest.raises(BadInput, match=f"^[^\n]*row 3[^\n]*{said}[^\n]*$"):
            BestSubsetRidge(1).fit(X_LINEAR, Y_LINEAR).predict(array)

    refused(np.nan, "SimpleImputer")
    refused("red", "OneHotEncoder")
    frame_of_words = pd.DataFrame({"a": ["red", "blue"] * 10, "b": Y_LINEAR, "c": X_LINEAR[:, 0]})
    ways = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")  # the cure that is named
    assert make_pipeline(ways, BestSubsetRidge(2)).fit(frame_of_words, Y_LINEAR)[-1].coef_.shape == (4,)
    for target in (["no", "yes"] * 10, pd.Series(["no", "yes"] * 10)):
        with pytest.raises(BadInput, match="^y holds text 'no': give numbers; LabelEncoder"):
            BestSubsetRidge(1).fit(X_LINEAR, target)
    with pytest.raises(BadInput, match="^Input y contains NaN: leave out the rows without a target$"):
        BestSubsetRidge(1).fit(X_LINEAR, np.where(Y_LINEAR > 3, Y_LINEAR, np.nan))
