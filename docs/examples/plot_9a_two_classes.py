"""
Two classes
===========

Which of ten measurements of a cell tell malignant from benign tumours? Best-subset logistic regression, its size and
ridge weight chosen by cross-validated log loss, with a proof of the choice; then how good the probabilities are.
"""

# %%
# The Wisconsin breast cancer data, as scikit-learn has them: 569 patients, of whom a third have a malignant tumour. The
# ten columns are means over the cells of a sample.
import numpy as np
from sklearn.datasets import load_breast_cancer

import sparsecv_mio as sc

bunch = load_breast_cancer(as_frame=True)
frame = bunch.frame.iloc[:, :10].assign(tumour=np.where(bunch.target == 1, "benign", "malignant"))
data = sc.Dataset.from_frame(frame, target="tumour", two_words=True)

# %%
# Five folds, dealt by class; sizes and ridge weights are the default ones. What is certified is the mean log loss of
# held-out rows, beside which accuracy and the like are only reported. Of the pairs within one standard error of the
# best one the one-standard-error rule takes that with the fewest features.
record = sc.solve(data, folds=5, loss="logistic", one_se=True)
print(record.summary())

# %%
# From three features on nearly the same is lost, up to all ten, which lose least. Bands are certified intervals. A
# triangle is a lower bound: the size was excluded before its CV error was known.
record.plot_cv_error()

# %%
# Every row has a probability by the model that was fitted without it. The ROC curve says how well these tell the
# classes apart at any threshold:
record.plot_roc(data)

# %%
# And calibration, whether they come true: of the patients with a probability of 0.3 to 0.4, do as many have a malignant
# tumour? The numbers below are those of patients, the bars 95% intervals.
record.plot_calibration(data)

# %%
# Odds ratios: by what the odds of a malignant tumour are multiplied where a measurement is one standard deviation
# larger. The ridge penalty draws them towards 1.
for name, coefficient in record.coefficients.items():
    print(f"{name:>20} {np.exp(coefficient * frame[name].std(ddof=0)):8.2f}")

# %%
# One false alarm costs less than a tumour that is missed. With classes that weigh the same the model is another one,
# and is judged likewise.
balanced = sc.solve(data, folds=5, loss="logistic", class_weight="balanced", one_se=True)
print(balanced)
balanced.plot_roc(data)
