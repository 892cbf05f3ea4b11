"""The diabetes data and its best supports by enumeration, for the tests of several commands."""

from __future__ import annotations

import itertools

import numpy as np
from repository import INSTANCES

from sparsecv_mio.formulation.backends import BACKENDS, get_backend

DIABETES = str(INSTANCES / "diabetes.csv")
USABLE = [name for name in BACKENDS if get_backend(name).available().usable]


def table(path: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    with open(path) as stream:
        names = stream.readline().strip().split(",")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return names[:-1], rows[:, :-1], rows[:, -1]


def best_by_hand(tau: int, gamma: float) -> tuple[float, tuple[str, ...]]:
    """The definition: scale by the centred length, then every support."""
    names, X, y = table(DIABETES)
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = y - y.mean()
    found = []
    for support in itertools.combinations(range(len(names)), tau):
        V = X[:, support]
        beta = np.linalg.solve(V.T @ V + gamma / 2 * np.eye(tau), V.T @ y)
        value = float(np.sum((y - V @ beta) ** 2) + gamma / 2 * np.sum(beta**2))
        found.append((value, tuple(names[j] for j in support)))
    return min(found)
