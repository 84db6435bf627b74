# `make demo` and `make test` need Python 3.11 or newer and git; what else they need goes into .venv-demo and .venv.
PYTHON ?= python3
VENV ?= .venv
DEMO ?= .venv-demo
BIN = $(VENV)/bin
# Two workers: a file's tests stay together, so that what they share is made once, and files are taken in the order of their
# names: the slow folders begin early, small files fill up the end. WORKERS=0 runs all in one process; three on two cores are
# a tenth faster, but the ranks of the proofs then end by gloo's own SIGABRT at times (torch 2.13, one of 900 proofs).
WORKERS ?= 2
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PIP = -m pip install --quiet --disable-pip-version-check

.PHONY: demo test quick lint types tests faults generated mutations proofs proofs-all install install-torch docs pictures site bench soak store-soak fleet-soak clean

demo: $(DEMO)/done
	fixtures/demo.sh $(abspath $(DEMO))/bin/ddpfix

# mypy runs beside the tests: it takes one core for a minute, and they wait for their ranks now and then
test: install install-torch lint
	$(MAKE) --no-print-directory --jobs=2 types tests

# lint, types and the tests of what changed since the branch left main, in under a minute; BASE=<commit>: since then
quick: install
	BASE=$(BASE) $(BIN)/python -m tests.quick

install: $(VENV)/dev
install-torch: $(VENV)/torch

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# an ordinary install, as a user has it
$(DEMO)/done: pyproject.toml $(shell find ddpfix codemods -name '*.py')
	test -x $(DEMO)/bin/python || $(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python $(PIP) .
	touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python $(PIP) --editable '.[dev]'
	touch $@

# torch first: the frameworks would otherwise bring the newest build of it
$(VENV)/torch: $(VENV)/dev
	$(BIN)/python $(PIP) torch==2.13.0
	$(BIN)/python $(PIP) --requirement tests/requirements-torch.txt
	touch $@

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

tests: install
	$(BIN)/python -m pytest $(SPREAD) -rs

# every fault point of apply, undo, decisions and cache (docs/reliability.md is made of the counts): slow, not for every change
faults: install
	$(BIN)/python -m tests.faults.every

# every shape of every fault that programs are generated with; the suite takes a sample: slow, not for every change
generated: install
	DDPFIX_GENERATED=all $(BIN)/python -m pytest tests/test_generated_programs.py -q

# each answer of SECURITY.md's table taken away in a copy of the product: the test behind it has to fail
mutations: install
	$(BIN)/python -m tests.mutations.every

proofs: install install-torch
	$(BIN)/python -m pytest tests/proofs tests/prove -rs

# every rank started afresh, and again with the oldest and the newest frameworks that install: slow, not for every change
proofs-all: proofs
	DDPFIX_PROOFS_COLD=1 $(BIN)/python -m pytest tests/proofs -rs
	tests/proofs/older.sh $(PYTHON)

docs: install
	$(BIN)/python docs/make.py

# a thousand deliveries to the bot while it is killed and stopped: some minutes
soak: install
	$(BIN)/python -m tests.bot.soak

# a thousand random edits of the examples: after each, what is kept on the disk leads to what a cold run says; TREES=<folders> of yours
store-soak: install
	$(BIN)/python -m tests.store.soak --edits 200 $(TREES)

# 300 repositories, with every kind that ends badly, here and on a cluster that is killed; what the engine costs: half an hour
fleet-soak: install
	$(BIN)/python -m pytest tests/fleet/test_soak.py -m soak
	$(BIN)/python -m tests.fleet.soak

# the picture of the review page in the documentation, in Debian's Chromium
pictures: install
	$(BIN)/python -m tests.site.pictures

# the documentation, into build/site; a warning is an error
site: install
	$(BIN)/zensical build --strict --clean

bench: install install-torch
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) $(DEMO) .mypy_cache .pytest_cache .ruff_cache
