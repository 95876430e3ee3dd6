"""A loop for PyTensor and PyMC: ``final, ys = scan(step_fn, init, xs, n_steps)``."""

__version__ = "0.1.0"
