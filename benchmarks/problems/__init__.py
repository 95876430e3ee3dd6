"""The loops to measure, by name."""

from problems.ar1 import AR1
from problems.garch import GARCH
from problems.kalman import KALMAN
from problems.logistic import LOGISTIC
from problems.nested import NESTED
from problems.newton import NEWTON
from problems.random_walk import RANDOM_WALK
from problems.tanh import tanh


PROBLEMS = {
    p.name: p
    for p in (
        AR1,
        *(tanh(d) for d in (1, 4, 32, 128)),
        GARCH,
        LOGISTIC,
        KALMAN,
        NEWTON,
        RANDOM_WALK,
        NESTED,
    )
}
