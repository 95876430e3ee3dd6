"""The flow of the Nile: a local level model, filtered, smoothed, fitted and forecast.

The level of the river moves as a random walk, and each year's flow is the level plus noise::

    level[t + 1] = level[t] + w[t],   w ~ Normal(0, var_level)
    flow[t]      = level[t] + e[t],   e ~ Normal(0, var_obs)

Three loops do the work: the Kalman filter, the smoother in reverse over what the filter stacked,
and the forecast, which is the filter continued from where it ended, with no observations.
The estimates are those of Durbin and Koopman (2012), Time Series Analysis by State Space Methods.
"""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.optimize
import statsmodels.api as sm
from show import picture

from pytensor_loop import scan


PUBLISHED = {"var_obs": 15099.0, "var_level": 1469.1}
FORECAST_YEARS = 10

var_obs, var_level = pt.dscalars("var_obs", "var_level")
flow = pt.dvector("flow")


def filter_step(state: Any, y: Any) -> Any:
    """Predict the next level from this year's flow."""
    error = y - state["mean"]
    spread = state["var"] + var_obs
    gain = state["var"] / spread
    updated = {"mean": state["mean"] + gain * error, "var": state["var"] * (1 - gain)}
    predicted = {"mean": updated["mean"], "var": updated["var"] + var_level}
    log_density = -0.5 * (pt.log(2 * np.pi * spread) + error**2 / spread)
    return predicted, {"before": state, "filtered": updated, "log_density": log_density}


def smooth_step(future: Any, now: Any) -> Any:
    """Correct a filtered level by what came after it (Rauch, Tung and Striebel)."""
    gain = now["var"] / (now["var"] + var_level)
    mean = now["mean"] + gain * (future["mean"] - now["mean"])
    var = now["var"] + gain**2 * (future["var"] - now["var"] - var_level)
    smoothed = {"mean": mean, "var": var}
    return smoothed, smoothed


def forecast_step(state: Any, _: Any) -> Any:
    """Let the level walk on, unseen."""
    return {"mean": state["mean"], "var": state["var"] + var_level}, state


def build() -> dict[str, Any]:
    """Return the variables of the model: likelihood, filtered and smoothed levels, forecast."""
    # Nothing is known of the first level; the first flow tells it, as statsmodels has it.
    start = {"mean": flow[0], "var": var_obs + var_level}
    end, rows = scan(filter_step, start, flow[1:], name="filter")
    first = {"mean": flow[0], "var": var_obs}
    filtered = {key: pt.concatenate([first[key][None], rows["filtered"][key]]) for key in first}
    last = {key: values[-1] for key, values in filtered.items()}
    earlier = {key: values[:-1] for key, values in filtered.items()}
    _, smoothed = scan(smooth_step, last, earlier, reverse=True, name="smoother")
    smoothed = {key: pt.concatenate([smoothed[key], last[key][None]]) for key in last}
    _, forecast = scan(forecast_step, end, n_steps=FORECAST_YEARS, name="forecast")
    log_likelihood = rows["log_density"].sum()
    return {
        "log_likelihood": log_likelihood,
        "score": pt.stack(pt.grad(log_likelihood, [var_obs, var_level])),
        "filtered": filtered,
        "smoothed": smoothed,
        "forecast": forecast,
    }


def fit(log_likelihood: Any, score: Any, data: np.ndarray) -> np.ndarray:
    """Return the variances of maximum likelihood, found with the exact gradient."""
    f = pytensor.function([flow, var_obs, var_level], [log_likelihood, score])

    def cost(log_variances: np.ndarray) -> tuple[float, np.ndarray]:
        variances = np.exp(log_variances)
        value, gradient = f(data, *variances)
        return -float(value), -gradient * variances

    start = np.log([data.var(), data.var() / 10])
    best = scipy.optimize.minimize(cost, start, jac=True, method="BFGS", options={"gtol": 1e-7})
    return np.exp(best.x)


def reference(data: np.ndarray, variances: np.ndarray) -> dict[str, Any]:
    """Return what statsmodels computes at the same variances."""
    model = sm.tsa.UnobservedComponents(data, "local level", use_exact_diffuse=True)
    results = model.smooth(variances)
    return {
        # Of the years after the first, which tells where the level starts.
        "log_likelihood": results.llf_obs[1:].sum(),
        "score": model.score(variances, approx_complex_step=True),
        "filtered": results.filtered_state[0],
        "smoothed": results.smoothed_state[0],
        "forecast": results.get_forecast(FORECAST_YEARS),
    }


def compute() -> dict[str, Any]:
    """Return our numbers beside statsmodels' and the published ones."""
    data = sm.datasets.nile.load_pandas().data
    series = data["volume"].to_numpy(dtype="float64")
    model = build()
    variances = fit(model["log_likelihood"], model["score"], series)
    names = ["log_likelihood", "score", "filtered", "smoothed", "forecast"]
    flat = [model["log_likelihood"], model["score"]]
    flat += [model[name][key] for name in names[2:] for key in ("mean", "var")]
    values = pytensor.function([flow, var_obs, var_level], flat)(series, *variances)
    ours = {"log_likelihood": float(values[0]), "score": values[1]}
    for k, name in enumerate(names[2:]):
        ours[name] = {"mean": values[2 + 2 * k], "var": values[3 + 2 * k]}
    return {
        "years": data["year"].to_numpy(dtype=int),
        "flow": series,
        "variances": dict(zip(PUBLISHED, variances, strict=True)),
        "ours": ours,
        "statsmodels": reference(series, variances),
    }


def draw(axes: Any, results: dict[str, Any]) -> None:
    """Draw the flow, the smoothed level with a band of two deviations, and the forecast."""
    years, ours = results["years"], results["ours"]
    ahead = np.arange(years[-1] + 1, years[-1] + 1 + FORECAST_YEARS)
    axes.plot(years, results["flow"], ".", color="0.45", label="flow")
    for when, name, color in ((years, "smoothed", "C0"), (ahead, "forecast", "C1")):
        mean, deviation = ours[name]["mean"], np.sqrt(ours[name]["var"])
        axes.plot(when, mean, color=color, label=f"level, {name}")
        band = (mean - 2 * deviation, mean + 2 * deviation)
        axes.fill_between(when, *band, color=color, alpha=0.2, linewidth=0)
    axes.set(title="Flow of the Nile at Aswan", xlabel="year", ylabel="10⁸ m³ a year")
    axes.legend(frameon=False)


def main() -> dict[str, Any]:
    """Print the numbers and write the picture."""
    results = compute()
    ours, theirs = results["ours"], results["statsmodels"]
    print("                          ours    published")
    for name, published in PUBLISHED.items():
        print(f"{name:<16} {results['variances'][name]:>13.1f} {published:>12.1f}")
    print("                                ours         statsmodels")
    print(f"log-likelihood {ours['log_likelihood']:>21.10f} {theirs['log_likelihood']:>19.10f}")
    for name in ("filtered", "smoothed"):
        difference = np.abs(ours[name]["mean"] - theirs[name]).max()
        print(f"largest difference of the {name} level from statsmodels: {difference:.1e}")
    last = f"{results['years'][-1] + FORECAST_YEARS}"
    mean, deviation = ours["forecast"]["mean"][-1], np.sqrt(ours["forecast"]["var"][-1])
    print(f"level forecast for {last}: {mean:.0f} with a standard deviation of {deviation:.0f}")
    with picture("nile", height=4.5) as axes:
        draw(axes, results)
    return results


if __name__ == "__main__":
    main()
