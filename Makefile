# Two commands do everything on a machine with Python >= 3.11, pip and make:
#   make report   set up .venv, run the main job, print where the report is
#   make test     set up .venv, run the tests
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= report.html

.PHONY: report test test-long bench lint setup clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "factcap needs Python 3.11 or newer; $(PYTHON) is older. Set PYTHON=/path/to/python3.11."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (the torch download dominates) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[validate,cluster,dev]'
	@touch $@

report: $(STAMP)
	$(BIN)/factcap report --preset quick --out $(OUT)

test: $(STAMP)
	$(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile

test-long: $(STAMP)
	$(BIN)/python -m pytest -m long

bench: $(STAMP)
	$(BIN)/python -m pytest tests/bench -o addopts="-q --strict-markers" --benchmark-only

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
