"""
Which solver should my group buy?
=================================

Best-subset regression is a mixed-integer optimisation (MIO) problem. Would a commercial solver save time? Compare
solvers on your own problems and your own machine, with the same model and the same gap, and check that the answers
agree. This page is such a comparison; replace the files by yours and run it again.
"""

# %%
# The available solvers
# ---------------------
# All solvers get the same mathematical model. The package refits the support that a solver returns, and checks its
# bound. For a solver that is not installed, or has no licence, the reason is printed. The licence inside Gurobi's
# wheel permits small problems such as these.
from pathlib import Path

import matplotlib.pyplot as plt

import sparsecv_mio as sc
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import BACKENDS, get_backend
from sparsecv_mio.formulation.outcome import Limits

usable = []
for name in BACKENDS:
    state = get_backend(name).available()
    print(f"{name:>7}: {'can be used' if state.usable else state.why}")
    if state.usable:
        usable.append(name)

# %%
# A sample of the work
# --------------------
# The sample has two files with 10 and 19 columns, two sizes for each, and one ridge weight. Each problem is the
# best subset on all rows, with a gap of 0.01%, one thread and a limit of ten seconds.
home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
files = {"diabetes": ("diabetes.csv", "y"), "hitters": ("hitters.csv", "log10_salary")}
tables = {label: sc.read_dataset(home / file, target) for label, (file, target) in files.items()}
for name in usable:  # imports, licences, compiled code: not timed
    fit_one(tables["diabetes"], tau=1, gamma=1.0, backend=name)

problems = [("diabetes", 3), ("diabetes", 6), ("hitters", 4), ("hitters", 8)]


def solved(label, tau, name):
    """The faster of two runs where a run is short: others use this machine too."""
    limits = Limits(gap=1e-4, seconds=10.0)
    fit = fit_one(tables[label], tau=tau, gamma=0.1, backend=name, limits=limits)
    if fit.seconds > 0.5:
        return fit
    again = fit_one(tables[label], tau=tau, gamma=0.1, backend=name, limits=limits)
    return min((fit, again), key=lambda each: each.seconds)


fits = {}
for label, tau in problems:
    for name in usable:
        fits[label, tau, name] = solved(label, tau, name)

# %%
# Same answers?
# -------------
# All solvers must find the same optimum. If a solver stops at its limit, its certified interval must contain the
# optimum that the others found.
for label, tau in problems:
    proved = [fits[label, tau, name] for name in usable if fits[label, tau, name].status == "proved"]
    assert len({fit.support for fit in proved}) == 1
    for name in usable:
        fit = fits[label, tau, name]
        assert fit.lower <= proved[0].objective * (1 + 1e-9)
        line = f"{label:>8} tau {tau}  {name:<7} {fit.status:<7} objective {fit.objective:.6g}"
        print(f"{line}  gap {fit.gap:.0e}  {fit.seconds:7.4f} s")

# %%
# Seconds
# -------
fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for at, name in enumerate(usable):
    places = [place + 0.16 * (at - (len(usable) - 1) / 2) for place in range(len(problems))]
    ax.bar(places, [fits[label, tau, name].seconds for label, tau in problems], width=0.15, label=name)
ax.set_yscale("log")
ax.set_xticks(range(len(problems)), [f"{label}, {tau} of {tables[label].p}" for label, tau in problems])
ax.set_ylabel("seconds inside the solver")
fig.legend(loc="outside lower center", ncols=len(usable), frameon=False)

# %%
# The time of a cross-validation
# ------------------------------
# A cross-validation of the baseball data with ten folds, 19 sizes and 15 ridge weights consists of 2,850 such
# problems. If each took the mean of the times above, their total time would be
cells = 10 * 19 * 15
hours = {}
for name in usable:
    spent = [fits[label, tau, name].seconds for label, tau in problems if label == "hitters"]
    hours[name] = cells * sum(spent) / len(spent) / 3600
    ended = all(fits[label, tau, name].status == "proved" for label, tau in problems)
    print(f"{name:>7}: {'' if ended else 'more than '}{hours[name] * 60:.2f} minutes")

# %%
# This estimate counts only the time in the solver, for one ridge weight that is not the hardest. For the whole
# cross-validation, from the table to the proof, with all fifteen ridge weights, this package needs
record = sc.solve(tables["hitters"])
print(record)
print(f"{record.work.seconds:.2f} s, {record.work.mios} subproblems by branch-and-bound")

# %%
# When a commercial solver is useful
# ----------------------------------
# A commercial solver is useful for problems that the native engine does not solve, such as groups of features with
# logistic loss (see :func:`sparsecv_mio.fits.one.fit_one`), and for other models. `sparsecv export` writes the model
# for any solver, and `sparsecv compare` makes the table above for lists of files, sizes and ridge weights:
#
# .. code-block:: console
#
#    $ sparsecv export instances/hitters.csv --tau 4 --gamma 0.1 --to model.mps
#    $ sparsecv compare instances/hitters.csv --tau 4,8 --gamma 0.1,1 --backends native,highs,gurobi --out comparison
#
# The page on benchmarks has the same comparison for 20 to 2,000 columns, and shows where this package ends without
# a proof.
#
# The decision
# ------------
# For best subsets and their cross-validation, no commercial solver is needed. Buy one if it solves a problem of
# yours that this package does not solve: try it with a trial licence, on the same file, by the lines above.
fastest = min((name for name in usable), key=lambda name: hours[name])
print(f"fastest here: {fastest}")
