import numpy as np
import pytest


pytest.importorskip("matplotlib")

import rejection


LOWER, UPPER, SIZE = rejection.LOWER, rejection.UPPER, 50


@pytest.fixture(scope="module")
def sample():
    return rejection.compile_sampler(SIZE)


@pytest.mark.parametrize("most", [200, 3, 1, 0], ids="cap {}".format)
def test_draws_rounds_and_generator_are_those_of_numpy(sample, most):
    ours = sample(np.random.default_rng(7), LOWER, UPPER, most)
    theirs = rejection.truncated_normal_numpy(np.random.default_rng(7), LOWER, UPPER, most, SIZE)
    assert ours[0].bit_generator.state == theirs[0].bit_generator.state
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert (bool(ours[2]), int(ours[3])) == (theirs[2], theirs[3])
    np.testing.assert_array_equal(ours[4], theirs[4])


def test_a_cap_that_is_too_small_is_not_done(sample):
    _, draws, done, rounds, left = sample(np.random.default_rng(7), LOWER, UPPER, 2)
    assert not done
    assert rounds == 2
    assert left[-1] == np.sum((draws < LOWER) | (draws > UPPER)) > 0


@pytest.mark.slow
def test_the_script_runs():
    ours, theirs = rejection.main()
    np.testing.assert_array_equal(ours[1], theirs[1])
