"""
Two classes
===========

Which of ten measurements of a cell distinguish malignant from benign tumours? This page fits best-subset logistic
regression, with size and ridge weight chosen by cross-validated log loss, proves the choice, and examines the
probabilities.
"""

# %%
# The Wisconsin breast cancer data of scikit-learn describe 569 patients; a third of them have a malignant tumour.
# The ten columns are means over the cells of a sample.
import numpy as np
from sklearn.datasets import load_breast_cancer

import sparsecv_mio as sc

bunch = load_breast_cancer(as_frame=True)
frame = bunch.frame.iloc[:, :10].assign(tumour=np.where(bunch.target == 1, "benign", "malignant"))
data = sc.Dataset.from_frame(frame, target="tumour", two_words=True)

# %%
# There are five folds, stratified by class; sizes and ridge weights are the default ones. The mean log loss of
# held-out rows is certified; accuracy, AUC and Brier score are only reported. The one-standard-error rule takes the
# pair with the fewest features among those within one standard error of the minimum.
record = sc.solve(data, folds=5, loss="logistic", one_se=True)
print(record.summary())

# %%
# From three features on, the log loss is nearly the same; it is smallest with all ten. Bands are certified
# intervals. A triangle is a lower bound: the size was excluded before its CV error was known.
record.plot_cv_error()

# %%
# The probability of each row comes from the model that was fitted without it. The ROC curve shows how well these
# probabilities separate the classes at each threshold:
record.plot_roc(data)

# %%
# The calibration compares probabilities with observed shares: do 30% to 40% of the patients with a probability of
# 0.3 to 0.4 have a malignant tumour? The numbers at the bottom are numbers of patients; bars are 95% intervals.
record.plot_calibration(data)

# %%
# An odds ratio is the factor on the odds of a malignant tumour if a measurement is one standard deviation larger.
# The ridge penalty moves odds ratios towards 1.
for name, coefficient in record.coefficients.items():
    print(f"{name:>20} {np.exp(coefficient * frame[name].std(ddof=0)):8.2f}")

# %%
# A false alarm costs less than a missed tumour. If both classes get the same weight, another model is chosen, and
# its log loss is weighted in the same way.
balanced = sc.solve(data, folds=5, loss="logistic", class_weight="balanced", one_se=True)
print(balanced)
balanced.plot_roc(data)
