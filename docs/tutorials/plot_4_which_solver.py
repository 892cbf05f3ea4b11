"""
Which solver should my group buy?
=================================

Best-subset regression is a mixed-integer problem, and a group that does much of it asks whether a commercial solver
would pay. The answer should come from the group's own problems, on the group's own machine, with the same model, the
same gap and the answers compared. This page is that comparison; change the file and run it again.
"""

# %%
# What can be tried here
# ----------------------
# Every solver stands behind one contract: the same mathematical model, a support that is refitted by this package,
# a bound that is checked. What is not installed, or has no licence, says so. The licence inside Gurobi's own wheel
# admits small problems such as these.
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
# Two files of the group, of 10 and 19 columns, two sizes, one ridge weight: the best subset on all rows. All
# solvers are asked for a gap of 0.01% on one thread; none may take more than ten seconds.
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
# First of all they must agree. A solver that ends at its limit holds a valid interval, which must contain the
# others' optimum.
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
# What the work amounts to
# ------------------------
# Nobody solves one. A cross-validation of the baseball data with ten folds, 19 sizes and 15 ridge weights is 2,850
# such problems. One after the other, at the mean of the seconds above, that is
cells = 10 * 19 * 15
hours = {}
for name in usable:
    spent = [fits[label, tau, name].seconds for label, tau in problems if label == "hitters"]
    hours[name] = cells * sum(spent) / len(spent) / 3600
    ended = all(fits[label, tau, name].status == "proved" for label, tau in problems)
    print(f"{name:>7}: {'' if ended else 'more than '}{hours[name] * 60:.2f} minutes")

# %%
# That counts the solver alone, at one ridge weight that is not the hardest. The whole run by this package, from the
# table to the proof, over all fifteen ridge weights, is
record = sc.solve(tables["hitters"])
print(record)
print(f"{record.work.seconds:.2f} s, {record.work.mios} cells by branch-and-bound")

# %%
# Where a vendor's solver is worth its price
# ------------------------------------------
# Not for this. It is where your problem is not this one: side constraints that the native engine has not (boxes of
# coefficients, see :func:`sparsecv_mio.fits.one.fit_one`), other losses, other models. Then `sparsecv export`
# writes the model for any solver, and `sparsecv compare` makes the table above for whole lists of files, sizes and
# ridge weights:
#
# .. code-block:: console
#
#    $ sparsecv export instances/hitters.csv --tau 4 --gamma 0.1 --to model.mps
#    $ sparsecv compare instances/hitters.csv --tau 4,8 --gamma 0.1,1 --backends native,highs,gurobi --out comparison
#
# The benchmarks page makes the same comparison for 20 to 2,000 columns. It also shows the sizes at which this package
# ends without a proof.
#
# The decision
# ------------
# For best subsets and their cross-validation: none. Spend the money after the day on which a problem of yours is
# not proved here and is by a trial licence, on the same file, by the lines above.
fastest = min((name for name in usable), key=lambda name: hours[name])
print(f"fastest here: {fastest}")
