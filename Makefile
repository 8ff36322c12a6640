# Each target sets up what it needs; a machine needs Python >= 3.11, pip and make.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
WHOLE := --numprocesses auto --dist loadfile --no-loadscope-reorder
QUICK := --numprocesses auto --dist loadfile -m "not slow" --hypothesis-profile quick

.PHONY: demo quick test cover floors fuzz lint bench paper docs release clean

demo: $(VENV)/installed  ## analyse the bundled example, and write the report to demo/
	$(BIN)/binreps analyse --out demo

quick: $(VENV)/developed  ## the tests that take a minute: no browser, Spark, PyMC or long simulation
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest $(QUICK)

test: $(VENV)/developed  ## all tests and doctests
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest $(WHOLE)

cover: $(VENV)/developed  ## all tests, and which lines no test runs
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest $(WHOLE) --cov binreps --cov-report term:skip-covered

floors:  ## the quick tests with the lowest versions that pyproject.toml allows
	rm -rf .venv-floors
	$(PYTHON) -m venv .venv-floors
	.venv-floors/$(SCRIPTS)/python -m pip install --quiet --upgrade pip
	$(PYTHON) tests/floors.py > .venv-floors/floors.txt
	.venv-floors/$(SCRIPTS)/pip install --quiet --editable . --group quick --constraint .venv-floors/floors.txt
	OPENBLAS_NUM_THREADS=1 .venv-floors/$(SCRIPTS)/pytest $(QUICK)

fuzz: $(VENV)/developed  ## random and damaged inputs for every entry point: 100,000, or ARGS="--inputs N"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz $(ARGS)

lint: $(VENV)/developed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv-bench/installed  ## side by side with the peers: a few minutes, or ARGS=--full
	.venv-bench/$(SCRIPTS)/python -m benchmarks $(ARGS)

docs: .venv-docs/installed $(VENV)/installed  ## the guide with its pictures and the reference, into site/
	$(BIN)/python examples/pictures.py
	.venv-docs/$(SCRIPTS)/zensical build --clean --strict

paper: $(VENV)/developed  ## every table and figure of the paper, compared with what it prints
	$(BIN)/python -m paper $(ARGS)

release:  ## wheel and sdist in dist/: built twice alike, checked, installed afresh, tried
	rm -rf .venv-release
	$(PYTHON) -m venv .venv-release
	.venv-release/$(SCRIPTS)/python -m pip install --quiet --upgrade pip build
	.venv-release/$(SCRIPTS)/python tests/release.py
	.venv-release/$(SCRIPTS)/pip install --quiet dist/*.whl --group quick
	.venv-release/$(SCRIPTS)/binreps analyse --out .venv-release/demo
	OPENBLAS_NUM_THREADS=1 .venv-release/$(SCRIPTS)/pytest tests $(QUICK)

clean:  ## remove the virtual environments, caches and site/
	rm -rf site .venv* .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/installed: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/pip install --quiet --editable .
	$(BIN)/python -m compileall -q src
	touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/pip install --quiet --editable . --group dev
	touch $@

.venv-bench/installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/$(SCRIPTS)/python -m pip install --quiet --upgrade pip
	.venv-bench/$(SCRIPTS)/pip install --quiet --requirement benchmarks/requirements.txt
	touch $@

.venv-docs/installed: docs/requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/$(SCRIPTS)/python -m pip install --quiet --upgrade pip
	.venv-docs/$(SCRIPTS)/pip install --quiet --requirement docs/requirements.txt
	touch $@
