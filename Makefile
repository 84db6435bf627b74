# `make demo` and `make test` need Python 3.11 or newer and git; everything else they install into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint types tests install install-torch docs bench clean

demo: $(VENV)/demo
	fixtures/demo.sh $(abspath $(BIN))/ddpfix

test: install install-torch lint types tests

install: $(VENV)/dev
install-torch: $(VENV)/torch

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# torch first: the frameworks would otherwise bring the newest build of it
$(VENV)/torch: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement tests/requirements-torch.txt
	touch $@

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

tests: install
	$(BIN)/python -m pytest

docs: install
	$(BIN)/python docs/make.py

bench: install
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
