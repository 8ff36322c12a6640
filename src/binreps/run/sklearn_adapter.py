"""Replicates as a scikit-learn classifier; the extra `sklearn`, which `import binreps` never loads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.counts import CountTable
from binreps.covariates import CovariateTable
from binreps.decide.loss import Loss, Predictor, one_of
from binreps.errors import DataError, OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.covariates import fit_covariates
from binreps.fits.sources import fit_sources
from binreps.model import Float
from binreps.options import check_whole
from binreps.readings import Readings

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError:
    advice = "pip install 'binreps[sklearn]'"
    raise ImportError(f"ReplicateClassifier needs scikit-learn, which is not installed: {advice}") from None


class ReplicateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Positive or negative from (n, s), with or without labels, for pipelines and cross-validation.

    X has two columns: replicates n, and how many of them are positive, s; with `covariates=True` more follow,
    of numbers or text, which the prevalence may depend on. The classifier is unsupervised:
    labels given to `fit` are ignored, so that scikit-learn may pass on the truth that judges. With
    `use_known=True` they train instead; whoever trains must not be judged by the same labels.

    Every row that is predicted counts as a *new* individual. For those the fit has seen, ask the fit itself:
    `classifier.fit_.score(n, s)`.

    Parameters
    ----------
    method : callable
        From a `CountTable` to a fit: `fit_map`, or `functools.partial(fit_bayes, prior=…)`. With covariates,
        from a `CovariateTable`: then `fit_covariates` takes the place of `fit_bayes`.
    loss : Loss, optional
        The costs that `predict` decides by. Default `Loss()`.
    inconclusive : float
        What `predict` returns where neither answer is safe (or no probability is to be had). With 0.5 the
        answers are those of `Loss.cost`; with 0 or 1 every answer is one of the two classes.
    use_known : bool
        Whether the labels given to `fit`, 0, 1 or missing (None, NaN or −1), inform it.
    covariates : bool
        Whether columns of X after the first two are covariates, by the names of a dataframe's columns.

    Attributes
    ----------
    fit_ : Fit
        The fit, with rates, summary, intervals.
    classes_ : ndarray
        0 and 1.

    Examples
    --------
    >>> X = np.repeat([[4, 0], [4, 1], [4, 3], [4, 4]], [50, 20, 10, 20], axis=0)
    >>> classifier = ReplicateClassifier(loss=Loss(inconclusive=0.2)).fit(X)
    >>> classifier.predict_proba([[4, 0], [4, 2], [4, 4]]).round(3)
    array([[1. , 0. ],
           [0.6, 0.4],
           [0. , 1. ]])
    >>> classifier.predict([[4, 0], [4, 2], [4, 4]])
    array([ 0, -1,  1])
    """

    def __init__(
        self,
        *,
        method: Callable[[CountTable], Predictor] = fit_bayes,
        loss: Loss | None = None,
        inconclusive: float = -1,
        use_known: bool = False,
        covariates: bool = False,
    ) -> None:
        self.method: Any = method
        self.loss = loss
        self.inconclusive = inconclusive
        self.use_known = use_known
        self.covariates = covariates

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ReplicateClassifier:
        """Fit the rates.

        Parameters
        ----------
        X : array_like of whole numbers, shape (rows, 2)
            n and s; then covariates, if there are any.
        y : array_like, optional
            Ignored, unless `use_known`.
        sample_weight : array_like of whole numbers, optional
            How many individuals each row stands for.
        """
        n, s, more = _columns(X, self.covariates)
        if self.use_known and y is None:
            raise OptionError("use_known=True needs the labels y, got none")
        known = _known(y, n.size) if self.use_known and y is not None else None
        if self.covariates:
            method: Callable[..., Any] = fit_covariates if self.method is fit_bayes else self.method
            self.fit_: Any = method(CovariateTable(n, s, more, sample_weight, known))
        else:
            self.fit_ = self.method(CountTable(n, s, sample_weight, known))
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 2 + len(more)
        return self

    def predict_proba(self, X: ArrayLike) -> Float:
        """The probabilities of being negative and positive, one row per new individual."""
        check_is_fitted(self)
        n, s, more = _columns(X, self.covariates)
        asked = {"covariates": more} if self.covariates else {}
        positive = np.asarray(self.fit_.predict(n, s, **asked), dtype=float)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """0, 1 or the inconclusive value: the cheapest answer for each new individual."""
        answers = (self.loss or Loss()).classify(self.predict_proba(X)[:, 1])
        values = np.array([0, self.inconclusive, 1])
        return np.asarray(values[np.where(np.isnan(answers), 1, 2 * answers).astype(int)])


class SourceClassifier(ReplicateClassifier):
    """Positive or negative from what each source said, with or without labels.

    X has one column per source: 0, 1, or NaN where it said nothing; then covariates, if there are any. All
    else is as in `ReplicateClassifier`.

    Parameters
    ----------
    method : callable, optional
        From `Readings` to a fit; `fit_sources` with the seed 1 if not given.
    independent : bool
        Whether readings of one individual are independent given its status, if no method is given.
    covariates : int
        How many columns of X, the last ones, are covariates that the prevalence may depend on; a population
        is one of them.
    loss, inconclusive, use_known
        As in `ReplicateClassifier`.

    Examples
    --------
    >>> X = np.repeat([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], [30, 20, 20, 30], axis=0)
    >>> SourceClassifier().fit(X).predict([[1, 1, np.nan], [0, np.nan, 0]])
    array([1, 0])
    """

    def __init__(
        self,
        *,
        method: Callable[[Readings], Any] | None = None,
        independent: bool = False,
        loss: Loss | None = None,
        inconclusive: float = -1,
        use_known: bool = False,
        covariates: int = 0,
    ) -> None:
        self.method: Any = method
        self.independent = independent
        self.loss = loss
        self.inconclusive = inconclusive
        self.use_known = use_known
        self.covariates: Any = covariates

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SourceClassifier:
        """Fit the rates of each column."""
        said, more = self._parts(X)
        if self.use_known and y is None:
            raise OptionError("use_known=True needs the labels y, got none")
        known = _known(y, len(said)) if self.use_known and y is not None else None
        readings = Readings.wide(said, weight=sample_weight, known=known).with_covariates(more)
        self.fit_ = (self.method or partial(fit_sources, rng=1, independent=self.independent))(readings)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = said.shape[1] + len(more)
        return self

    def _parts(self, X: Any) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        """What each source said, and the covariates by name."""
        check_whole("covariates", self.covariates, 0, 10**6)
        array, first = np.asarray(X), np.ndim(X) == 2 and np.shape(X)[1] - self.covariates
        if not first or first < 1:
            rule = f"X must have a column for each source, then {self.covariates} of covariates"
            raise DataError(f"{rule}, got shape {array.shape}")
        names = [str(name) for name in getattr(X, "columns", range(array.shape[1]))]
        more = {names[i]: _plain(array[:, i]) for i in range(int(first), array.shape[1])}
        return _plain(array[:, :first]), more

    def predict_proba(self, X: ArrayLike) -> Float:
        """The probabilities of being negative and positive, one row per new individual."""
        check_is_fitted(self)
        said, more = self._parts(X)
        if said.shape[1] + len(more) != self.n_features_in_:
            rule = f"X must have {self.n_features_in_} columns as in the fit"
            raise DataError(f"{rule}, got {said.shape[1] + len(more)}")
        asked = {"covariates": more} if more else {}
        positive = self.fit_.predict(Readings.wide(said), **asked)
        return np.column_stack([1 - positive, positive])


def _columns(X: Any, covariates: bool) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
    """n and s, the first two columns, and the others by name; tables and `.predict` check their values."""
    names = [str(name) for name in getattr(X, "columns", ())]
    array = np.asarray(X)
    if array.ndim != 2 or (array.shape[1] < 2 if covariates else array.shape[1] != 2):
        rule = "n, s and covariates" if covariates else "two columns, n and s"
        raise DataError(f"X must have {rule}, got shape {array.shape}")
    names = names or [f"x{i}" for i in range(array.shape[1])]
    more = {name: _plain(array[:, i]) for i, name in enumerate(names) if i >= 2}
    return _plain(array[:, 0]), _plain(array[:, 1]), more


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """A column of objects as numbers, if all of it is: an array with a column of text holds objects."""
    if column.dtype != object:
        return column
    try:
        return column.astype(float)
    except (TypeError, ValueError):
        return column


def _known(y: ArrayLike, size: int) -> Float:
    """Labels as known statuses: 0, 1, and NaN for what is missing."""
    labels = one_of("y", y, (-1, 0, 1))
    if labels.shape != (size,):
        raise DataError(f"y must have one label per row of X ({size}), got shape {labels.shape}")
    return np.where(labels == -1, np.nan, labels)
