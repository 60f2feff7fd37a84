# Each target sets up everything it needs. `make demo` and `make test` are the two commands to know;
# `make quick` is for every few minutes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SHARED_DATA := $(wildcard ../shared/data)
export ARMATURE_DATA ?= $(if $(SHARED_DATA),$(abspath $(SHARED_DATA)))

# The programs that tests start would compile all of ours anew, each time.
unexport PYTHONDONTWRITEBYTECODE
# Whole files would leave workers waiting for one another's last one; see tests/README.md.
PYTEST := $(BIN)/python -m pytest --dist worksteal

.PHONY: demo test quick check bench acceptance docs figures clean

demo: $(STAMP)
	@rm -rf build/demo
	$(BIN)/armature demo --out build/demo

# Three workers for two cores: system tests wait more than they work.
test: $(STAMP) check
	$(PYTEST) -n 3 --durations=30 $(PYTEST_ARGS)

# Without processes, devices, browsers, waiting and whole chains.
quick: $(STAMP)
	$(PYTEST) -n 2 -m "not system and not compiler and not chain" $(PYTEST_ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Ratios measured side by side in one run; nothing here can fail a build.
bench: $(STAMP)
	$(BIN)/python -m tests.benchmarks

# Long statistical runs, many seeds: 45 minutes; `make test` has a short version of most.
acceptance: $(STAMP)
	ARMATURE_ACCEPTANCE=1 $(PYTEST) -n 2 -m acceptance -o timeout=3600 --durations=0 $(PYTEST_ARGS)

# The generated pages that are committed (tests fail when they are stale).
docs: $(STAMP)
	$(BIN)/armature frames document > firmware_protocol/PROTOCOL.md
	$(BIN)/python -m daq.recording.document > daq/recording/RECORDING_FORMAT.md
	$(BIN)/python tests/support/rooms.py

# Figures and tables of docs/safety.md, measured on the mock: a minute (a test fails when they are stale).
figures: $(STAMP)
	$(BIN)/python docs/figures/stops.py

$(STAMP): pyproject.toml .ci/system-packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "armature needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	.ci/system-packages $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
