"""Whether the claims of a proof of a small, harmless problem are true, by trying all supports: the definition alone."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from glm_referee import Referee
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
RTOL = 1e-7


def how_of(head: dict[str, Any]) -> tuple[Any, ...]:
    """Scale, intercept and loss that a proof is about; columns of each term, and those that are adjusted for."""
    columns, adjust, version = head["columns"], tuple[int, ...](), head["format"][-2:]
    loss = {"/1": "squared", "/2": head.get("loss"), "/3": "squared"}.get(version, "none")
    terms = tuple((j,) for j in columns)
    if version == "/3":
        adjust = tuple(head.get("adjust", ()))
        places = head.get("terms", [[j] for j in range(len(columns))])
        terms = tuple(tuple(columns[j] for j in some) for some in places)
    within = head.get("within") if version == "/3" else None
    return (
        head["scale"],
        head["intercept"],
        loss,
        terms,
        adjust,
        None if within is None else (within["na"], within["scale"]),
    )


class Truth:
    """All supports of one data set, each fitted once for each set of training rows."""

    def __init__(self, X: FloatArray, y: FloatArray, data: dict[str, Any] | None = None) -> None:
        self.X, self.y, self.data = X, y, data  # `data`: what a proof says of them
        self.varying = np.flatnonzero(np.nanmax(X, axis=0) > np.nanmin(X, axis=0)).tolist()
        self.spread = float(((y - y.mean()) ** 2).sum())
        self._fits = cache(self._fit)

    def _fit(self, gamma: float, tau: int, left: tuple[int, ...], scored: tuple[int, ...], how: tuple[Any, ...]) -> Any:
        X, y, everyone = self.X, self.y, np.arange(len(self.y))
        rows = np.setdiff1d(everyone, left)
        if how[2] != "squared":
            return self._logistic(gamma, tau, rows, scored, how)
        squares = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
        scale = {"length": squares, "variance": squares / len(y), "none": np.ones(X.shape[1])}[how[0]]
        if how[5] is None and np.isnan(X).any():
            raise ValueError("empty cells")
        if how[5] is not None:
            X, measured = self._seen(rows, how)
            scale = scale if how[0] == "none" else measured
        about = {"fold": rows, "global": everyone}.get(how[1])
        center, middle = (0.0, 0.0) if about is None else (X[about].mean(axis=0), y[about].mean())
        Z, r, test, held = X[rows] - center, y[rows] - middle, X[list(scored)] - center, y[list(scored)] - middle
        beside, terms = list(how[4]), how[3]
        if beside:
            share = np.linalg.lstsq(Z[:, beside], np.column_stack([Z, r]), rcond=None)[0]
            test, held = test - test[:, beside] @ share[:, :-1], held - test[:, beside] @ share[:, -1]
            Z, r = Z - Z[:, beside] @ share[:, :-1], r - Z[:, beside] @ share[:, -1]
        values, errors = [], []
        for support in combinations(terms, min(tau, len(terms))):
            at = [j for term in support for j in term]
            beta = np.linalg.solve(Z[:, at].T @ Z[:, at] + np.diag(gamma / 2.0 * scale[at]), Z[:, at].T @ r)
            rest = r - Z[:, at] @ beta
            values.append(float(rest @ rest + gamma / 2.0 * (scale[at] * beta) @ beta))
            errors.append(float(((held - test[:, at] @ beta) ** 2).sum()))
        return np.array(values), np.array(errors)

    def _seen(self, rows: NDArray[np.int64], how: tuple[Any, ...]) -> tuple[FloatArray, FloatArray]:
        """Rows as training rows fill their empty cells, and scales of columns as these or all rows measure them."""
        (na, own), everyone = how[5], np.arange(len(self.y))

        def filled(some: NDArray[np.int64]) -> FloatArray:
            fill = np.nanmedian(self.X[some], axis=0) if na == "median" else np.nanmean(self.X[some], axis=0)
            return np.where(np.isnan(self.X), fill, self.X)

        def scales(X: FloatArray) -> FloatArray:
            return np.asarray(((X - X.mean(axis=0)) ** 2).sum(axis=0) / (len(X) if how[0] == "variance" else 1))

        X, every = filled(rows), scales(filled(everyone))
        mine = scales(X[rows])
        return X, np.where(np.ptp(X[rows], axis=0) > 0.0, mine, every) if own else every

    def _logistic(
        self, gamma: float, tau: int, rows: NDArray[np.int64], scored: tuple[int, ...], how: tuple[str, ...]
    ) -> Any:
        free, sign, one = how[1] == "fold", np.where(self.y > 0, 1.0, -1.0), np.ones(len(self.y))
        if how[2] != "logistic" or how[1] == "global" or not set(self.y.tolist()) <= {0.0, 1.0}:
            raise ValueError("of no such loss")
        if free and len(set(sign[rows].tolist())) < 2:
            raise ValueError("one class")
        fits = Referee("logistic", self.X, sign, one, one, how[0], free).fits(rows, gamma, tau)
        return fits.value.astype(float), fits.losses[:, list(scored)].sum(axis=1).astype(float)

    def false_statement(self, lines: list[dict[str, Any]]) -> str | None:
        """Return what is false in a proof, whoever may believe it: a claim, a tree, or what the argument lacks.

        Parameters
        ----------
        lines : list of dict
            The head and all that follows, without the end.
        """
        try:
            return self._false_tree(lines) or self._incomplete(lines) or self.false_claim(lines)
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return f"it says nothing: {type(error).__name__} {error}"

    def _false_tree(self, lines: list[dict[str, Any]]) -> str | None:
        """A tree whose leaves are not those of its splits, or that has overlooked a support below its threshold."""
        head, how = lines[0], how_of(lines[0])
        q = len(how[3])
        for place, line in enumerate(lines):
            if line.get("kind") != "tree":
                continue
            depth = 1
            for i, node in enumerate(line["nodes"]):
                depth += 1 if node >= 0 else -1
                if depth == 0 and i + 1 < len(line["nodes"]):
                    return f"line {place}: goes on after its last leaf"
            first, last = line["taus"]
            if depth or not 0 <= first <= last <= q or len(line["above"]) != last - first + 1:
                return f"line {place}: a tree without its last leaf, or of sizes that are none"
            left = () if line["rows"] == -1 else tuple(head["left"][line["rows"]])
            for tau, above in zip(range(first, last + 1), line["above"], strict=True):
                values, _ = self._fits(head["gammas"][line["gamma"]], tau, left, (), how)
                listed = {tuple(found) for found in line["listed"]}
                supports = combinations(range(q), tau)
                others = [value for value, s in zip(values, supports, strict=True) if s not in listed]
                if above > min(others, default=np.inf) * (1.0 + RTOL) + 1e-12 * self.spread:
                    return f"line {place}: a support of size {tau} is below the threshold"
        return None

    def _incomplete(self, lines: list[dict[str, Any]]) -> str | None:
        """A pair without its line, no claim, or lines of other data."""
        head = lines[0]
        adjust = how_of(head)[4]
        every = sorted([*head["columns"], *adjust])
        if every != (sorted({*every} & {*self.varying}) if head["format"][-1] == "3" else self.varying):
            return "of other columns"
        if [head["data"]["n"], head["data"]["p"]] != list(self.X.shape):
            return "of other data"
        if sorted(j for term in how_of(head)[3] for j in term) != head["columns"] or not all(how_of(head)[3]):
            return "a column is in no term, or in two"
        if self.data is not None and head["data"] != self.data:
            return "of other data"
        word = "pair" if "left" in head else "best"
        said = {(line["gamma"], line["tau"]) for line in lines if line.get("kind") == word}
        if len(said) < len(head["gammas"]) * len(head["taus"]):
            return "a pair has no line"
        claims = sum(line.get("kind") == "claim" for line in lines)
        return None if claims == ("left" in head) else f"{claims} claims"

    def false_claim(self, lines: list[dict[str, Any]]) -> str | None:
        """Return a claim that is false beyond rounding, or None."""
        head, how = lines[0], how_of(lines[0])
        left = [tuple(rows) for rows in head.get("left", [])]
        scored = left if head.get("scored") is None else [tuple(rows) for rows in head["scored"]]
        total = sum(map(len, scored))

        def h(g: int, t: int) -> tuple[float, float]:
            """CV error at the best supports; those that rounding may call best give two ends."""
            ends = []
            for out, rows in zip(left, scored, strict=True):
                values, errors = self._fits(head["gammas"][g], head["taus"][t], out, rows, how)
                near = errors[values <= values.min() * (1.0 + 1e-9) + 1e-13 * self.spread]
                ends.append((near.min(), near.max()))
            return sum(low for low, _ in ends) / total, sum(high for _, high in ends) / total

        def wrong(line: dict[str, Any], low: float, high: float, size: float) -> bool:
            above = line.get("upper") is not None and line["upper"] < high - RTOL * size
            return bool(line["lower"] > low + RTOL * size or above)

        for line in lines[1:]:
            if line["kind"] == "best":
                values, _ = self._fits(head["gammas"][line["gamma"]], head["taus"][line["tau"]], (), (), how)
                if wrong(line, values.min(), values.min(), values.min() + 1e-6 * self.spread):
                    return f"{line}: {values.min()!r}"
            elif line["kind"] == "pair":
                low, high = h(line["gamma"], line["tau"])
                if wrong(line, high, low, high):
                    return f"{line}: {low!r}, {high!r}"
            elif line["kind"] == "claim":
                grid = [h(g, t) for g in range(len(head["gammas"])) for t in range(len(head["taus"]))]
                least, own = min(high for _, high in grid), h(line["gamma"], line["tau"])[0]
                if wrong(line, least, own, max(least, own)):
                    return f"{line}: {least!r}, {own!r}"
        return None
