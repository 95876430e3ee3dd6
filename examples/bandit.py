"""A two-armed bandit: how fast does somebody learn, and how greedy are they? A model in PyMC.

Each trial changes one of two values: an indexed update of the carry. The step closes over the
random variables of a PyMC model, and the log-probability has gradients through the loop.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from show import beside, picture

from pytensor_loop import scan


TRUE = {"rate": 0.3, "greed": 4.0}
CHANCES = np.array([0.35, 0.7])


def simulate(trials=150, seed=3):
    """Return the choices and rewards of a learner whose learning rate and greed we know."""
    generator = np.random.default_rng(seed)
    values, choices, rewards = np.full(2, 0.5), [], []
    for _ in range(trials):
        second = generator.random() < 1 / (1 + np.exp(-TRUE["greed"] * (values[1] - values[0])))
        choice = int(second)
        reward = int(generator.random() < CHANCES[choice])
        values[choice] += TRUE["rate"] * (reward - values[choice])
        choices.append(choice)
        rewards.append(reward)
    return np.array(choices), np.array(rewards)


def learn(rate, choices, rewards):
    """Return what each arm is thought to be worth before every trial."""

    def trial(values, x):
        surprise = x["reward"] - values[x["choice"]]
        return values[x["choice"]].inc(rate * surprise), values

    xs = {"choice": choices, "reward": rewards}
    _, values = scan(trial, np.full(2, 0.5), xs=xs)
    return values


def build_model(choices, rewards):
    """Return the model of a learner: two unknowns, and one choice for each trial."""
    with pm.Model() as model:
        rate = pm.Beta("rate", 1.5, 1.5)
        greed = pm.HalfNormal("greed", 5)
        values = learn(rate, choices, rewards)
        advantage = greed * (values[:, 1] - values[:, 0])
        pm.Bernoulli("choice", logit_p=advantage, observed=choices)
    return model


def log_likelihood_numpy(rate, greed, choices, rewards):
    """Return the log-likelihood of the choices, by a Python loop."""
    values, total = [0.5, 0.5], 0.0
    for choice, reward in zip(choices, rewards, strict=True):
        advantage = greed * (values[choice] - values[1 - choice])
        total = total - np.log(1 + np.exp(-advantage))
        values[choice] = values[choice] + rate * (reward - values[choice])
    return total


def gradient_numpy(rate, greed, choices, rewards, step=1e-30):
    """Return the gradient of the log-likelihood by complex steps, exact to rounding."""
    by_rate = log_likelihood_numpy(rate + 1j * step, greed, choices, rewards)
    by_greed = log_likelihood_numpy(rate, greed + 1j * step, choices, rewards)
    return np.array([by_rate.imag, by_greed.imag]) / step


def log_likelihood(model):
    """Return a function of rate and greed: the log-likelihood, and its gradient."""
    value = model.logp(vars=model.observed_RVs)
    unknowns = [model.rvs_to_values[model["rate"]], model.rvs_to_values[model["greed"]]]
    gradient = pt.grad(value, unknowns)
    compiled = model.compile_fn([value, *gradient], inputs=unknowns, point_fn=False)

    def evaluate(rate, greed):
        # PyMC's unknowns live on the whole line.
        total, by_logit, by_log = compiled(np.log(rate / (1 - rate)), np.log(greed))
        return total, np.array([by_logit / (rate * (1 - rate)), by_log / greed])

    return evaluate


def main():
    """Compare with the Python loop, find the mode of the posterior, and draw the values."""
    choices, rewards = simulate()
    model = build_model(choices, rewards)
    total, gradient = log_likelihood(model)(0.2, 3.0)
    by_hand = gradient_numpy(0.2, 3.0, choices, rewards)
    beside(
        "A learner at rate 0.2 and greed 3",
        {
            "log-likelihood": (total, log_likelihood_numpy(0.2, 3.0, choices, rewards)),
            "derivative by rate": (gradient[0], by_hand[0]),
            "derivative by greed": (gradient[1], by_hand[1]),
        },
    )
    with warnings.catch_warnings():
        # PyMC 6.4 announces another type of result, which PyMC 6.3 cannot give.
        warnings.simplefilter("ignore", FutureWarning)
        mode = pm.find_MAP(model=model, progressbar=False)
    print(f"  most probable: rate {mode['rate']:.2f} (true {TRUE['rate']}), ", end="")
    print(f"greed {mode['greed']:.2f} (true {TRUE['greed']})")
    values = learn(float(mode["rate"]), choices, rewards).eval()
    with picture("bandit") as ax:
        for arm, chance in enumerate(CHANCES):
            ax.plot(values[:, arm], color=f"C{arm}", label=f"thought to be worth, arm {arm}")
            ax.axhline(chance, color=f"C{arm}", linestyle=":", linewidth=0.8)
        ax.plot(np.where(choices, 1.02, -0.02), "|", color="0.3", markersize=5)
        ax.set(xlabel="trial", title="values, and choices (ticks)")
        ax.legend(fontsize="small", loc="center right")
    return {"total": total, "gradient": (gradient, by_hand), "mode": mode}


if __name__ == "__main__":
    main()
