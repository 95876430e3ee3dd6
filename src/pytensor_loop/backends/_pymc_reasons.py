"""Why a loop has no log-probability, and which form of it has one."""

_NO = "PyMC cannot derive the log-probability of this loop: "
STOPS = _NO + (
    "it stops by a condition, so how many rows there are is random too. "
    "Take a fixed number of steps, or give the distribution a `logp` of its own"
)
RANDOM_CARRY = _NO + (
    "a leaf of the carry is drawn at random, but it is neither what has the values nor computed "
    "from it, and would have to be integrated out. Return as y the very value that is carried, "
    "`return x, x`; compute the rest of the new carry from it, `return (x, x - mu), x`; or make "
    "that leaf a variable of the model and read it by `xs`"
)
START_IS_GIVEN = _NO + (
    "its first row is the start of the carry, which is another random variable of the model, so it "
    "has no density of its own. Leave that row out and return the new value as y, `return x, x`; "
    "or draw the start in the same `dist` function as the loop"
)
START_IS_PARTLY_SEEN = _NO + (
    "its rows begin with a part of the start, and the rest of the start is drawn at random too. "
    "Return as y the value at the deepest tap, or the new value"
)
NOT_ALL_ROWS = _NO + (
    "a part of the rows has no density without the rows before it. Give values to `ys`, one leaf "
    "of it as it is, and not to `final` or to a part of it"
)
ANOTHER_DRAW = _NO + (
    "a step draws more than y, and what it draws besides is given by nothing. "
    "Draw y by one distribution whose parameters are known when the rows before are, or make the "
    "other draws a variable of the model and read it by `xs`"
)
NO_RULE = _NO + (
    "it has no rule for these rows. It has one when they are `ys` itself, one leaf of it, and y is "
    "one draw of a distribution, or that draw shifted and scaled. When y is carried too, return "
    "the new value, `return x, x`. What you make of `ys`, `pt.exp(ys)`, belongs inside the step"
)
