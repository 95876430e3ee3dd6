"""What PyMC derives from loops, form by form, against densities of SciPy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pytensor_loop import scan, taps


VALUES = np.array([0.3, -0.2, 0.7, 0.1, 0.4])
LENGTH = len(VALUES)
BEFORE = np.array([0.1, 0.2, -0.3])


@pytest.fixture(params=["known", "symbolic"])
def n_steps(request):
    """Five steps, and whether that is known when the loop is built."""
    return LENGTH if request.param == "known" else pt.constant(np.int64(LENGTH)).copy()


def new_rng():
    return pt.random.shared_rng(seed=None)


def normal(rng, mu, sigma=1.0):
    return pm.Normal.dist(mu, sigma, rng=rng, return_next_rng=True)


def log_density(rows, values=VALUES):
    return pm.logp(rows, values).eval(mode="FAST_COMPILE")


def gaussian(values, mu, sigma=1.0):
    return stats.norm.logpdf(values, mu, sigma)


def lagged(start, values=VALUES):
    """Return the value before each one."""
    return np.concatenate([[start], values[:-1]])


# --- y that is not carried ------------------------------------------------------------------------


def test_independent_draws(n_steps):
    _, rows = scan(lambda rng, _: normal(rng, 0.5), new_rng(), n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, 0.5))


def test_draws_around_a_series(n_steps):
    _, rows = scan(normal, new_rng(), xs=np.arange(5.0), n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, np.arange(5)))


def test_draws_around_a_captured_variable(n_steps):
    mu = pt.exp(pt.as_tensor(np.array([0.1, 0.2])))
    _, rows = scan(lambda rng, _: normal(rng, mu), new_rng(), n_steps=n_steps)
    values = np.column_stack([VALUES, VALUES])
    assert_allclose(log_density(rows, values), gaussian(values, np.exp([0.1, 0.2])))


def test_draws_around_a_carry_that_is_not_random(n_steps):
    def step(carry, _):
        rng, level = carry
        level = 0.9 * level
        rng, x = normal(rng, level)
        return (rng, level), x

    _, rows = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, 0.9 ** np.arange(1, 6)))


def test_draws_in_reverse(n_steps):
    _, rows = scan(normal, new_rng(), xs=np.arange(5.0), n_steps=n_steps, reverse=True)
    assert_allclose(log_density(rows), gaussian(VALUES, np.arange(5)))


def test_a_loop_of_loops():
    def row(rng, x):
        return scan(lambda rng, _: normal(rng, x), rng, n_steps=2)

    _, rows = scan(row, new_rng(), xs=np.arange(5.0))
    values = np.column_stack([VALUES, VALUES[::-1]])
    assert_allclose(log_density(rows, values), gaussian(values, np.arange(5)[:, None]))


# --- y that is the new carry ----------------------------------------------------------------------


def test_ar1_with_a_tuple_as_carry(n_steps):
    def step(carry, _):
        rng, x = carry
        rng, x = normal(rng, 0.5 * x)
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, 0.5 * lagged(1.0)))


def test_ar1_with_a_dict_as_carry_and_an_innovation(n_steps):
    def step(carry, _):
        rng, innovation = normal(carry["rng"], 0.0)
        x = 0.5 * carry["x"] + innovation
        return {"rng": rng, "x": x}, x

    _, rows = scan(step, {"rng": new_rng(), "x": 1.0}, n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, 0.5 * lagged(1.0)))


def test_ar1_in_reverse(n_steps):
    def step(carry, u):
        rng, x = carry
        rng, x = normal(rng, 0.5 * x + u)
        return (rng, x), x

    u = np.arange(5.0)
    _, rows = scan(step, (new_rng(), 1.0), xs=u, n_steps=n_steps, reverse=True)
    mu = 0.5 * lagged(1.0, VALUES[::-1])[::-1] + u
    assert_allclose(log_density(rows), gaussian(VALUES, mu))


def test_a_random_walk_with_drift(n_steps):
    def step(carry, _):
        rng, x = carry
        rng, change = normal(rng, 0.2, 0.5)
        x = x + change
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 0.0), n_steps=n_steps)
    assert_allclose(log_density(rows), gaussian(VALUES, 0.2 + lagged(0.0), 0.5))


@pytest.mark.parametrize("reverse", [False, True], ids=["", "reverse"])
def test_a_new_value_that_the_step_writes_twice(n_steps, reverse):
    def step(carry, _):
        rng, x = carry
        rng, change = normal(rng, 0.2)
        return (rng, x + change), x + change

    _, rows = scan(step, (new_rng(), 0.0), n_steps=n_steps, reverse=reverse)
    values = VALUES[::-1] if reverse else VALUES
    expected = gaussian(values, 0.2 + lagged(0.0, values))
    assert_allclose(log_density(rows), expected[::-1] if reverse else expected)


def test_a_walk_on_the_positive_line(n_steps):
    def step(carry, _):
        rng, x = carry
        rng, change = normal(rng, 0.0)
        x = pt.exp(0.5 * pt.log(x) + change)
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    expected = gaussian(VALUES, 0.5 * lagged(0.0)) - VALUES
    assert_allclose(log_density(rows, np.exp(VALUES)), expected)


def test_a_regime_that_a_series_switches(n_steps):
    means = pt.as_tensor(np.array([-1.0, 1.0]))
    regime = np.array([0, 1, 1, 0, 1])

    def step(carry, regime):
        rng, x = carry
        rng, x = normal(rng, means[regime] + 0.5 * x)
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 0.0), xs=regime, n_steps=n_steps)
    mu = np.array([-1, 1])[regime] + 0.5 * lagged(0.0)
    assert_allclose(log_density(rows), gaussian(VALUES, mu))


def test_a_regime_that_the_last_value_switches(n_steps):
    def step(carry, _):
        rng, x = carry
        rng, x = normal(rng, pt.switch(x > 0, 0.9 * x, -0.3 * x))
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    before = lagged(1.0)
    mu = np.where(before > 0, 0.9 * before, -0.3 * before)
    assert_allclose(log_density(rows), gaussian(VALUES, mu))


def garch(n_steps, what):
    def step(carry, _):
        h = 0.1 + 0.5 * carry["y"] ** 2 + 0.3 * carry["h"]
        rng, y = normal(carry["rng"], 0.0, pt.sqrt(h))
        return {"rng": rng, "y": y, "h": h}, what(y, h)

    _, rows = scan(step, {"rng": new_rng(), "y": 1.0, "h": 1.0}, n_steps=n_steps)
    return rows


def garch_density():
    h, y, terms = 1.0, 1.0, []
    for value in VALUES:
        h = 0.1 + 0.5 * y**2 + 0.3 * h
        terms.append(gaussian(value, 0.0, np.sqrt(h)))
        y = value
    return terms


def test_garch_carries_a_variance_that_the_values_give(n_steps):
    assert_allclose(log_density(garch(n_steps, lambda y, h: y)), garch_density())


def test_an_ma1_computes_its_innovation_from_the_value(n_steps):
    def step(carry, _):
        rng, innovation = carry
        mu = 0.4 * innovation
        rng, x = normal(rng, mu)
        return (rng, x - mu), x

    _, rows = scan(step, (new_rng(), 0.0), n_steps=n_steps)
    innovation, terms = 0.0, []
    for value in VALUES:
        terms.append(gaussian(value, 0.4 * innovation))
        innovation = value - 0.4 * innovation
    assert_allclose(log_density(rows), terms)


def test_counts(n_steps):
    def step(carry, _):
        rng, x = carry
        rng, x = pm.Poisson.dist(1 + 0.5 * x, rng=rng, return_next_rng=True)
        return (rng, x), x

    _, rows = scan(step, (new_rng(), 2), n_steps=n_steps)
    values = np.array([1, 2, 0, 3, 1])
    expected = stats.poisson.logpmf(values, 1 + 0.5 * lagged(2, values))
    assert_allclose(log_density(rows, values), expected)


def vectors(n_steps, draw):
    def step(carry, _):
        rng, x = carry
        rng, x = draw(0.5 * x, rng=rng, return_next_rng=True)
        return (rng, x), x

    return scan(step, (new_rng(), np.zeros(2)), n_steps=n_steps)[1]


def test_series_in_rows_instead_of_columns(n_steps):
    rows = vectors(n_steps, lambda mu, **kwargs: pm.Normal.dist(mu, 1.0, **kwargs))
    values = np.column_stack([VALUES, VALUES[::-1]])
    before = np.vstack([np.zeros(2), values[:-1]])
    assert_allclose(log_density(rows.T, values.T), gaussian(values, 0.5 * before).T)


@pytest.mark.parametrize("axes", ["(t, k)", "(k, t)"])
def test_vectors_of_a_multivariate_normal(n_steps, axes):
    rows = vectors(n_steps, lambda mu, **kwargs: pm.MvNormal.dist(mu, np.eye(2), **kwargs))
    values = np.column_stack([VALUES, VALUES[::-1]])
    before = np.vstack([np.zeros(2), values[:-1]])
    given = (rows, values) if axes == "(t, k)" else (rows.T, values.T)
    assert_allclose(log_density(*given), gaussian(values, 0.5 * before).sum(axis=1))


# --- leaves that nobody observes ------------------------------------------------------------------


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_an_innovation_beside_the_value(n_steps, form):
    def step(carry, _):
        rng, x = carry
        rng, innovation = normal(rng, 0.0)
        x = 0.5 * x + innovation
        y = (innovation, x) if form == "tuple" else {"x": x, "innovation": innovation}
        return (rng, x), y

    _, rows = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    x = rows[1] if form == "tuple" else rows["x"]
    assert_allclose(log_density(x), gaussian(VALUES, 0.5 * lagged(1.0)))


def test_a_variance_beside_the_value(n_steps):
    rows = garch(n_steps, lambda y, h: {"y": y, "h": h})
    assert_allclose(log_density(rows["y"]), garch_density())


def test_a_random_carry_that_does_not_matter_to_the_value(n_steps):
    def step(carry, _):
        rng, x, other = carry
        rng, x = normal(rng, 0.5 * x)
        rng, other = normal(rng, other + x)
        return (rng, x, other), {"x": x, "other": other}

    _, rows = scan(step, (new_rng(), 1.0, 0.0), n_steps=n_steps)
    assert_allclose(log_density(rows["x"]), gaussian(VALUES, 0.5 * lagged(1.0)))


# --- taps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offsets", "weights"),
    [
        ([-1], {-1: 0.5}),
        ([-2, -1], {-1: 0.5, -2: -0.2}),
        ([-1, -2], {-1: 0.5, -2: -0.2}),
        ([-3], {-3: 0.5}),
        ([-3, -1], {-1: 0.5, -3: -0.2}),
        ([-3, -2], {-2: 0.5, -3: -0.2}),
    ],
    ids=str,
)
def test_an_autoregression_by_taps(n_steps, offsets, weights):
    def step(carry, _):
        rng, past = carry
        rng, x = normal(rng, sum(weight * past.tap(tap) for tap, weight in weights.items()))
        return (rng, past.push_tap(x)), x

    depth = -min(offsets)
    start = BEFORE[-depth:]
    _, rows = scan(step, (new_rng(), taps(start, offsets)), n_steps=n_steps)
    series = np.concatenate([start, VALUES])
    mu = sum(weight * series[depth + tap : depth + tap + LENGTH] for tap, weight in weights.items())
    assert_allclose(log_density(rows), gaussian(VALUES, mu))


# --- the start in front of the rows ---------------------------------------------------------------


def walk(carry, _):
    rng, x = carry
    rng, change = normal(rng, 0.2)
    x = x + change
    return (rng, x), x


def walk_old(carry, _):
    (rng, x), _ = walk(carry, None)
    return (rng, x), carry[1]


WALK = gaussian(VALUES[1:], 0.2 + VALUES[:-1])


@pytest.mark.parametrize("spelling", ["x0[None]", "[x0]", "old carry"])
@pytest.mark.parametrize("kind", ["random", "fixed"])
def test_a_start_in_front(n_steps, spelling, kind):
    rng, drawn = normal(new_rng(), 0.1, 2.0)
    x0 = drawn if kind == "random" else pt.as_tensor(VALUES[0])
    if spelling == "old carry":
        _, rows = scan(walk_old, (rng, x0), n_steps=n_steps)
    else:
        _, later = scan(walk, (rng, x0), n_steps=n_steps - 1)
        rows = pt.concatenate([x0[None] if spelling == "x0[None]" else [x0], later])
    # A fixed start has probability one if it is what is observed.
    first = gaussian(VALUES[0], 0.1, 2.0) if kind == "random" else 0.0
    assert_allclose(log_density(rows), [first, *WALK])


def test_a_fixed_start_that_is_not_what_was_observed(n_steps):
    _, rows = scan(walk_old, (new_rng(), 5.0), n_steps=n_steps)
    expected = [-np.inf, gaussian(VALUES[1], 0.2 + 5.0), *WALK[1:]]
    assert_allclose(log_density(rows), expected)


@pytest.mark.parametrize("kind", ["random", "fixed"])
def test_a_start_with_nothing_behind_it(kind):
    rng, drawn = normal(new_rng(), 0.1)
    start = drawn if kind == "random" else VALUES[0]
    _, rows = scan(walk_old, (rng, start), n_steps=1)
    expected = gaussian(VALUES[:1], 0.1) if kind == "random" else [0.0]
    assert_allclose(log_density(rows, VALUES[:1]), expected)


def test_old_values_over_a_series_in_reverse(n_steps):
    rng, x0 = normal(new_rng(), 0.1)

    def step(carry, u):
        rng, x = carry
        rng, change = normal(rng, u)
        return (rng, x + change), x

    u = np.arange(5.0)
    _, rows = scan(step, (rng, x0), xs=u, n_steps=n_steps, reverse=True)
    expected = [*gaussian(VALUES[:-1], VALUES[1:] + u[1:]), gaussian(VALUES[-1], 0.1)]
    assert_allclose(log_density(rows), expected)


def test_a_random_start_that_every_step_captures(n_steps):
    rng, x0 = normal(new_rng(), 0.1)

    def step(carry, _):
        rng, x = carry
        rng, new_x = normal(rng, 0.5 * x + 0.3 * x0)
        return (rng, new_x), x

    _, rows = scan(step, (rng, x0), n_steps=n_steps)
    expected = gaussian(VALUES, [0.1, *(0.5 * VALUES[:-1] + 0.3 * VALUES[0])])
    assert_allclose(log_density(rows), expected)


def test_a_random_start_before_independent_rows(n_steps):
    rng, x0 = normal(new_rng(), 0.1)
    _, later = scan(lambda rng, _: normal(rng, 0.5), rng, n_steps=n_steps - 1)
    rows = pt.concatenate([x0[None], later])
    assert_allclose(log_density(rows), gaussian(VALUES, [0.1, 0.5, 0.5, 0.5, 0.5]))


@pytest.mark.parametrize("spelling", ["joined", "old value at the deepest tap"])
def test_a_random_start_of_two_rows(n_steps, spelling):
    rng, start = pm.Normal.dist(0.1, 1.0, shape=(2,), rng=new_rng(), return_next_rng=True)

    def step(carry, _):
        rng, past = carry
        rng, x = normal(rng, 0.5 * past[1] - 0.2 * past[0])
        return (rng, past.push_tap(x)), x if spelling == "joined" else past[0]

    init = (rng, taps(start, [-2, -1]))
    if spelling == "joined":
        rows = pt.concatenate([start, scan(step, init, n_steps=n_steps - 2)[1]])
    else:
        rows = scan(step, init, n_steps=n_steps)[1]
    mu = 0.5 * VALUES[1:-1] - 0.2 * VALUES[:-2]
    assert_allclose(log_density(rows), gaussian(VALUES, [0.1, 0.1, *mu]))


def test_an_old_value_at_a_later_tap(n_steps):
    def step(carry, _):
        rng, past = carry
        rng, x = normal(rng, 0.5 * past[1] - 0.2 * past[0])
        return (rng, past.push_tap(x)), past[1]

    start = np.array([0.1, VALUES[0]])
    _, rows = scan(step, (new_rng(), taps(start, [-2, -1])), n_steps=n_steps)
    series = np.concatenate([[0.1], VALUES])
    mu = 0.5 * series[1:-1] - 0.2 * series[:-2]
    assert_allclose(log_density(rows), [0.0, *gaussian(VALUES[1:], mu)])


# --- two values of one loop -----------------------------------------------------------------------


def test_two_leaves_with_values(n_steps):
    from pymc.logprob.basic import conditional_logp

    def step(carry, _):
        rng, x = carry
        rng, x = normal(rng, 0.5 * x)
        rng, y = normal(rng, 2 * x)
        return (rng, x), (x, y)

    _, (x, y) = scan(step, (new_rng(), 1.0), n_steps=n_steps)
    x_value, y_value = pt.vector("x"), pt.vector("y")
    terms = conditional_logp({x: x_value, y: y_value})
    given = {x_value: VALUES, y_value: VALUES[::-1].copy()}
    of_x, of_y = (terms[value].eval(given, mode="FAST_COMPILE") for value in (x_value, y_value))
    assert_allclose(of_x, gaussian(VALUES, 0.5 * lagged(1.0)))
    assert_allclose(of_y, gaussian(VALUES[::-1], 2 * VALUES))
