import numpy as np
import pytest


pytest.importorskip("matplotlib")

import lkj


@pytest.mark.parametrize("n", [2, 3, 6])
def test_draws_and_generator_are_those_of_numpy(n):
    sample = lkj.compile_sampler(n)
    generator, matrix = sample(np.random.default_rng(n), 1.5)
    expected_generator, expected = lkj.lkj_numpy(np.random.default_rng(n), n, 1.5)
    assert generator.bit_generator.state == expected_generator.bit_generator.state
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.diag(matrix), 1, rtol=1e-12)


@pytest.mark.slow
def test_the_script_runs(tmp_path):
    for ours, theirs in lkj.main().values():
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)
    assert (tmp_path / "out" / "lkj.png").exists()
