"""
IACV: the leave-one-out loss along the path of a solver
=======================================================

Gradient descent passes through many models before it converges. Iterative approximate cross-validation updates all
held-out fits together with the full-data fit, by a Taylor step each. It thus estimates the leave-one-out loss at
*every* iteration, so that the descent can stop at the best one. These numbers are estimates, not bounds.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from sparsecv_mio.oracles.iacv import Erm, Logistic, Regularizer, default_step, gd, run

rng = np.random.default_rng(1)
n, p = 250, 20
X = rng.normal(size=(n, p))
truth = np.concatenate([np.full(5, 1.0), np.zeros(p - 5)])
y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-X @ truth)), 1.0, -1.0)
erm = Erm(X, y, Logistic(), Regularizer(ridge=2.0), lam=1e-6 * n)

# %%
# `"exact"` also computes the exact held-out fits, for comparison; the estimate does not need them. There are two
# baselines: one Newton step from the iterate (`ns`), which is accurate once the solver has converged, and the
# full-data fit (`baseline`), which was fitted to the rows on which it is evaluated.
report = run(erm, gd(default_step(erm)), 600, methods=("ns", "baseline", "exact"))
numbers = report.summary()
print(f"leave-one-out loss, estimated {numbers['cv']:.6f}, exact {numbers['cv_exact']:.6f}")
print(f"smallest estimated loss at iteration {report.best}")
print(f"{numbers['seconds']:.3f} s, exact {numbers['seconds_exact']:.3f} s")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.semilogx(report.iterations, report.traces["iacv"].cv, label="estimated")
left.semilogx(report.iterations, report.cv_exact, "k:", label="exact")
left.axvline(report.best, color="C7", lw=0.8)
left.set_xlabel("iteration")
left.set_ylabel("leave-one-out loss")
for name, word in (("iacv", "IACV"), ("ns", "one Newton step"), ("baseline", "the full fit itself")):
    right.loglog(report.iterations, report.traces[name].err_approx, label=word)
right.set_xlabel("iteration")
right.set_ylabel("mean distance from the exact left-out fits")
for ax in (left, right):
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=3, frameon=False)
