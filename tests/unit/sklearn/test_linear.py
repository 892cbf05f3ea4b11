"""From X and y to a data set: names of columns, a name for the target, arrays that stay the caller's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetRidge

X, Y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)


def test_columns_have_their_names() -> None:
    frame = pd.DataFrame(X, columns=["y", "b", "c"])
    data = BestSubsetRidge(1).fit(frame, Y).record_.data
    assert data.names == ("y", "b", "c") and data.target == "y_"
    assert BestSubsetRidge(1).fit(frame, pd.Series(Y, name="t")).record_.data.target == "t"
    assert BestSubsetRidge(1).fit(X, Y).record_.data.names == ("x0", "x1", "x2")


def test_the_callers_arrays_stay_writable() -> None:
    mine = X.copy()
    BestSubsetRidge(1).fit(mine, Y)
    mine[0, 0] = 7.0


def test_coefficients_of_many_names_stay_in_their_columns() -> None:
    frame = pd.DataFrame(X, columns=["z", "a", "m"])
    model = BestSubsetRidge().fit(frame, Y)
    assert model.coef_.tolist() == [model.record_.path[-1].coefficients[name] for name in frame.columns]


def test_what_cannot_be_predicted_from_is_refused() -> None:
    with pytest.raises(NotFittedError):
        BestSubsetRidge().predict(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        BestSubsetRidge().fit(X, Y).predict(X[:, :2])
    with pytest.raises(TypeError, match="dense data is required"):
        BestSubsetRidge().fit(csr_array(X), Y)
    with pytest.raises(ValueError, match="^column 'a' holds text 'red' in row 1: encode it .*OneHotEncoder"):
        BestSubsetRidge().fit(pd.DataFrame({"a": pd.Categorical(["red"] * 20), "b": Y}), Y)


@pytest.mark.parametrize("frame", [False, True])
def test_cells_that_are_no_numbers_are_named_with_what_cures_them(frame: bool) -> None:
    def refused(cells: object, said: str) -> None:
        array = np.array(X, dtype=object)
        array[2, 1] = cells
        given = pd.DataFrame(array) if frame else array
        with pytest.raises(BadInput, match=f"^[^\n]*row 3[^\n]*{said}[^\n]*$"):
            BestSubsetRidge(1).fit(given, Y)
        with pytest.raises(BadInput, match=f"^[^\n]*row 3[^\n]*{said}[^\n]*$"):
            BestSubsetRidge(1).fit(X, Y).predict(array)

    refused(np.nan, "SimpleImputer")
    refused("red", "OneHotEncoder")
    frame_of_words = pd.DataFrame({"a": ["red", "blue"] * 10, "b": Y, "c": X[:, 0]})
    ways = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")  # the cure that is named
    assert make_pipeline(ways, BestSubsetRidge(2)).fit(frame_of_words, Y)[-1].coef_.shape == (4,)
    for target in (["no", "yes"] * 10, pd.Series(["no", "yes"] * 10)):
        with pytest.raises(BadInput, match="^y holds text 'no': give numbers; LabelEncoder"):
            BestSubsetRidge(1).fit(X, target)
    with pytest.raises(BadInput, match="^Input y contains NaN: leave out the rows without a target$"):
        BestSubsetRidge(1).fit(X, np.where(Y > 3, Y, np.nan))
