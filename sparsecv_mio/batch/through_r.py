"""glmnet through R, where both are installed: the lasso by cross-validation on the folds of the task."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BackendFailed, BackendUnavailable

ABSENT = 3  # exit code of the script where R has no glmnet
SCRIPT = """
place <- commandArgs(trailingOnly = TRUE)[1]
if (!suppressWarnings(requireNamespace("glmnet", quietly = TRUE))) quit(status = 3)
read <- function(name) unname(as.matrix(read.csv(file.path(place, name), header = FALSE)))
X <- read("X.csv"); y <- read("y.csv")[, 1]; fold <- read("folds.csv")[, 1]
fit <- function() glmnet::cv.glmnet(X, y, foldid = fold, standardize = FALSE)
few <- seq_len(min(30, nrow(X)))
try(glmnet::glmnet(X[few, , drop = FALSE], y[few]), silent = TRUE)
times <- system.time(model <- fit())
out <- c(times[["elapsed"]], times[["user.self"]] + times[["sys.self"]], model$lambda.min, min(model$cvm),
         as.numeric(coef(model, s = "lambda.min")))
writeLines(formatC(out, digits = 17, format = "g", width = 1), file.path(place, "out.txt"))
"""


def check_available() -> str:
    """Return the path of `Rscript`.

    Raises
    ------
    BackendUnavailable
        It is not on the path; whether R has glmnet turns out when it runs.
    """
    found = shutil.which("Rscript")
    if found is None:
        raise BackendUnavailable("glmnet needs R with the package glmnet: Rscript is not on the path")
    return found


class GlmnetCV:
    """The lasso of glmnet, lambda of the least CV error.

    Parameters
    ----------
    labels : (n,) int array
        Fold of every row, from 0 on.

    Attributes
    ----------
    coef_ : (p,) array
    intercept_ : float
    seconds_, cpu_seconds_ : float
        Of `cv.glmnet` alone, by R, after a first call that loads it.
    alpha_, cv_error_ : float
        The lambda that was chosen, and its CV error.
    """

    def __init__(self, labels: IntArray) -> None:
        self.labels = labels

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose lambda by the folds and fit all rows.

        Raises
        ------
        BackendUnavailable
            R, or its package, is not installed.
        BackendFailed
            R stopped; the message is its last line.
        """
        program = check_available()
        with TemporaryDirectory() as folder:
            place = Path(folder)
            for name, values, form in (("X", X, "%.17g"), ("y", y, "%.17g"), ("folds", self.labels + 1, "%d")):
                np.savetxt(place / f"{name}.csv", values, delimiter=",", fmt=form)
            (place / "fit.R").write_text(SCRIPT, encoding="utf-8")
            done = subprocess.run(
                [program, "--vanilla", str(place / "fit.R"), folder], capture_output=True, text=True, check=False
            )
            if done.returncode == ABSENT:
                raise BackendUnavailable("glmnet is not installed in R: install.packages('glmnet')")
            if done.returncode or not (place / "out.txt").exists():
                raise BackendFailed(f"R stopped: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
            numbers = np.loadtxt(place / "out.txt")
        self.seconds_, self.cpu_seconds_, self.alpha_, self.cv_error_, self.intercept_ = numbers[:5].tolist()
        self.coef_ = numbers[5:]
        return self
