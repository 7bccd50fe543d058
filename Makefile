# `make demo` and `make test` need Python 3.11+, git and make; they set up everything else themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8080
DATA_DIR ?= tallybook-data
EXAMPLES ?= 500
COUNT ?= 200

# Tests start hundreds of processes: where the environment forbids to keep bytecode, each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types compiled suite long model stalls fuzz campaign bench million docs dump wheel installed ready release typescript generators vendor screenshots faults faults-small faults-tools mutants lock clean

# LIVE=1 plays the season slowly while the service runs: its board moves.
demo: $(VENV)/.installed
	$(BIN)/tallybook demo --port $(PORT) --data-dir $(DATA_DIR) $(if $(LIVE),--live)

test:
	$(MAKE) --no-print-directory -j 2 types lint compiled
	$(MAKE) --no-print-directory suite

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/deptry --config clients/python/pyproject.toml clients/python

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Compiles all tests and what they import: else each worker would for itself, at the same time.
compiled: $(VENV)/.installed-dev
	@MAKEFLAGS= $(BIN)/pytest --collect-only -q -n 0 > /dev/null

# At the end it names the slowest. Tests run make, which must not take itself for a part of this one.
suite: $(VENV)/.installed-dev
	MAKEFLAGS= $(BIN)/pytest -n auto --dist worksteal --durations 10

# The tests that `make test` leaves out because they take long: services that are killed, faults, thousands of competitors.
long: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto --dist worksteal -m long

# Visits every state of the model of the protocol, within bounds, and finds the planted mistakes: some ten minutes; then
# holds what real processes do against it, for some minutes. ONLY=DIGEST tells the story of that mistake. `make test` has
# a share.
model: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.model $(ONLY)
	$(if $(ONLY),,$(BIN)/python -m assurance.traces)

# A thousand random clean histories, none of which may raise an alarm; `make test` has some of them.
campaign: $(VENV)/.installed-dev
	CLEAN_HISTORIES=1000 $(BIN)/pytest --timeout 3600 tests/projections/test_verification.py -k no_clean_history

# How long each operation and page holds up the others, at the documented limits and at a tenth of them: some ten minutes on
# an idle machine. ONLY=import asks what has this in its name; SCALE=tenth only there. `make test` has a share.
stalls: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.stalls $(if $(ONLY),--only "$(ONLY)") $(if $(SCALE),--scale $(SCALE))

# Requests made up from the OpenAPI document, with all checks of schemathesis: EXAMPLES for each operation; and all
# examples of hostile text in every field.
fuzz: $(VENV)/.installed-dev
	TALLYBOOK_TEST_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -m "" tests/api/interface \
	    -k "test_fuzz or as_it_is_described"

# A leaderboard from the first competitor to the last proof: imported, enrolled, scored, killed, compared, verified. A
# million competitors and scores take a while; COMPETITORS=10000 SCORES=10000 a minute. `make test` has a small share.
million: $(VENV)/.installed
	$(BIN)/python -m benchmarks.million $(if $(COMPETITORS),--competitors $(COMPETITORS)) \
	    $(if $(SCORES),--scores $(SCORES))

# Asks all questions of benchmarks/, an hour or more; QUICK=1 in less than nine minutes; ONLY=1,3 some of them.
bench: $(VENV)/.installed .venv-bench/.installed
	.venv-bench/bin/python -m benchmarks.bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

# Writes what is made from the code: docs/PATHS.md, the tables of docs/LIMITS.md, the examples of the page at /docs, which
# it runs in a shell with curl, the manual page, the list of what the wheel holds and runs with, and what this version
# promises.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.api.documented
	$(BIN)/python -m tests.wheel.manual
	$(BIN)/python -m tests.wheel.sbom
	$(BIN)/python -m tests.upgrades.promised

# Builds the wheels of product and client into dist/. From one commit they are always the same, to the byte, whoever builds
# them, and when.
wheel: $(VENV)/.installed
	rm -rf dist
	for source in . clients/python; do \
	    (cd $$source && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) "$(CURDIR)/$(BIN)/python" -m hatchling build \
	        --target wheel --directory "$(CURDIR)/dist") || exit; \
	done

# Installs the wheels of product and client in an empty environment of each Python on this machine, and starts them.
installed: $(VENV)/.installed-dev
	$(BIN)/pytest -m long tests/wheel/test_installation.py

# Whether this commit can get the tag of its version: it is the main branch, with nothing that is not committed.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
ready:
	@test "$$(git branch --show-current)" = main || { echo "Only the branch main gets a tag."; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "This is not in the commit:"; git status --short; exit 1; }
	@! git rev-parse --quiet --verify refs/tags/$(VERSION) > /dev/null || { echo "There is a tag $(VERSION) already."; exit 1; }

# Runs all tests, lists the wheels and the figures that are older than the product, and prints the commands
# that publish it. It runs none of these.
MEASURED = git grep -oE 'commit [0-9a-f]{7,40}' -- '*.md'
PRODUCT  = engine projections api migrations tallybook_command.py
release: ready test long wheel
	@for wheel in dist/*.whl; do sha256sum $$wheel; $(BIN)/python -m zipfile --list $$wheel; done
	@$(MEASURED) | sort -u | while read page commit; do git diff --quiet $$commit HEAD -- $(PRODUCT) || \
	    echo "$${page%:*} has figures of commit $$commit, and the product is newer."; done
	@echo 'git tag --annotate $(VERSION) --message "Tallybook $(VERSION)"'
	@echo 'git push origin main $(VERSION)'
	@echo twine upload dist/*.whl

# Dumps a database of this version, with an archive and a proof, which every later version must read: for the commit that
# gets the tag.
dump: $(VENV)/.installed-dev
	$(BIN)/python -m tests.upgrades.dumped

# Generates the client for TypeScript from a running service, has tsc look at it, and makes a round trip. It needs npm.
typescript: $(VENV)/.installed-dev
	@command -v npm > /dev/null || { echo "make typescript needs node 20 or later, with npm, and finds none."; exit 1; }
	npm --prefix clients/typescript ci --ignore-scripts --no-audit --no-fund
	$(BIN)/pytest tests/api/clients/test_typescript.py

# Has generators make clients from the document of a running service, compiles them, and makes a round trip with each;
# then compares the documented story with the document. It needs npm, java, and Debian's golang-go and
# golang-gopkg-validator.v2-dev. ONLY=orval tries one.
generators: typescript
	$(PYTHON) -m venv clients/generators/.venv
	clients/generators/.venv/bin/pip install --quiet --disable-pip-version-check -r clients/generators/requirements.txt
	npm --prefix clients/generators ci --ignore-scripts --no-audit --no-fund
	$(BIN)/python -m tests.api.clients.generators $(ONLY)

# Fetches the libraries of the pages again, at the versions that the vendor.json files name, and writes their checksums.
# It needs npm, which runs nothing of them.
vendor: $(VENV)/.installed-dev
	$(BIN)/python -m tests.api.web.vendored

# Takes the pictures of docs/BOARD.md. It needs a Chromium.
screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m tests.api.web.screenshots
	$(BIN)/python -m tests.api.web.console_screenshots

# The campaign against faults, hours; SEEDS=100 a tenth of it, MINUTES=5 of soak, CASES=1,11,simulation some of it.
faults: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.faults.campaign $(if $(SEEDS),--seeds $(SEEDS)) $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED))

# All of it at its smallest size, some minutes; it keeps no results.
faults-small: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.faults.campaign --trial --seeds 20 --minutes 0.5 $(if $(CASES),--cases $(CASES))

# Names the tools that cases need and this machine lacks, with their packages.
faults-tools: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.faults.campaign --tools

# Breaks the core in one small way after another and asks whether any test notices: those drawn by hand, and COUNT at random,
# always the same for one SEED. First it records which test runs which line, which takes longer than all tests do; then it
# asks WORKERS at once: one that a test catches takes some twenty seconds, one that none catches up to half an hour, or
# SECONDS=120. MINUTES=60 begins none after an hour, and the next call goes on there.
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m assurance.mutants.campaign --count $(COUNT) $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) $(if $(WORKERS),--workers $(WORKERS)) \
	    $(if $(SECONDS),--seconds $(SECONDS))

# The peers' libraries, in an environment of their own: the product is measured with its own dependencies alone.
.venv-bench/.installed: requirements.lock benchmarks/requirements.lock
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --require-hashes \
	    -r requirements.lock -r benchmarks/requirements.lock
	touch $@

# What running needs, and what installs the project itself. Everything comes from the lock, by hash, and the lock is
# complete, so pip need not resolve anything; the project is then installed without asking any index.
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-deps
$(VENV)/.installed: $(VENV)/pyvenv.cfg requirements.lock pyproject.toml
	$(PIP_INSTALL) --require-hashes -r requirements.lock
	$(PIP_INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tallybook needs Python 3.11 or later; name one: make PYTHON=python3.13")'
	$(PYTHON) -m venv $(VENV)

# What the checks need on top, and the client, which they try.
$(VENV)/.installed-dev: $(VENV)/.installed $(VENV)/.installed-checks clients/python/pyproject.toml
	$(PIP_INSTALL) --no-build-isolation --editable clients/python
	touch $@

# The packages of the second lock that the first has not, so that both are installed at the same time. Much of it is
# never imported, so nothing is compiled ahead.
$(VENV)/.installed-checks: $(VENV)/pyvenv.cfg requirements.lock requirements-dev.lock
	awk -F '[= ]' 'NR == FNR { known[$$1]; next } /^[^ ]/ { more = !($$1 in known) } more' \
	    requirements.lock requirements-dev.lock > $(VENV)/requirements-checks.lock
	$(PIP_INSTALL) --no-compile --require-hashes -r $(VENV)/requirements-checks.lock
	touch $@

# Resolves the newest versions that pyproject.toml allows, for every platform, with hashes and without addresses.
# What running and the benchmarks need has the same versions as among the checks.
COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
    --no-emit-index-url --upgrade
lock:
	$(COMPILE) --extra dev -o requirements-dev.lock pyproject.toml
	$(COMPILE) --extra build -c requirements-dev.lock -o requirements.lock pyproject.toml
	$(COMPILE) -c requirements-dev.lock -o benchmarks/requirements.lock benchmarks/requirements.txt

clean:
	rm -rf $(VENV) .venv-bench dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .mutants
