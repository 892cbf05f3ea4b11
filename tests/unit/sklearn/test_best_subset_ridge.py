"""One estimator for scikit-learn 1.5 to 1.9: what newer ones have is used where it is there."""

from __future__ import annotations

import datetime
import inspect
import pickle
import re
import signal
import threading
import warnings
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from frames import read_csv
from repository import INSTANCES
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_fit2d_1feature, parametrize_with_checks

import sparsecv_mio as sc
from sparsecv_mio import model_space
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, GridEdgeWarning, OutOfTime, SparseCVWarning
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.sklearn import (
    BestSubsetLogistic,
    BestSubsetLogisticCV,
    BestSubsetPoisson,
    BestSubsetPoissonCV,
    BestSubsetRidge,
    BestSubsetRidgeCV,
    kept,
    sparse_model,
)
from sparsecv_mio.sklearn.sparse_model import cv_results, warn_of_result


def test_callbacks_are_those_of_scikit_learn_where_it_has_them() -> None:
    newer = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)
    assert hasattr(sparse_model.CallbackSupportMixin, "set_callbacks") == newer


def test_data_are_checked_and_columns_remembered() -> None:
    estimator: Any = BaseEstimator()
    sparse_model.validate_data(estimator, [[1.0, 2.0], [3.0, 4.0]])
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="NaN"):
        sparse_model.validate_data(estimator, [[float("nan"), 1.0]], reset=False)


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 20)), RNG.normal(size=60)
has_callbacks = hasattr(sparse_model.CallbackSupportMixin, "set_callbacks")
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


@pytest.mark.parametrize(
    ("status", "limit", "words"),
    [
        ("limit", 60.0, "reached its limit"), ("limit", None, "had no search step left"),
        ("interrupted", None, "was interrupted"),
    ],
)  # fmt: skip
def test_what_is_not_proved_is_a_warning(status: str, limit: float | None, words: str) -> None:
    record = SimpleNamespace(
        warnings=("a copy",), request=SimpleNamespace(time_limit=limit), status=status, lower=1.0, upper=2.5,
        estimate=False, table=(), continuous=None, certificate=SimpleNamespace(gamma=0.1, tau=1), advice=None,
    )  # fmt: skip
    expected = f"SimpleNamespace {words} before the answer .* lower 1, upper 2.5"
    with pytest.warns(ConvergenceWarning, match=f"{expected}$"):
        warn_of_result(SimpleNamespace(record_=record), DATA)
    record.estimate = True
    with pytest.warns(ConvergenceWarning, match=f"{expected}; the CV error is an estimate$"):
        warn_of_result(SimpleNamespace(record_=record), DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_result(SimpleNamespace(record_=SimpleNamespace(status="proved", warnings=())), DATA)


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


def test_what_cannot_be_predicted_from_is_refused() -> None:
    with pytest.raises(NotFittedError):
        BestSubsetRidge().predict(X_LINEAR)
    with pytest.raises(ValueError, match="expecting 3 features"):
        BestSubsetRidge().fit(X_LINEAR, Y_LINEAR).predict(X_LINEAR[:, :2])
    with pytest.raises(ValueError, match=r"^column 'a' holds text 'red' in row 1 \(index 0\); .*OneHotEncoder"):
        BestSubsetRidge().fit(pd.DataFrame({"a": pd.Categorical(["red"] * 20), "b": Y_LINEAR}), Y_LINEAR)


@pytest.mark.parametrize("model", [BestSubsetRidge(2), BestSubsetRidgeCV(gammas=0.1, taus=2, cv=3)])
def test_a_sparse_X_is_made_dense(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = clone(model).fit(X, Y)
    for kind in (csr_array, csc_matrix):
        sparse = clone(model).fit(kind(X), Y)
        assert (sparse.coef_ == dense.coef_).all() and sparse.predict(kind(X)) == pytest.approx(dense.predict(X))
    monkeypatch.setattr(sparse_model, "MOST_DENSE", 1199)
    with pytest.raises(BadInput, match="^X is sparse with 60 x 20 cells, but .* at most 1,199 cells; [^\n]*$"):
        clone(model).fit(csr_array(X), Y)


@pytest.mark.parametrize("kind", [BestSubsetRidge, BestSubsetRidgeCV])
def test_what_others_call_a_parameter_is_told(kind: Any) -> None:
    names = {"alpha": "gamma", "nonnegtive": "nonnegative", "standardize": "scale", "n_nonzero_coefs": "tau"}
    names |= (
        {"alphas": "gammas", "nfolds": "cv", "n_jbos": "n_jobs", "threads": "n_jobs"}
        if kind is BestSubsetRidgeCV
        else {}
    )
    for theirs, ours in names.items():
        with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) .* '{theirs}' \(did you mean '{ours}s?'\?\)$"):
            kind(**{theirs: 1})
    with pytest.raises(TypeError, match="'zzz'$"):
        kind(zzz=1)
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(kind.__init__).parameters)[1:]


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

    refused(
        np.nan, 'to impute missing values, give a CV estimator na="mean" and na_within="folds", or put SimpleImputer'
    )
    refused("red", "OneHotEncoder")
    frame_of_words = pd.DataFrame({"a": ["red", "blue"] * 10, "b": Y_LINEAR, "c": X_LINEAR[:, 0]})
    ways = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")  # the cure that is named
    assert make_pipeline(ways, BestSubsetRidge(2)).fit(frame_of_words, Y_LINEAR)[-1].coef_.shape == (4,)
    for target in (["no", "yes"] * 10, pd.Series(["no", "yes"] * 10)):
        with pytest.raises(
            BadInput, match="^y holds text 'no'; give numbers, or use BestSubsetLogisticCV for two classes"
        ):
            BestSubsetRidge(1).fit(X_LINEAR, target)
    X = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0]])
    with pytest.raises(BadInput, match=r"first in row 1, column 2 of X \(such cells are in columns 1, 2\); to impute"):
        BestSubsetRidge(1).fit(X, np.arange(3.0))
    with pytest.raises(BadInput, match="^Input y contains NaN; remove the rows without a target$"):
        BestSubsetRidge(1).fit(X_LINEAR, np.where(Y_LINEAR > 3, Y_LINEAR, np.nan))
    with pytest.raises(BadInput, match="^Input y contains NaN; remove the rows without a target$"):
        BestSubsetLogisticCV(na="mean", na_within="folds").fit(X_LINEAR, [None, *["a", "b"] * 9, "a"])
    masked = np.ma.masked_greater(X_LINEAR, X_LINEAR.mean())
    with pytest.raises(BadInput, match="contains NaN"):
        BestSubsetRidge(1).fit(masked, Y_LINEAR)
    with pytest.raises(BadInput, match="column 'x0' holds nan in row 1"):
        sc.Dataset.from_arrays(masked, Y_LINEAR)


@pytest.mark.parametrize("model", [BestSubsetRidge(1), BestSubsetRidgeCV(na="mean", gammas=0.1, taus=1)])
def test_values_of_frames_that_are_no_numbers_have_advice_for_estimators(model: Any) -> None:
    day, frame = datetime.date(2024, 5, 6), pd.DataFrame(X_LINEAR, columns=["a", "b", "c"])
    for value, said in (
        (
            pd.Timestamp(day),
            r"the date 2024-05-06 in row 1 \(index 0\); .* by "
            r"\(pandas.to_datetime\(X\['c'\], utc=True\) - pandas.Timestamp\(0, tz='UTC'\)\).dt.days, or ",
        ),
        (day, "the date 2024-05-06 in row 1"),
        (datetime.time(3), "a value of type time in row 1 "),
        (3 + 2j, "a value of type complex in row 1 "),
        ("3", r"the number '3' as text in row 1 \(index 0\); convert the column, for example by pandas.to_numeric"),
    ):
        with pytest.raises(BadInput, match=f"^column 'c' holds {said}"):
            model.fit(frame.assign(c=[value] * len(frame)), Y_LINEAR)
    with pytest.raises(BadInput, match="^column 'c' holds the date 2024-05-06 in row 1"):
        model.fit(frame, Y_LINEAR).predict(frame.assign(c=pd.Timestamp(day)))
    with pytest.raises(
        BadInput, match=r"^column 'a' holds the number '.*' as text in row 1 \(index 0\); convert the column"
    ):
        model.predict(frame.astype(str))
    with pytest.raises(BadInput, match="^column name 'a' is in X more than once"):
        model.predict(frame.set_axis(["a", "b", "a"], axis=1))


def test_sizes_above_the_number_of_columns_state_it() -> None:
    for model in (BestSubsetRidge(2), BestSubsetRidge("1:2"), BestSubsetRidgeCV(taus=[2]), BestSubsetPoisson(2)):
        check_fit2d_1feature(type(model).__name__, model)


def test_one_class_of_positive_weight_is_stated() -> None:
    for model in (BestSubsetLogistic(1), BestSubsetLogisticCV(), BestSubsetLogisticCV(class_weight={0: 0.0, 1: 1.0})):
        with pytest.raises(BadInput, match="^y has only one class, 1, among the rows of positive weight"):
            model.fit(X_LINEAR, np.arange(20) % 2, sample_weight=np.arange(20) % 2)


@parametrize_with_checks([BestSubsetRidge(), BestSubsetRidge("log", gamma=0.5, scale="none", fit_intercept=False)])
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Any) -> None:
    check(estimator)


def objective(X: Any, y: Any, gamma: float) -> float:
    """The least of `||y - Xb||^2 + (gamma / 2) ||b||^2`, columns as they are, no intercept."""
    b = np.linalg.solve(X.T @ X + gamma / 2 * np.eye(X.shape[1]), X.T @ y)
    return float(((y - X @ b) ** 2).sum() + gamma / 2 * b @ b)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_best_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 6)), rng.normal(size=12)
    model = BestSubsetRidge(2, gamma=0.3, scale="none", fit_intercept=False).fit(X, y)
    known = {S: objective(X[:, S], y, 0.3) for S in combinations(range(6), 2)}
    assert tuple(model.support_.nonzero()[0]) == min(known, key=lambda S: known[S])
    assert model.objective_ == pytest.approx(min(known.values()), rel=1e-10)
    assert model.lower_ <= model.objective_ <= model.upper_ and model.status_ == "proved"


def test_a_path_holds_the_models_of_its_sizes() -> None:
    data = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")
    path = BestSubsetRidge(gamma=0.01).fit(data.X, data.y)
    assert path.taus_.tolist() == list(range(1, 9)) and path.tau_ == 8
    theirs = sc.best_subsets(data, gammas=0.01)
    for tau in (1, 4, 8):
        one, row = BestSubsetRidge(tau, gamma=0.01).fit(data.X, data.y), theirs.path[tau - 1]
        assert (one.coef_ == path.coef_path_[:, tau - 1]).all() and one.intercept_ == path.intercept_path_[tau - 1]
        assert one.coef_[one.support_].tolist() == list(row.coefficients.values()) and one.objective_ == row.objective
    assert (path.predict(data.X) == data.X @ path.coef_ + path.intercept_).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [({"tau": 9}, "tau 9 is out of range; give a number from 0 to 3"), ({"tau": 1.5}, "tau: 1.5 is not a whole number"),
     ({"gamma": -0.1}, "gamma -0.1 is out of range"), ({"gamma": "x"}, "gamma: 'x' is not a number; give one number"),
     ({"gamma": [0.1, 0.2]}, r"gamma: \[0.1, 0.2\] is not a number; give one number")],
)  # fmt: skip
def test_bad_parameters_are_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}[^\n]*$"):
        BestSubsetRidge(**given).fit(np.eye(5)[:, :3], np.arange(5.0))


@pytest.mark.parametrize("model", [BestSubsetRidge(1), BestSubsetRidgeCV(gammas=0.1, taus=1, cv=3)])
def test_notes_of_the_record_are_warnings(model: Any) -> None:
    named = rf"^{type(model).__name__}: column 'x1' is constant: its coefficient is zero, but it counts in tau$"
    with pytest.warns(SparseCVWarning, match=named):
        model.fit(np.column_stack((X_LINEAR[:, 0], np.ones(len(X_LINEAR)))), Y_LINEAR)


def test_tables_that_no_estimator_can_read_are_one_line() -> None:
    frame = pd.DataFrame(X_LINEAR, columns=["a", "b", "a"])
    with pytest.raises(BadInput, match="^column name 'a' is in X more than once; give every column a different name$"):
        BestSubsetRidge(1).fit(frame, Y_LINEAR)
    with pytest.raises(TypeError, match="'encode'; put OneHotEncoder before the estimator in a pipeline$"):
        BestSubsetRidge(**{"encode": "onehot"})
    with pytest.raises(TypeError, match="'loss'; use the estimators BestSubsetLogistic, BestSubsetPoisson and "):
        BestSubsetRidge(**{"loss": "logistic"})
    lazy = type("LazyFrame", (), {"collect": None})()
    with pytest.raises(BadInput, match=r"^data: a LazyFrame is not a table in memory; call its .collect\(\) first$"):
        BestSubsetRidge(1).fit(lazy, Y_LINEAR)
    model = BestSubsetRidgeCV(na="mean", gammas=0.1, taus=1)
    with pytest.raises(BadInput, match="^column 'z' is empty in every row; remove the column from X$"):
        model.fit(frame.set_axis(["a", "b", "c"], axis=1).assign(z=np.nan), Y_LINEAR)
    with pytest.raises(BadInput, match="^na: unknown word 'foo'; use error, mean, median$"):
        BestSubsetRidgeCV(na="foo").fit(X_LINEAR, Y_LINEAR)
    with pytest.raises(BadInput, match="^exposure is 'a' in row 1; give a number above 0 for each row$"):
        sc.BestSubsetPoissonCV().fit(X_LINEAR, np.ones(20), exposure=["a"] * 20)
    with pytest.raises(BadInput, match="^exposure: 'days' is a text; give an array with a number above 0 for each row"):
        sc.BestSubsetPoissonCV().fit(X_LINEAR, np.ones(20), exposure="days")


PROSTATE = INSTANCES / "prostate.csv"
QUICK: dict[str, Any] = {"gammas": 0.1, "cv": 3, "taus": "log"}


def prostate() -> tuple[pd.DataFrame, pd.Series[float]]:
    frame = read_csv(PROSTATE)
    return frame.drop(columns="lpsa"), frame["lpsa"]


@pytest.mark.slow
@parametrize_with_checks([BestSubsetRidgeCV(), BestSubsetRidgeCV(one_se=True, cv="loo", gammas=[0.01, 1.0])])
def test_scikit_learn_finds_nothing_wrong_with_large_grids(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("options", [[], ["--one-se", "--scale", "variance", "--folds", "loo", "--intercept", "none"]])
def test_the_numbers_are_those_of_the_command(options: list[str], tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    given = {"one_se": True, "scale": "variance", "cv": "loo", "fit_intercept": False} if options else {}
    command = ["solve", str(PROSTATE), "--target", "lpsa", "--gamma", "0.01,1", "--json", str(file), "--quiet"]
    assert run([*command, *options]) == 0
    theirs, ours = sc.read_record(file), BestSubsetRidgeCV(gammas=[0.01, 1.0], **given).fit(*prostate())
    assert isinstance(theirs, Record)
    assert (ours.tau_, ours.gamma_, ours.cv_error_) == (theirs.tau, theirs.gamma, theirs.cv_error)
    assert ours.lower_ <= ours.cv_error_ <= ours.upper_ and (theirs.least is not None) == bool(options)
    assert (ours.lower_, ours.upper_, ours.status_) == (theirs.lower, theirs.upper, "proved")
    assert dict(zip(ours.feature_names_in_[ours.support_], ours.coef_[ours.support_], strict=True)) == (
        theirs.coefficients
    )
    assert ours.intercept_ == theirs.intercept and not ours.coef_[~ours.support_].any()
    assert ours.record_.table == theirs.table and ours.record_.data == theirs.data
    assert sc.verify(ours.record_, sc.read_dataset(PROSTATE, "lpsa")).ok


def test_the_gammas_are_those_of_the_command() -> None:
    model = BestSubsetRidgeCV(taus=1, cv=2).fit(*prostate())
    assert model.record_.request.gammas == model_space.gammas(model_space.DEFAULT_GAMMAS)
    X = np.random.default_rng(0).standard_normal((12, 10))
    model = BestSubsetRidgeCV(taus=1, cv=6).fit(X, X[:, 0] + X[:, 1])
    assert model.record_.request.gammas == model_space.gammas(model_space.WIDE_GAMMAS)


def test_in_a_pipeline_in_a_grid_search_in_a_cross_validation() -> None:
    X, y = prostate()
    pipe = make_pipeline(StandardScaler(), BestSubsetRidgeCV(**QUICK)).set_output(transform="pandas")
    search = GridSearchCV(pipe, {"bestsubsetridgecv__scale": ["length", "none"]}, cv=2)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        scores = cross_val_score(search, X, y, cv=KFold(2, shuffle=True, random_state=0))
    assert scores.shape == (2,) and scores.min() > 0.3
    names = search.fit(X, y).best_estimator_[-1].feature_names_in_
    assert names.tolist() == X.columns.tolist()


def test_copies_and_files_keep_the_fit(tmp_path: Path) -> None:
    X, y = prostate()
    model = BestSubsetRidgeCV(**QUICK).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        assert (again.predict(X) == model.predict(X)).all() and again.record_ == model.record_
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "coef_")
    assert repr(model) == "BestSubsetRidgeCV(cv=3, gammas=0.1, taus='log')"
    assert "BestSubsetRidgeCV" in model._repr_html_()


@pytest.mark.parametrize("form", [list, pd.Series, lambda groups: pd.Series(groups).astype("category")])
def test_groups_may_be_a_series_or_a_list(form: Callable[[Any], Any]) -> None:
    X, y = prostate()
    X = X.copy()
    groups = [f"g{i % 5}" for i in range(len(y))]
    X.iloc[3, 0] = np.nan
    model = BestSubsetRidgeCV(**QUICK | {"cv": GroupKFold(5), "na": "mean"})
    one, other = (clone(model).fit(X, y, groups=given) for given in (np.array(groups), form(groups)))
    assert (one.tau_, one.gamma_, one.cv_error_) == (other.tau_, other.gamma_, other.cv_error_)


def test_groups_reach_the_splitter() -> None:
    X, y = prostate()
    groups = np.arange(len(y)) % 5
    for cv in (GroupKFold(5), LeaveOneGroupOut()):
        model = BestSubsetRidgeCV(**QUICK | {"cv": cv}).fit(X, y, groups=groups)
        assert model.record_.folds.k == 5
    with pytest.raises(ValueError, match="^groups: require a splitter"):
        BestSubsetRidgeCV(**QUICK).fit(X, y, groups=groups)


def test_a_row_of_weight_zero_is_as_if_it_were_not_there() -> None:
    X, y = prostate()
    weight = np.arange(len(y)) % 4 > 0
    groups = np.arange(len(y)) % 7
    for cv, keywords in ((3, {}), (KFold(4), {}), (GroupKFold(5), {"groups": groups})):
        with_all = BestSubsetRidgeCV(**QUICK | {"cv": cv}).fit(X, y, weight.astype(float), **keywords)
        kept = {name: values[weight] for name, values in keywords.items()}
        without = BestSubsetRidgeCV(**QUICK | {"cv": cv}).fit(X[weight], y[weight], **kept)
        assert with_all.record_.table == without.record_.table and (with_all.coef_ == without.coef_).all()


def test_a_weight_is_so_many_rows_of_one_fold() -> None:
    X, y = prostate()
    weight = np.arange(len(y)) % 3
    labels = np.arange(len(y)) % 5
    many = np.repeat(np.arange(len(y)), weight)
    weighted = BestSubsetRidgeCV(**QUICK | {"cv": labels}).fit(X, y, sample_weight=weight)
    copies = BestSubsetRidgeCV(**QUICK | {"cv": labels[many]}).fit(X.iloc[many], y.iloc[many])
    for one, two in zip(weighted.record_.table, copies.record_.table, strict=True):
        assert (one.tau, one.status) == (two.tau, two.status) and one.cv_error == pytest.approx(two.cv_error, rel=1e-9)
    assert weighted.coef_ == pytest.approx(copies.coef_, rel=1e-9)
    one, two = BestSubsetRidge(2).fit(X, y, weight), BestSubsetRidge(2).fit(X.iloc[many], y.iloc[many])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-12) and one.coef_ == pytest.approx(two.coef_)
    with pytest.raises(ValueError, match="^sample_weight is -0.5 in row 1; give a weight of at least 0"):
        weighted.fit(X, y, weight - 0.5)


def test_metadata_are_routed() -> None:
    import sklearn

    X, y = prostate()
    groups = np.arange(len(y)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        model = BestSubsetRidgeCV(**QUICK | {"cv": GroupKFold(2)}).set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), model).fit(X, y, groups=groups)
        scores = cross_val_score(model, X, y, cv=KFold(2), params={"groups": groups})
    assert pipe[-1].record_.folds.k == 2 and len(scores) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_keeps_the_best_answer() -> None:
    X, y = prostate()
    wide = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    model = BestSubsetRidgeCV(time_limit=0.5, gap=0.0, cv="loo").fit(wide, y)
    assert model.status_ == "limit" and model.lower_ <= model.cv_error_ and model.score(wide, y) > 0.5


def test_an_interrupt_leaves_a_fitted_estimator() -> None:
    X, y = prostate()
    wide = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    before = signal.getsignal(signal.SIGINT)
    timer.start()
    model = BestSubsetRidgeCV(gap=0.0, cv="loo")
    with pytest.raises(KeyboardInterrupt, match="status_ 'interrupted'"):
        model.fit(wide, y)
    timer.join()
    assert model.status_ == "interrupted" and np.isfinite(model.predict(wide)).all()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("answers", [True, False])
def test_an_interrupt_ends_a_search_of_scikit_learn(monkeypatch: pytest.MonkeyPatch, answers: bool) -> None:
    """Also before the first answer, which would otherwise be a failed fit with the score NaN."""
    fits, search = list[int](), sparse_model.cross_validate

    def interrupt(*given: Any, **options: Any) -> Any:
        fits.append(1)
        signal.raise_signal(signal.SIGINT)
        if answers:
            return search(*given, **options)
        raise OutOfTime("no answer yet")

    monkeypatch.setattr(sparse_model, "cross_validate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(BestSubsetRidgeCV(cv=3), {"gap": [1e-4, 1e-5]}, cv=3).fit(*prostate())
    assert len(fits) == 1


def test_no_cv_is_five_folds_as_in_scikit_learn() -> None:
    X, y = prostate()
    five = BestSubsetRidgeCV(gammas=0.1, taus=2, cv=5).fit(X, y)
    assert BestSubsetRidgeCV(gammas=0.1, taus=2, cv=None).fit(X, y).cv_error_ == five.cv_error_


def test_without_a_refit_there_is_a_choice_and_no_model() -> None:
    X, y = prostate()
    model = BestSubsetRidgeCV(**QUICK).fit(X, y)
    chosen = model.tau_, model.gamma_, model.cv_error_
    alone = model.set_params(refit=False).fit(X, y)
    assert (alone.tau_, alone.gamma_, alone.cv_error_) == chosen and len(alone.cv_results_["params"]) == 4
    assert not any(hasattr(alone, name) for name in ("coef_", "intercept_", "support_", "predict"))
    with pytest.raises(AttributeError) as raised:
        alone.predict(X)
    assert "refit=True" in str(raised.value.__cause__)
    with pytest.raises(AttributeError, match=r"^BestSubsetRidgeCV\(refit=False\) has no coef_; fit it with refit"):
        _ = alone.coef_
    with pytest.raises(AttributeError, match="object has no attribute 'coefs_'"):
        _ = alone.coefs_


def test_held_out_predictions_have_the_cv_error() -> None:
    X, y = prostate()
    model = BestSubsetRidgeCV(**QUICK).fit(X, y)
    assert np.mean((y - model.held_out_predictions_) ** 2) == pytest.approx(model.cv_error_, rel=1e-9)
    labels = (y > np.median(y)).astype(int)
    classifier = BestSubsetLogisticCV(gammas=0.1, taus=2, cv=3).fit(X, labels)
    held_out = classifier.held_out_predictions_
    assert -np.mean(np.log(np.where(labels, held_out, 1.0 - held_out))) == pytest.approx(classifier.cv_error_, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cv": 1}, "folds '1'"),
        ({"cv": 200}, "need 200 rows but the data have 97"),
        ({"gammas": -1.0}, "gamma -1 is out of range"),
        ({"taus": 20}, "tau 20 is out of range; give a number from 0 to 8"),
        ({"scale": "lenght"}, "did you mean 'length'"),
        ({"gap": -1.0}, "gap"),
        ({"n_gammas": 0, "gammas": None}, "COUNT of '1e-3:10:0' must be from 2"),
        ({"one_se": True, "cv": "holdout:0.2"}, "a single fold has no standard error"),
        ({"cv": "7x"}, "cv: folds '7x' do not state what to repeat; for example, 7x10"),
        ({"cv": "seven"}, "cv: folds 'seven' are unknown; use a number K, a text such as 'loo', '5x10'"),
        ({"cv": "groups:a"}, r"cv: 'groups:a' names a column.*such as GroupKFold.., and groups= in fit"),
        ({"cv": KFold}, r"cv: folds KFold: this is a class; give an object"),
        ({"cv": b"5"}, "labels for 97 rows"),
        ({"gap": None}, "gap: 'None' is not a number"),
        ({"time_limit": "5"}, "time_limit: '5' is not a number"),
        ({"n_jobs": 0}, "n_jobs: 0 is not a number of threads"),
        ({"one_se": np.array([1, 2])}, r"one_se: array.* is neither True nor False"),
        ({"taus": np.array(3)}, r"taus: array.3. is an array; give the number 3"),
    ],
)
def test_bad_parameters_are_one_line_cross_validated(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^[^\n]*{said}[^\n]*$"):
        BestSubsetRidgeCV(**QUICK | given).fit(*prostate())


def test_folds_may_overlap() -> None:
    X, y = prostate()
    strata = StratifiedKFold(4).split(X, pd.qcut(y, 5, labels=False))
    repeated = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    groups = np.arange(len(y)) % 9
    given = [(repeated, 8), (TimeSeriesSplit(3), 3), (strata, 4), (GroupShuffleSplit(5, random_state=0), 5), ("2x4", 8)]
    for cv, k in given:
        needs = {"groups": groups} if isinstance(cv, GroupShuffleSplit) else {}
        model = BestSubsetRidgeCV(gammas=[0.1], taus=[1, 2], cv=cv).fit(X, y, **needs)
        assert model.record_.folds.k == k and model.status_ == "proved"


def test_folds_by_row_know_rows_of_weight_zero() -> None:
    X, y = prostate()
    labels, weights = np.arange(len(y)) % 3, np.ones(len(y))
    weights[[0, 5]] = 0.0
    splits = list(PredefinedSplit(labels).split())
    given = (PredefinedSplit(labels), check_cv(splits), splits, labels)
    errors = {BestSubsetRidgeCV(**QUICK | {"cv": cv}).fit(X, y, sample_weight=weights).cv_error_ for cv in given}
    without = BestSubsetRidgeCV(**QUICK | {"cv": labels[weights > 0.0]}).fit(X[weights > 0.0], y[weights > 0.0])
    assert errors == {without.cv_error_}


def test_errors_of_every_fold_and_models_of_every_size_are_there_when_asked_for() -> None:
    X, y = prostate()
    grid: dict[str, Any] = {"gammas": [0.01, 1.0], "taus": [1, 2, 5, 8]}
    model = BestSubsetRidgeCV(cv=5, gap=0.0, **grid).fit(X, y)
    assert not {"mse_path_", "cv_results_", "coef_path_"} & set(vars(model))
    assert model.taus_.tolist() == grid["taus"] and model.gammas_.tolist() == grid["gammas"]
    assert model.mse_path_.shape == (2, 4, 5) and model.best_score_ == -model.cv_error_
    labels = make_folds("5", DATA).labels
    for (g, gamma), (t, tau), fold in product(enumerate(grid["gammas"]), enumerate(grid["taus"]), range(5)):
        train = labels != fold
        error = error_of_the_best_of_all(DATA.X, DATA.y, tau, gamma, train)
        assert model.mse_path_[g, t, fold] == pytest.approx(error, rel=1e-9)
    whole = BestSubsetRidge(grid["taus"], gamma=model.gamma_).fit(X, y)
    assert model.coef_path_ == pytest.approx(whole.coef_path_, rel=1e-9)
    assert model.intercept_path_ == pytest.approx(whole.intercept_path_, rel=1e-9)
    at = grid["taus"].index(model.tau_)
    assert (model.coef_path_[:, at] == model.coef_).all() and model.intercept_path_[at] == model.intercept_
    found, again = model.cv_results_, pickle.loads(pickle.dumps(model))
    weights = np.bincount(labels)
    for place, row in enumerate(model.record_.table):
        scores = np.array([found[f"split{k}_test_score"][place] for k in range(5)])
        assert np.average(scores, weights=weights) == pytest.approx(-row.cv_error, rel=1e-9)
        spread = np.average((scores + row.cv_error) ** 2, weights=weights) ** 0.5
        assert found["std_test_score"][place] == pytest.approx(spread, rel=1e-9)
    assert (again.coef_path_ == model.coef_path_).all() and (again.mse_path_ == model.mse_path_).all()
    model.set_params(taus=[1]).fit(X, y)
    assert model.mse_path_.shape == (2, 1, 5) and model.coef_path_.shape == (8, 1)


def error_of_the_best_of_all(X: Any, y: Any, tau: int, gamma: float, train: Any) -> float:
    """Mean squared error, on the other rows, of the best subset of training rows; scales are those of all rows."""
    length = np.linalg.norm(X - X.mean(axis=0), axis=0)
    fits = []
    for S in map(list, combinations(range(X.shape[1]), tau)):
        middle, level = X[train][:, S].mean(axis=0), y[train].mean()
        A, b, penalty = X[train][:, S] - middle, y[train] - level, np.diag(gamma / 2.0 * length[S] ** 2)
        beta = np.linalg.solve(A.T @ A + penalty, A.T @ b)
        value = float(((b - A @ beta) ** 2).sum() + beta @ penalty @ beta)
        fits.append((value, float(np.mean((y[~train] - level - (X[~train][:, S] - middle) @ beta) ** 2))))
    return min(fits)[1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_a_limit_or_the_size_leaves_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = prostate()
    wide = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    model = BestSubsetRidgeCV(time_limit=0.5, gap=0.0, cv="loo").fit(wide, y)
    some = np.isfinite(model.mse_path_).all(axis=2).ravel()
    assert model.mse_path_.shape == (len(model.gammas_), len(model.taus_), 97) and some.any()
    assert (np.isnan(model.cv_results_["split0_test_score"]) == np.isnan(model.mse_path_[..., 0].ravel())).all()
    assert np.isfinite(model.coef_path_).all() and (model.coef_path_ != 0).sum(axis=0).max() <= model.taus_[-1]
    monkeypatch.setattr(kept, "MOST_KEPT", 96 * 8)
    model = BestSubsetRidgeCV(**QUICK).fit(X, y)
    assert "split0_test_score" not in model.cv_results_ and not hasattr(model, "coef_path_")
    with pytest.raises(AttributeError, match="only record_ is stored"):
        _ = model.mse_path_


def test_warnings_name_only_what_the_estimators_have() -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = X.a + 0.1 * rng.normal(size=60)
    counts = pd.Series(rng.poisson(np.exp(0.5 * X.a)), name="n")
    coded, copies = X.assign(b=X.b.where(X.index > 3, -999.0)), [0, *range(20)] * 3
    days = X.assign(days=rng.uniform(1.0, 9.0, 60))
    cases: list[tuple[Any, Any, Any, str]] = [
        (BestSubsetRidgeCV(cv=3), coded, y, "missing_values=-999"),
        (BestSubsetRidge(2), coded, y, "missing_values=-999"),
        (BestSubsetRidgeCV(cv=3), X.assign(id=rng.permutation(60) + 1), y, "force_out='id'"),
        (BestSubsetRidgeCV(cv=3), X.assign(subject=np.arange(60) // 3), y, "GroupKFold.*force_out='subject'"),
        (BestSubsetRidgeCV(cv=3), X.iloc[copies], y.iloc[copies], "GroupKFold"),
        (BestSubsetRidgeCV(cv=3, taus=1), X.assign(b=X.a), y, "duplicate"),
        (BestSubsetPoissonCV(cv=3), days, counts, "`exposure` in fit, and force_out='days'"),
        (BestSubsetLogisticCV(cv=3), X, y > 0.0, "try gammas="),
    ]
    for model, frame, target, remedy in cases:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(frame, target)
        said = "\n".join(str(warning.message) for warning in caught)
        named = {a or b for a, b in re.findall(r"(?<![\w.(])(\w+)=|`(\w+)`", said)}
        known = {*model.get_params(), *inspect.signature(model.fit).parameters, "missing_values"}
        assert re.search(remedy, said) and named <= known and "--" not in said, said


def test_a_pair_on_the_edge_of_the_grid_is_a_warning() -> None:
    # a search that a limit left behind may be compiling still, and numba's `warnings.catch_warnings`, which is of the
    # whole process, then takes the warnings of this thread
    for thread in threading.enumerate():
        if thread.name == "sparsecv work":
            thread.join()
    X, y = prostate()
    with pytest.warns(
        GridEdgeWarning, match=r"^BestSubsetRidgeCV: the best gamma is the smallest of the grid; try gammas='0.1:"
    ):
        BestSubsetRidgeCV(gammas=[1.0, 10.0]).fit(X, y)
    with pytest.warns(UserWarning, match=r"the best tau is the largest of the grid; try taus='1:6'$"):
        BestSubsetRidgeCV(gammas=[1e-4, 0.01, 1.0], taus=[1, 2, 3]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BestSubsetRidgeCV(gammas=[1e-4, 0.01, 1.0]).fit(X, y)
    with pytest.warns(GridEdgeWarning) as caught:  # equal texts of two fits, which Python shows once
        for gammas, taus in (([1.0, 10.0], range(1, 9)), ([1.0, 10.0], [1, 2])):
            BestSubsetRidgeCV(gammas=gammas, taus=taus).fit(X, y)
    assert len({str(warning.message) for warning in caught}) == 2 < len(caught)
    counts = np.random.default_rng(2).negative_binomial(1, 0.05, size=len(y))
    with pytest.warns(SparseCVWarning, match="^BestSubsetPoissonCV: Pearson .*the counts are overdispersed"):
        sc.BestSubsetPoissonCV(gammas=0.1, taus=2, cv=3).fit(X, counts)


DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


def test_every_pair_has_its_entry() -> None:
    record = sc.solve(DATA, gammas=[0.01, 1.0], taus=range(1, 9))
    found = cv_results(record)
    assert {len(column) for column in found.values()} == {16}
    best = int(np.argmin(found["rank_test_score"]))
    assert found["params"][best] == {"tau": record.tau, "gamma": record.gamma}
    assert found["mean_test_score"][best] == -record.cv_error and found["rank_test_score"][best] == 1
    errors, sizes = record.chosen_folds.error, make_folds("10", DATA).sizes
    assert found["standard_error"][best] == pytest.approx(standard_error(errors, sizes), rel=1e-12)
    for place, row in enumerate(record.table):
        assert (found["lower"][place], found["upper"][place]) == (row.lower, row.upper)
        assert found["decided"][place] == (row.folds_decided == row.folds) and found["status"][place] == row.status


def test_intervals_are_those_of_the_record() -> None:
    X, y = prostate()
    model = BestSubsetRidgeCV(gammas=[0.01, 0.1, 1.0]).fit(X, y)
    ours = model.predict_interval(X, 0.8)
    assert ours == pytest.approx(model.record_.predict_interval(DATA, 0.8, DATA), rel=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_interval(X, 0.8) == ours).all() and model.predict_interval(X).shape == (97, 2)
    assert (model.predict_interval(csr_array(X.to_numpy()), 0.8) == ours).all()
    model.set_params(gammas=[1.0]).fit(X, y)
    assert (model.predict_interval(X, 0.8) != ours).any()
    for refused, keywords in (({"model": "average"}, {}), ({}, {"sample_weight": np.ones(97)}), ({"cv": "2x3"}, {})):
        other = BestSubsetRidgeCV(**QUICK | refused).fit(X, y, **keywords)
        with pytest.raises(BadInput, match="^interval: [^\n]*$"):
            other.predict_interval(X)
    assert not hasattr(BestSubsetRidgeCV(refit=False), "predict_interval")


def test_scalars_of_numpy_and_one_weight_for_all_rows() -> None:
    X, y = prostate()
    plain = BestSubsetRidgeCV(gammas=[0.01, 0.1], cv=5, one_se=True, time_limit=60.0).fit(X, y)
    given = BestSubsetRidgeCV(
        gammas=np.array([0.01, 0.1]), cv=np.int64(5), one_se=np.True_, time_limit=np.float32(60.0),
        fit_intercept=np.True_, gap=np.float64(1e-4), n_jobs=np.int64(1), scale=np.str_("length"),
    ).fit(X, y, sample_weight=1.0)  # fmt: skip
    assert np.array_equal(given.coef_, plain.coef_) and given.record_.one_se == plain.record_.one_se
    twice = BestSubsetRidge(3).fit(X, y, sample_weight=2)
    assert np.array_equal(twice.coef_, BestSubsetRidge(3).fit(X, y, sample_weight=np.full(len(y), 2.0)).coef_)
    with pytest.raises(BadInput, match="^sample_weight is -1 in row 1"):
        BestSubsetRidge(3).fit(X, y, sample_weight=-1.0)


def test_a_nested_weight_needs_more_groups_than_outer_folds() -> None:
    X, y = prostate()
    groups = np.arange(len(y)) % 20
    said = "^stability nested: the rows form 5 groups \\(each stays in one fold\\); the 5 outer folds need"
    with pytest.raises(BadInput, match=said):
        BestSubsetRidgeCV(gammas=[0.1], taus=[1, 2], cv=GroupKFold(5), stability="nested").fit(X, y, groups=groups)
