# Everything that there is to do here. `make` lists it; each target makes the environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
DEST ?= build/demo
DATA ?=
ARGS ?=
CONSTRAINTS := template/constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)

.PHONY: help demo test soak lint format docs bench
.DELETE_ON_ERROR:

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.demo ## make a project in DEST and train it; DATA='-d logger=csv' answers a question
	@BIN="$(BIN)" ARGS="$(ARGS)" sh scripts/demo.sh "$(DEST)" $(DATA)

test: $(VENV)/.test ## prove that every answer makes a project that works; ARGS='-k escape' chooses tests
	$(BIN)/python -m pytest $(ARGS)

soak: $(VENV)/.test ## kill a run many times and let it go on; KILLS=100 kills it more often
	KILLS=$(or $(KILLS),40) $(BIN)/python -m pytest -n0 tests/test_kills.py $(ARGS)

lint: $(VENV)/.lint ## check the template's own files and rendered projects
	BIN="$(BIN)" sh scripts/lint.sh

format: $(VENV)/.lint ## format the Python files, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs ## build the documentation as a site in build/docs/site; stops at a broken link
	@BIN="$(BIN)" sh scripts/docs.sh

bench: $(VENV)/.test ## measure speed side by side, as ratios
	$(BIN)/python -m benchmarks $(ARGS)

$(VENV)/.pip: $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit( \
		"Python 3.11, 3.12 or 3.13 is needed, $(PYTHON) is %d.%d: type make PYTHON=python3.12 and the target" % v)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) pip # dependency groups need pip 25.1
	@touch $@

$(VENV)/.demo $(VENV)/.docs: $(VENV)/.%: pyproject.toml $(VENV)/.pip
	@$(PIP) --group $*
	@touch $@

# torch first and as the exact pin: every other spelling may bring another, larger build of it.
$(VENV)/.lint $(VENV)/.test: $(VENV)/.%: pyproject.toml $(VENV)/.pip
	@echo "Installing what make $* needs (some minutes the first time)"
	@$(PIP) "$$(grep '^torch==' $(CONSTRAINTS))"
	@$(PIP) --group $*
	@touch $@
