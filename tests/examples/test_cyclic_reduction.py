import numpy as np
import pytest


pytest.importorskip("matplotlib")

import cyclic_reduction


@pytest.fixture(scope="module")
def solver():
    return cyclic_reduction.compile_solver()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_solution_is_the_known_one(solver, seed):
    *matrices, known = cyclic_reduction.known_system(seed)
    found, done, *_ = solver(*matrices)
    assert done
    assert cyclic_reduction.residual(*matrices, found) < 1e-12
    np.testing.assert_allclose(found, known, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2], ids="d{}".format)
def test_the_gradient_is_that_of_finite_differences(solver, which):
    *matrices, _ = cyclic_reduction.known_system()
    _, _, *gradients = solver(*matrices)
    expected = cyclic_reduction.finite_differences(solver, matrices, which)
    np.testing.assert_allclose(gradients[which], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_the_script_runs():
    assert cyclic_reduction.main()["residual"] < 1e-12
