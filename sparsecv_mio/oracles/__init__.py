"""GLRU, IACV and TreeCV: published methods that predict held-out rows with few fits.

These methods are called *oracles*. The rest of the package does not import this folder
(:mod:`sparsecv_mio.satellites`).
"""

from sparsecv_mio.words import Intercept, Scale

COMMANDS = {
    "iacv": "commands",
    "treecv": "commands",
    "glru": "commands",
}
WARM_UP = "commands:compile_kernels"

LEARNERS = ("pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb")  # learners of TreeCV
CLASSIFIERS = ("pegasos", "naive-bayes", "bernoulli-nb")  # learners for two classes
SOLVERS = ("gd", "sgd", "proxgd")  # solvers whose iterations IACV follows
RAW_UNITS = {"scale": Scale.NONE, "intercept": Intercept.NONE}  # default options: columns unchanged
