"""The compiled log-probability and gradient is no larger than that of the same `pytensor.scan`."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.op import Scan

from pytensor_loop import scan, taps
from tests.pymc.models import normal, simulated


OBSERVED = simulated(12)
N = len(OBSERVED)


# --- a random walk --------------------------------------------------------------------------------


def walk_ours(drift, sigma, size=None):
    def step(carry, _):
        rng, x = carry
        rng, change = normal(rng, drift, sigma)
        x = x + change
        return (rng, x), x

    return scan(step, (pt.random.shared_rng(seed=None), 0.0), n_steps=N)[1]


def walk_theirs(drift, sigma, size=None):
    def step(x, rng):
        rng, change = normal(rng, drift, sigma)
        return x + change, rng

    rng = pt.random.shared_rng(seed=None)
    start = pt.as_tensor(np.float64(0))
    xs, _ = pytensor.scan(step, outputs_info=[start, rng], n_steps=N, return_updates=False)
    return xs


# --- AR(2) ----------------------------------------------------------------------------------------


def ar_ours(phi, sigma, size=None):
    def step(carry, _):
        rng, past = carry
        rng, x = normal(rng, phi * past.tap(-1) - 0.2 * past.tap(-2), sigma)
        return (rng, past.push_tap(x)), x

    start = taps(np.zeros(2), [-2, -1])
    return scan(step, (pt.random.shared_rng(seed=None), start), n_steps=N)[1]


def ar_theirs(phi, sigma, size=None):
    def step(before, last, rng, phi, sigma):
        rng, x = normal(rng, phi * last - 0.2 * before, sigma)
        return x, rng

    rng = pt.random.shared_rng(seed=None)
    start = {"initial": pt.zeros(2), "taps": [-2, -1]}
    xs, _ = pytensor.scan(
        step,
        outputs_info=[start, rng],
        non_sequences=[phi, sigma],
        n_steps=N,
        strict=True,
        return_updates=False,
    )
    return xs


# --- GARCH(1, 1) ----------------------------------------------------------------------------------


def garch_ours(alpha, beta, size=None):
    def step(carry, _):
        h = 0.1 + alpha * carry["y"] ** 2 + beta * carry["h"]
        rng, y = normal(carry["rng"], 0.0, pt.sqrt(h))
        return {"rng": rng, "y": y, "h": h}, y

    start = {"rng": pt.random.shared_rng(seed=None), "y": 0.1, "h": 0.2}
    return scan(step, start, n_steps=N)[1]


def garch_theirs(alpha, beta, size=None):
    def step(y, h, rng, alpha, beta):
        h = 0.1 + alpha * y**2 + beta * h
        rng, y = normal(rng, 0.0, pt.sqrt(h))
        return y, h, rng

    start = [pt.as_tensor(np.float64(0.1)), pt.as_tensor(np.float64(0.2))]
    ys, _, _ = pytensor.scan(
        step,
        outputs_info=[*start, pt.random.shared_rng(seed=None)],
        non_sequences=[alpha, beta],
        n_steps=N,
        strict=True,
        return_updates=False,
    )
    return ys


def logp_and_gradient(dist):
    with pm.Model() as model:
        a = pm.HalfNormal("a", 1)
        b = pm.HalfNormal("b", 1)
        pm.CustomDist("x", a, b, dist=dist, signature="(),()->(t)", observed=OBSERVED)
    logp = model.logp()
    outputs = [logp, *pt.grad(logp, model.value_vars)]
    return model, model.compile_fn(outputs, inputs=model.value_vars, point_fn=False)


def count(compiled):
    nodes = compiled.maker.fgraph.toposort()
    scans = [node for node in nodes if isinstance(node.op, Scan)]
    return {
        "scans": len(scans),
        "nodes": len(nodes),
        "nodes in steps": sum(len(scan.op.fgraph.toposort()) for scan in scans),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(walk_ours, walk_theirs), (ar_ours, ar_theirs), (garch_ours, garch_theirs)],
    ids=["random walk", "AR(2)", "GARCH(1, 1)"],
)
def test_graph_is_not_larger(ours, theirs):
    (model, f), (_, g) = map(logp_and_gradient, (ours, theirs))
    point = [model.initial_point()[value.name] for value in model.value_vars]
    for a, b in zip(f(*point), g(*point), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    sizes, their_sizes = count(f), count(g)
    for what, size in sizes.items():
        assert size <= their_sizes[what], what
