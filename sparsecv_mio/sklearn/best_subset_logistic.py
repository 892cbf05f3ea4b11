"""`BestSubsetLogistic` for given sizes, and `BestSubsetLogisticCV`, which chooses tau and gamma by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import row_weights, with_class_weight
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import sparse_model
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import ClassWeight

SCORING = "neg_log_loss"  # the certified score


def _advise_one_spelling(labels: NDArray[Any]) -> str:
    """Return advice where labels are two classes in several spellings; empty otherwise.

    Examples
    --------
    >>> _advise_one_spelling(np.array(["Yes", "no", "yes "]))
    " 'Yes' and 'yes ' differ in case or blanks only; give y.str.strip().str.lower()"
    >>> _advise_one_spelling(np.array([0, 1, 2]))
    ''
    """
    texts = [label for label in labels.tolist() if isinstance(label, str)]
    spellings: dict[str, list[str]] = {}
    for text in texts:
        spellings.setdefault(text.strip().lower(), []).append(text)
    if len(texts) < len(labels) or len(spellings) > 2:
        return ""
    alike = next(spellings_of_class for spellings_of_class in spellings.values() if len(spellings_of_class) > 1)
    return f" {' and '.join(map(repr, alike))} differ in case or blanks only; give y.str.strip().str.lower()"


class FittedClasses:
    """Attributes of a fitted classifier: the labels of the classes."""

    classes_: NDArray[Any]


@sparse_model.settings
class SparseClassifier(FittedClasses, ClassifierMixin, sparse_model.SparseEstimator):
    """A linear model of the log odds of two classes; `fit` sets `coef_`, `intercept_` and `classes_`."""

    class_weight: str | Mapping[Any, float] | None = None

    _y_is_numeric = False

    @available_if(sparse_model.has_model)
    def decision_function(self, X: Any, offset: Any = None) -> FloatArray:
        """Return the log odds of the second class.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        offset : (n,) array_like, optional
            Numbers that are added to the log odds; 0 by default.

        Returns
        -------
        (n,) array
            Log odds.
        """
        odds = self._linear_predictors(X)
        return np.asarray(odds + sparse_model.sum_offsets(len(odds), offset=offset))

    @available_if(sparse_model.has_model)
    def predict_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        offset : (n,) array_like, optional
            Numbers that are added to the log odds; 0 by default.

        Returns
        -------
        (n, 2) array
            In the order of `classes_`.
        """
        odds = self.decision_function(X, offset)
        return np.column_stack([probabilities(-odds), probabilities(odds)])

    @available_if(sparse_model.has_model)
    def predict_log_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Return the logarithms of the probabilities of both classes.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        offset : (n,) array_like, optional
            Numbers that are added to the log odds; 0 by default.

        Returns
        -------
        (n, 2) array
            In the order of `classes_`.
        """
        odds = self.decision_function(X, offset)
        return np.column_stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)])

    @available_if(sparse_model.has_model)
    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return the more likely class of each row.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        offset : (n,) array_like, optional
            Numbers that are added to the log odds; 0 by default.

        Returns
        -------
        (n,) array
            Labels from `classes_`.
        """
        odds = self.decision_function(X, offset)
        return np.asarray(self.classes_[(odds > 0.0).astype(int)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy: the weighted share of rows whose more likely class is correct.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        y : (n,) array_like
            Labels.
        sample_weight : (n,) array_like, optional
            Row weights; 1 by default.
        offset : (n,) array_like, optional
            Numbers that are added to the log odds; 0 by default. A model that was fitted with offsets needs offsets.

        Returns
        -------
        float
            Accuracy.
        """
        self._require_offsets(offset=offset)
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: the classifier is for two classes."""
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """Return the same for scikit-learn before 1.6."""
        return {"binary_only": True}

    def _encode_target(self, y: Any) -> FloatArray:
        """Return labels of two classes as 0 and 1."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            kind = type_of_target(y, input_name="y")
            words = f"Only binary classification is supported. The type of the target is {kind}."
            raise BadInput(words + _advise_one_spelling(self.classes_))
        if len(self.classes_) < 2:
            raise BadInput(f"y has only one class, {self.classes_.tolist()[0]!r}; give rows of two classes")
        return codes.astype(np.float64)

    def _make_class_dataset(self, X: Any, y: Any, offset: Any, groups: Any = None) -> Dataset:
        """Return checked copies of X, y and offsets, with y as 0 and 1 and balanced class weights if requested."""
        data = replace(self._dataset(X, y, groups), classes=(str(self.classes_[0]), str(self.classes_[1])))
        data = sparse_model.attach_offsets(data, offset=offset)
        return with_class_weight(data, ClassWeight.BALANCED) if self._has_balanced_weights else data

    @property
    def _has_balanced_weights(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == ClassWeight.BALANCED

    def _weights(self, data: Dataset, sample_weight: Any) -> Any:
        """Return the row weights: the given ones, times those of the classes; both classes must have some."""
        labels, weights = self.classes_[data.y.astype(int)], sample_weight
        if self.class_weight is not None and not self._has_balanced_weights:
            base_weights = (
                np.ones(data.n) if sample_weight is None else np.broadcast_to(np.asarray(sample_weight), (data.n,))
            )
            weights = base_weights * compute_sample_weight(self.class_weight, labels)
        if weights is not None:
            counted = np.unique(labels[row_weights(weights, data, "sample_weight") > 0.0]).tolist()
            if len(counted) < 2:
                raise BadInput(
                    f"y has only one class, {counted[0]!r}, among the rows of positive weight; give weight to rows of "
                    "two classes"
                )
        return weights

    def _set_model(self, coefficients: FloatArray, intercept: float) -> None:
        """Set the fitted attributes in the shapes of scikit-learn classifiers."""
        super()._set_model(coefficients[None, :], np.array([intercept]))


@sparse_model.settings
class BestSubsetLogistic(sparse_model.OfOneGamma, SparseClassifier):
    """Best-subset logistic regression of a given size, proved optimal among all subsets of at most tau features.

    Minimises `sum_i log(1 + exp(-y_i (a + x_i'b))) + (gamma / 2) ||b||^2` over all a and b with at most tau nonzeros,
    in scaled columns; gamma is `1 / C` of scikit-learn's `LogisticRegression`.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several numbers give a path: the model has the largest size, and `coef_path_` has all sizes.
        By default all sizes from 1 to p; if p > 30, the largest size is n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight, positive.
    class_weight : "balanced" or dict, optional
        Class weights; "balanced" gives both classes the same total weight.
    gap : float
        Relative gap at which a fit counts as proved.
    time_limit : float, optional
        Time limit in seconds; when it is reached, the best answer so far is kept, with valid bounds. Without a limit
        every fit is proved.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns: centred length 1, standard deviation 1, or the units of X.
    fit_intercept : bool
        True if the model has an unpenalised intercept.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `tau`, and features in no model; by name or position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, like the intercept: always included, not penalised, not counted in the
        size.
    count : {"factors", "columns"} or list of lists of columns, optional
        Columns that count as one feature and enter together: `"factors"` for columns with names such as `city=Oslo` and
        `city=Bergen`, or lists of columns. By default every column counts separately.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is at least, or at most, zero; `"all"` for every feature.
    coef_bounds : str or mapping, optional
        Bounds on coefficients in the units of X: `"a=0..1,b=..5"` or `{"a": (0, 1), "b": (None, 5)}`; `"all"` bounds
        every feature without bounds of its own.
    verbose : int
        Verbosity: with a positive number, progress is printed.

    Attributes
    ----------
    classes_ : (2,) array
        Labels of the classes; the model is for the probability of the second one.
    coef_ : (1, p) array
        Coefficients in the units of X.
    intercept_ : (1,) array
        Intercept of the model.
    support_ : (p,) bool array
        Mask of the features of the model.
    tau_ : int
        Maximum number of features of the model.
    objective_ : float
        Smallest objective found.
    lower_, upper_ : float
        Certified bounds on the minimum objective at `tau_`.
    status_ : {"proved", "limit", "interrupted"}
        Status of all sizes of the path together.
    taus_ : (T,) int array
        Sizes of the path.
    coef_path_ : (p, T) array
        Coefficients of all sizes.
    intercept_path_ : (T,) array
        Intercepts of all sizes.
    record_ : PathRecord
        Record of all sizes with their bounds.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

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

    @sparse_model.with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> BestSubsetLogistic:
        """Fit the best subset of every requested size.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Labels of two classes.
        sample_weight : (n,) array_like, optional
            Row weights; a row of weight 0 is ignored.
        offset : (n,) array_like, optional
            Numbers that are added to the linear predictor, with the fixed coefficient 1; 0 by default.

        Returns
        -------
        BestSubsetLogistic
            This object.
        """
        data = self._make_class_dataset(X, y, offset)
        self._fit_sizes(data, self._weights(data, sample_weight), loss=Loss.LOGISTIC)
        return self


@sparse_model.settings
class BestSubsetLogisticCV(sparse_model.ChosenByLoss, SparseClassifier):
    """Best-subset logistic regression whose size tau and ridge weight gamma are chosen by certified cross-validation.

    For every pair (tau, gamma), every fold is fitted with its best subset of tau features, as by
    :class:`BestSubsetLogistic`. The pair with the minimum mean log loss of held-out rows is refitted on all rows. With
    the defaults, `sparsecv solve --loss logistic` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try. By default all sizes from 1 to p. If p > 30, the largest size is n_train / 8, but at
        least 10 and at most 50. In addition, p is a size if it is at most 300 and below n_train.
    gammas : float, sequence of float or str, optional
        Ridge weights to try, `1 / C` of scikit-learn's `LogisticRegression`. The default is a logarithmic range from
        0.3 to 30, divided by the number of rows of the smallest training set.
    n_gammas : int, optional
        Number of ridge weights if `gammas` is None; the default is 5.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan, or None
        Folds: a number K of shuffled folds with a fixed seed, None for 5, stratified by class; a text as for
        `sparsecv solve --folds`; any scikit-learn splitter or its splits, which may overlap; a label for each row, or
        one column of labels for each repeat.
    one_se : bool
        True to fit the smallest model within one standard error of the best.
    class_weight : "balanced" or dict, optional
        Class weights in every fit and in the log loss of held-out rows; "balanced" gives both classes the same total
        weight.
    scoring : {"neg_log_loss"}
        Certified score.
    stability : float or "nested", optional
        Weight of the instability. The chosen pair minimises `log loss + stability * instability`; the instability is
        the largest change that holding out one fold makes to the log losses of all rows. With `"nested"`, nested
        cross-validation chooses the weight, which takes about six times as long. Cannot be combined with `one_se`.
    model : {"pair", "average"}
        Model that predicts: the best subset at the chosen pair, or a model with few features and nearly the same
        predictions as the average over near-optimal pairs. The certificate is about the pair in both cases. `"average"`
        cannot be combined with `one_se` or `stability`.
    na : {"error", "mean", "median"}
        Treatment of empty values (NaN) in X: an error, or a fill by the mean or the median of the column. New rows are
        filled by the values of the fit.
    scale_within, na_within : {"all", "folds"}
        Rows that determine the scales of columns and the values that fill empty cells: all rows, or in each fold its
        training rows. With `"folds"`, neither depends on the held-out rows, as with `cross_val_predict`.
    gap : float
        Certified relative gap at which the choice counts as proved; with 0 every pair is solved.
    time_limit : float, optional
        Time limit of the search in seconds; when it is reached, the best answer so far is kept, with valid bounds.
        Without a limit the choice is proved.
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1, -1 all cores. The answer does not depend on it.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns: centred length 1, standard deviation 1, or the units of X.
    fit_intercept : bool
        True if every fit has an unpenalised intercept.
    refit : bool
        True to keep the best subset on all rows as the model. With False only the choice of tau and gamma and
        `cv_results_` are available, and there is no `predict`.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `taus`, and features in no model; by name or position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, like the intercept: always included, not penalised, not counted in the
        size.
    count : {"factors", "columns"} or list of lists of columns, optional
        Columns that count as one feature and enter together: `"factors"` for columns with names such as `city=Oslo` and
        `city=Bergen`, or lists of columns. By default every column counts separately.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is at least, or at most, zero; `"all"` for every feature.
    coef_bounds : str or mapping, optional
        Bounds on coefficients in the units of X: `"a=0..1,b=..5"` or `{"a": (0, 1), "b": (None, 5)}`; `"all"` bounds
        every feature without bounds of its own.
    verbose : int
        Verbosity: with a positive number, progress is printed.

    Attributes
    ----------
    classes_ : (2,) array
        Labels of the classes; the model is for the probability of the second one.
    coef_ : (1, p) array
        Coefficients of the model that predicts, in the units of X; this and the next two attributes require `refit`.
    intercept_ : (1,) array
        Intercept of the model.
    support_ : (p,) bool array
        Mask of the features of that model.
    tau_, gamma_ : int, float
        Chosen pair; with `model="average"` the model that predicts does not belong to a pair.
    C_ : float
        Inverse ridge weight `1 / gamma_`.
    cv_error_ : float
        Mean log loss of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds on the minimum CV error over all pairs. If `one_se` or `stability` chose another pair, they are
        the bounds on the CV error of that pair; the bounds on the minimum are then `record_.least.lower` and
        `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Status of the certificate.
    best_score_ : float
        Score `-cv_error_` in the convention of scikit-learn: larger is better.
    scores_ : (G, T) array
        Score `-log loss` of every pair; NaN if a limit left none. Scores of pairs that are not solved are estimates.
    taus_, gammas_ : (T,) int array, (G,) array
        Grid of sizes and ridge weights, ascending.
    cv_results_ : dict of arrays
        Results of all pairs, described in :func:`~sparsecv_mio.sklearn.sparse_model.cv_results`.
    loss_path_ : (G, T, K) array
        Mean log loss of every fold at every pair; an estimate or NaN if the best subset of the fold is not known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, from the best subsets that the search knows for all rows; only the model of
        `tau_` is proved (`BestSubsetLogistic(taus, gamma=gamma_)` proves all).
    held_out_predictions_ : (m,) array
        Probability of the positive class for each row of the fit with a weight above 0, in the order of X. Each
        probability comes from the model of the chosen pair that was fitted without the fold of the row.
    record_ : Record
        Answer and certificate; `record_.write_record(file)` saves it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

    See Also
    --------
    BestSubsetLogistic : The same model with given tau and gamma.

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

    @sparse_model.with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, offset: Any = None
    ) -> BestSubsetLogisticCV:
        """Choose tau and gamma by cross-validation, and fit the best subset to all rows.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Labels of two classes.
        sample_weight : (n,) array_like, optional
            Row weights, used in every fit and in the error of held-out rows. Rows of weight 0 are dropped, before a
            splitter assigns the others to folds; splits or labels that are given as lists count all rows.
        groups : (n,) array_like, optional
            Groups of the rows, for a splitter that needs them.
        offset : (n,) array_like, optional
            Numbers that are added to the linear predictor, with the fixed coefficient 1; 0 by default.

        Returns
        -------
        BestSubsetLogisticCV
            This object.
        """
        if self.scoring != SCORING:
            raise BadInput(
                f"scoring: {self.scoring!r} is not certified; give {SCORING!r} (record_.classes has accuracy, AUC and "
                "Brier score of the chosen pair)"
            )
        data = self._make_class_dataset(X, y, offset, groups)
        data, plan = self._assign_folds(data, self._weights(data, sample_weight))
        self._search_grid(data, plan, loss=Loss.LOGISTIC)
        self.C_ = 1.0 / self.gamma_
        return self
