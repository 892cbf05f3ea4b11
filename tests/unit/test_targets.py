"""Every loss has a target, and the facts of a target agree with each other."""

import pytest

from sparsecv_mio.declared_options import OPTIONS
from sparsecv_mio.model_space import RESTRICTIONS
from sparsecv_mio.problem.row_losses import row_loss
from sparsecv_mio.targets import REASONS, TARGETS, Loss, find_loss_of_values, find_losses_of_option


@pytest.mark.parametrize("loss", Loss)
def test_facts_of_a_target_agree(loss: Loss) -> None:
    target = loss.target
    assert not target.is_sum_over_rows or row_loss(loss).name == loss
    assert (target.unit == "") == (target.ratio == "")
    assert target.has_times or (target.link == "identity") == (target.unit == "")
    assert loss.is_quadratic == (loss is Loss.SQUARED)
    assert set(target.options) <= set(OPTIONS) and set(target.proof_restrictions or ()) <= set(RESTRICTIONS)
    assert all(loss in find_losses_of_option(option) and REASONS[option] for option in target.options)
    assert find_loss_of_values(target.values).target.values is target.values
    assert target.is_quadratic or (target.gammas_over_rows and (target.separated or target.has_times))


def test_options_of_every_loss_belong_to_none() -> None:
    assert set(TARGETS) == set(Loss) and find_losses_of_option("gamma") == ()
