"""
Comparing backends
==================

Several solvers can solve one mixed-integer optimisation problem, the best subset of `tau` features on all rows: the
engine of this package (`native`) and, if installed, HiGHS, SCIP, Gurobi and Mosek. `sparsecv backends` lists the
solvers that can be used. This page compares `native` and HiGHS on one small problem; `sparsecv compare` compares
solvers on whole grids.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import sparsecv_mio as sc
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import get_backend

data = sc.Dataset.from_frame(load_diabetes(as_frame=True, scaled=False).frame, target="target")
usable = [name for name in ("native", "highs") if get_backend(name).available().usable]
print(usable)

# %%
# The first solve of a process loads and compiles code; it is not timed.
taus = range(2, 8)
fits = {}
for name in usable:
    fit_one(data, tau=1, gamma=0.1, backend=name)
    fits[name] = [fit_one(data, tau=tau, gamma=0.1, backend=name) for tau in taus]

# %%
# The solvers find the same best subset. The package computes the objective by an exact fit of the support that the
# solver returns. The lower bound of a vendor's solver is trusted only to two millionths of the scale of the
# objective, so its gap is at least about 1e-6. The gap of `native` includes only rounding errors.
for at, tau in enumerate(taus):
    for name in usable:
        fit = fits[name][at]
        print(f"tau {tau}  {name:<7} {fit.status}  {fit.objective:.1f}  gap {fit.gap:.1e}  {fit.seconds:.4f} s")
    assert len({fits[name][at].support for name in usable}) == 1

# %%
# The figure shows the time in the solver, with one thread.
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name in usable:
    ax.semilogy(list(taus), [fit.seconds for fit in fits[name]], "o", label=name)
ax.set_xlabel("number of features, tau")
ax.set_ylabel("seconds")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
