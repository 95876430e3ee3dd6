# Everything sets itself up: only Python 3.12 or newer is needed.
PYTHON ?= python3
BIN := .venv/bin
# Set by hand for fewer workers, or for some tests only: make test TESTS="tests/test_scan.py -x"
WORKERS ?= auto
TESTS ?=
# For some measurements only: make bench ARGS="-k 'Kalman and run'"
ARGS ?=

.PHONY: demo test lint bench clean

demo: .venv/demo  ## The main job on real data: the flow of the Nile.
	$(BIN)/python examples/nile.py

test: .venv/dev  ## All tests, on every backend.
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

lint: .venv/dev  ## Format, style and types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/dev  ## Measure loops beside PyTensor's own, JAX and hand-written Numba.
	$(BIN)/python -m pytest benchmarks --benchmark-quiet --benchmark-json=benchmarks/results.json $(ARGS)
	$(BIN)/python benchmarks/report.py $(if $(ARGS),,--write)

clean:
	rm -rf .venv

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 12) else "Python 3.12 or newer is needed: make PYTHON=python3.13")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[examples]'
	touch $@

.venv/dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[examples,jax,migrate,pymc]' --group dev
	touch $@ .venv/demo
