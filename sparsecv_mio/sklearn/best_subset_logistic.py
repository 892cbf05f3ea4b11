"""`BestSubsetLogistic` for given sizes, and `BestSubsetLogisticCV`, which chooses by certified cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows, with_class_weight
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn.sparse_model import (
    ChosenByLoss,
    OfOneGamma,
    SparseEstimator,
    has_model,
    settings,
    warn_of_edges,
    warn_unproved,
    with_callbacks,
)
from sparsecv_mio.words import ClassWeight, Loss

SCORING = "neg_log_loss"  # what is certified


class FittedClasses:
    """What the fit of a classifier makes besides: the labels."""

    classes_: NDArray[Any]


@settings
class SparseClassifier(FittedClasses, ClassifierMixin, SparseEstimator):
    """A linear model of the log odds of two classes, once `fit` has set `coef_`, `intercept_` and `classes_`."""

    class_weight: str | Mapping[Any, float] | None = None

    _y_is_numeric = False

    @available_if(has_model)
    def decision_function(self, X: Any) -> FloatArray:
        """Return the log odds of the second class.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n,) array
        """
        rows = self._rows(X)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    @available_if(has_model)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n, 2) array
            In the order of `classes_`.
        """
        odds = self.decision_function(X)
        return np.column_stack([probabilities(-odds), probabilities(odds)])

    @available_if(has_model)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities of both classes.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n, 2) array
            In the order of `classes_`.
        """
        odds = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)])

    @available_if(has_model)
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likelier class.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n,) array
            Of the labels in `classes_`.
        """
        odds = self.decision_function(X)
        return np.asarray(self.classes_[(odds > 0.0).astype(int)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose likelier class is theirs.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.
        y : (n,) array_like
            Labels.
        sample_weight : (n,) array_like, optional
            1 by default.

        Returns
        -------
        float
        """
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of a classifier: it is of two classes."""
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """Say the same to scikit-learn before 1.6."""
        return {"binary_only": True}

    def _numbers_of(self, y: Any) -> FloatArray:
        """Return labels of two classes as 0 and 1."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            kind = type_of_target(y, input_name="y")
            raise BadInput(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) < 2:
            raise BadInput(f"y holds one class alone, {self.classes_[0]!r}: give rows of two")
        return codes.astype(np.float64)

    def _of_classes(self, X: Any, y: Any, groups: Any = None) -> Dataset:
        """Check X and y, and copy them; y as 0 and 1, the classes weighed where they are to be balanced."""
        data = replace(self._dataset(X, y, groups), classes=(str(self.classes_[0]), str(self.classes_[1])))
        return with_class_weight(data, ClassWeight.BALANCED) if self._balanced else data

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == ClassWeight.BALANCED

    def _weights(self, data: Dataset, sample_weight: Any) -> Any:
        """Return the weights of the rows: those given, times those of their classes by name."""
        if self.class_weight is None or self._balanced:
            return sample_weight
        labels = self.classes_[data.y.astype(int)]
        weights = np.ones(data.n) if sample_weight is None else np.broadcast_to(np.asarray(sample_weight), (data.n,))
        return weights * compute_sample_weight(self.class_weight, labels)

    def _set_model(self, coefficients: FloatArray, intercept: float) -> None:
        """Set what predicts, in the shapes of scikit-learn's classifiers."""
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])


@settings
class BestSubsetLogistic(OfOneGamma, SparseClassifier):
    """Best-subset logistic regression of a given size: the best of all subsets of at most tau features, proved.

    Minimises `sum_i log(1 + exp(-y_i (a + x_i'b))) + (gamma / 2) ||b||^2` over all a and b with at most tau nonzeros,
    in scaled columns; gamma is `1 / C` of scikit-learn's `LogisticRegression`.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several are a path: the model is the largest, `coef_path_` has them all. By default 1 to
        p, of p > 30 to n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight, positive.
    class_weight : "balanced" or dict, optional
        How much rows of each class count; "balanced": as if there were as many of both.
    gap : float
        Relative gap at which a fit counts as proved.
    time_limit : float, optional
        Seconds; what is known by then is kept, with valid bounds. Without one every fit is proved.
    scale : {"length", "variance", "none"}
        In which units of the columns the penalty is measured: centred length 1, standard deviation 1, or as they are.
    fit_intercept : bool
        Whether there is an intercept, which is not penalised.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `tau`, and features in none; by name, or by position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, as for the intercept: in, not penalised, not counted in the size.
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    classes_ : (2,) array
        Labels of the classes; the probability of the second one is what is fitted.
    coef_ : (1, p) array
        Coefficients in the units of X.
    intercept_ : (1,) array
    support_ : (p,) bool array
        The features of the model.
    tau_ : int
        Most features that it may have.
    objective_ : float
        The least that was found.
    lower_, upper_ : float
        Certified bounds of the least objective at `tau_`.
    status_ : {"proved", "limit", "interrupted"}
        Of all sizes of the path together.
    taus_ : (T,) int array
        Sizes of the path.
    coef_path_ : (p, T) array
    intercept_path_ : (T,) array
    record_ : PathRecord
        All sizes with their bounds.
    n_features_in_, feature_names_in_ : int, array
        The columns of X.

    See Also
    --------
    BestSubsetLogisticCV : Chooses tau and gamma by cross-validation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 5))
    >>> y = np.where(2 * X[:, 1] - X[:, 3] + rng.logistic(size=80) > 0, "ill", "healthy")
    >>> model = BestSubsetLogistic(2, gamma=0.1).fit(X, y)
    >>> model.support_.nonzero()[0].tolist(), model.classes_.tolist(), model.status_
    ([1, 3], ['healthy', 'ill'], 'proved')
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetLogistic:
        """Find the best subset of every size that is asked for.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
            Labels of two classes.
        sample_weight : (n,) array_like, optional
            How much each row counts; 0 is as if it were not there.

        Returns
        -------
        BestSubsetLogistic
            This object.
        """
        data = self._of_classes(X, y)
        weights = self._weights(data, sample_weight)
        if weights is not None:
            data = weighted_rows(data, weights, "sample_weight")
        self._fit_sizes(data, loss=Loss.LOGISTIC)
        warn_unproved(self)
        return self


@settings
class BestSubsetLogisticCV(ChosenByLoss, SparseClassifier):
    """Best-subset logistic regression, its size tau and ridge weight gamma chosen by certified cross-validation.

    Every fold of every pair (tau, gamma) is fitted by the best of all subsets of tau features, as
    :class:`BestSubsetLogistic` fits it; the pair with the least mean log loss of held-out rows is refitted on all rows.
    With the defaults, `sparsecv solve --loss logistic` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try; by default 1 to p, of p > 30 to n_train / 8, but at least 10 and at
        most 50, and p (up to 300, below n_train).
    gammas : float, sequence of float or str, optional
        Ridge weights to try, `1 / C` of scikit-learn's `LogisticRegression`; by default from 0.3 to 30 over the
        rows of the smallest training set, logarithmic.
    n_gammas : int, optional
        How many, where `gammas` is None; by default 5.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan
        A number K: shuffled by a fixed seed, each class dealt evenly; a text as for `sparsecv solve --folds`; any
        splitter of scikit-learn or its splits, which may overlap; a label per row, or a column of labels per repeat.
    one_se : bool
        Fit the smallest model within one standard error of the best.
    class_weight : "balanced" or dict, optional
        How much rows of each class count, in every fit and in the log loss of held-out rows; "balanced": as if there
        were as many of both.
    scoring : {"neg_log_loss"}
        What is certified.
    stability : float or "nested", optional
        Fit the pair with the least `log loss + stability * instability`, where the instability is the largest change
        that leaving out a fold makes to the log losses of all rows; `"nested"`: with a weight that nested
        cross-validation chooses, which takes about six times as long. Not together with `one_se`.
    model : {"pair", "average"}
        What predicts: the best subset at the pair that is chosen, or the average of the near-best pairs put on the
        fewest features that keep it. The certificate is of the pair in either case; not together with `one_se` or
        `stability`.
    na : {"error", "mean", "median"}
        Treatment of empty values (NaN) in X: an error, or a fill by the mean or the median of the column. New rows
        are filled by the values of the fit.
    scale_within, na_within : {"all", "folds"}
        Rows that determine the scales of columns and the values that fill empty cells: all rows, or in each fold its
        training rows. With `"folds"`, neither depends on the held-out rows, as with `cross_val_predict`.
    gap : float
        Certified relative gap at which the choice counts as proved; 0 decides every pair.
    time_limit : float, optional
        Seconds for the search; what is known by then is kept, with valid bounds. Without one the choice is proved.
    n_jobs : int, optional
        Threads, as elsewhere in scikit-learn: None is 1, -1 all cores. The answer is the same.
    scale : {"length", "variance", "none"}
        In which units of the columns the penalty is measured: centred length 1, standard deviation 1, or as they are.
    fit_intercept : bool
        Whether every fit has an intercept, which is not penalised.
    refit : bool
        Keep the best subset on all rows as the model; False leaves the choice of tau and gamma and `cv_results_` alone,
        and nothing to predict by.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `taus`, and features in none; by name, or by position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, as for the intercept: in, not penalised, not counted in the size.
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    classes_ : (2,) array
        Labels of the classes; the probability of the second one is what is fitted.
    coef_ : (1, p) array
        Coefficients of the model that predicts, in the units of X; this and the next two with `refit` only.
    intercept_ : (1,) array
    support_ : (p,) bool array
        The features of that model.
    tau_, gamma_ : int, float
        The pair that was chosen; with `model="average"` the model that predicts is of no pair.
    C_ : float
        `1 / gamma_`.
    cv_error_ : float
        The mean log loss of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds of the least cross-validation error of all pairs. Where `one_se` or `stability` chose another
        pair they are of its own error, and those of the least one are `record_.least.lower` and `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
    best_score_ : float
        `-cv_error_`: scikit-learn's score, the larger the better.
    scores_ : (G, T) array
        `-log loss` of every pair, NaN where a limit left none; those of pairs that are not decided are estimates.
    taus_, gammas_ : (T,) int array, (G,) array
        The grid, ascending.
    cv_results_ : dict of arrays
        All pairs, as :func:`~sparsecv_mio.sklearn.sparse_model.cv_results` says.
    loss_path_ : (G, T, K) array
        Mean log loss of every fold at every pair; an estimate, or NaN, where the best subset of the fold is not known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, by the best subsets that the search knows on all rows; only that of `tau_` is
        proved (`BestSubsetLogistic(taus, gamma=gamma_)` proves all).
    record_ : Record
        Answer and certificate; `record_.write_record(file)` keeps it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        The columns of X.

    See Also
    --------
    BestSubsetLogistic : The same model where tau and gamma are given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = 2 * X[:, 1] - X[:, 3] + rng.logistic(size=80) > 0
    >>> model = BestSubsetLogisticCV(gammas=[0.01, 0.1], cv=5).fit(X, y)
    >>> model.status_, model.support_.nonzero()[0].tolist()
    ('proved', [1, 3])
    >>> bool(model.lower_ <= model.cv_error_ <= model.upper_)
    True
    """

    scoring: str = SCORING

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BestSubsetLogisticCV:
        """Choose tau and gamma, and fit the best subset on all rows.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
            Labels of two classes.
        sample_weight : (n,) array_like, optional
            How much each row counts, in every fit and in the loss of held-out rows; 0 is as if it were not there.
        groups : (n,) array_like, optional
            For a splitter that needs them.

        Returns
        -------
        BestSubsetLogisticCV
            This object.
        """
        if self.scoring != SCORING:
            raise BadInput(
                f"scoring: {self.scoring!r} is not certified, give {SCORING!r}; accuracy, AUC and Brier score of the "
                "chosen pair are in record_.classes"
            )
        data = self._of_classes(X, y, groups)
        data, plan = self._dealt(data, self._weights(data, sample_weight))
        self._search_over(data, plan, loss=Loss.LOGISTIC)
        self.C_ = 1.0 / self.gamma_
        warn_unproved(self)
        warn_of_edges(self)
        return self
