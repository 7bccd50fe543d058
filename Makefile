# `make demo` and `make test` need Python 3.11+, git and make; they set up everything else themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8080
DATA_DIR ?= tallybook-data

.PHONY: demo test lock clean

demo: $(VENV)/.installed
	$(BIN)/tallybook demo --port $(PORT) --data-dir $(DATA_DIR)

test: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/pytest -n auto

# Everything comes from the lock, by hash; the project itself is then installed without asking any index.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Resolves the newest versions that pyproject.toml allows, for every platform, with hashes and without addresses.
lock:
	uv pip compile --universal --python-version 3.11 --extra dev --generate-hashes --no-annotate --no-header \
	    --no-emit-index-url --upgrade -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
