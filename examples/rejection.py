"""A truncated normal by rejection: draw again and again, until every draw lies inside.

The step redraws what is still outside and stops the loop when nothing is. Random generators go in
with the carry and come out with ``final``, so the loop draws exactly what the same loop in NumPy
draws from the same generator, and leaves the generator where NumPy leaves it.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from show import beside, picture

from pytensor_loop import scan


LOWER, UPPER, SIZE, MOST = 0.5, 2.0, 1000, 200


def truncated_normal(rng, lower, upper, size, most):
    """Return the generator, the draws, whether all are inside, and how many rounds it took."""

    def redraw(carry, _):
        next_rng, fresh = pt.random.normal(size=size, rng=carry["rng"], return_next_rng=True)
        draws = pt.switch(carry["outside"], fresh, carry["draws"])
        outside = (draws < lower) | (draws > upper)
        rounds = carry["rounds"] + 1
        new_carry = {"rng": next_rng, "draws": draws, "outside": outside, "rounds": rounds}
        return new_carry, outside.sum(), ~outside.any()

    start = {"rng": rng, "draws": pt.zeros(size), "outside": pt.ones(size, dtype=bool), "rounds": 0}
    final, left, done = scan(redraw, start, n_steps=most)
    return final["rng"], final["draws"], done, final["rounds"], left


def compile_sampler(size=SIZE, mode=None):
    """Return ``sample(generator, lower, upper, most)``; `most` is the largest number of rounds."""
    rng = pt.random.type.random_generator_type("rng")
    lower, upper, most = pt.dscalar("lower"), pt.dscalar("upper"), pt.lscalar("most")
    results = truncated_normal(rng, lower, upper, size, most)
    return pytensor.function([rng, lower, upper, most], results, mode=mode)


def truncated_normal_numpy(generator, lower, upper, most, size=SIZE):
    """Return the same, by a while loop in NumPy."""
    draws, outside, left, rounds = np.zeros(size), np.ones(size, dtype=bool), [], 0
    while rounds < most and outside.any():
        fresh = generator.normal(size=size)
        draws = np.where(outside, fresh, draws)
        outside = (draws < lower) | (draws > upper)
        left.append(outside.sum())
        rounds += 1
    return generator, draws, rounds > 0 and not outside.any(), rounds, np.array(left, dtype=int)


def main():
    """Compare both loops from one seed, and draw the sample."""
    sample = compile_sampler()
    ours = sample(np.random.default_rng(1), LOWER, UPPER, MOST)
    theirs = truncated_normal_numpy(np.random.default_rng(1), LOWER, UPPER, MOST)
    beside(
        f"Rejection of what is not between {LOWER} and {UPPER}",
        {
            "rounds": (ours[3], theirs[3]),
            "mean of the draws": (ours[1].mean(), theirs[1].mean()),
            "next number of the generator": (ours[0].random(), theirs[0].random()),
        },
        ".15g",
    )
    with picture("rejection", columns=2) as (left, right):
        left.hist(ours[1], bins=40, density=True, color="C0")
        left.set(title="the draws", xlabel="value")
        right.semilogy(1 + np.arange(len(ours[4])), np.maximum(ours[4], 0.5), "o-", color="C3")
        right.set(title="how many are still outside", xlabel="round")
    return ours, theirs


if __name__ == "__main__":
    main()
