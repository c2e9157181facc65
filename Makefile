# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
LOWEST := .venv-lowest
JOBS   ?= 2
# Where test-torch finds a CPU build of PyTorch; empty is the default index, whose wheel pulls gigabytes of GPU libraries.
TORCH_INDEX ?=

# What decides whether a version of a library will do: readers of its models, both compiled lanes, frames, files, the command line.
QUICK  := $(addprefix tests/,space/test_space.py space/test_encoder.py space/test_frames.py models/test_boosters.py models/test_onnx.py \
  test_explainer.py letters test_regressions.py cli/test_cli.py cli/test_ugly_commands.py)

.PHONY: demo serve browser test test-all test-rest test-page test-torch test-lowest check bench bench-peers bench-growth bench-batch bench-service campaign generate docs docs-serve dist sbom clean notebooks pictures installed

$(VENV)/.demo: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing MACE into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing MACE and its test tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@ $(VENV)/.demo

$(PEERS)/.ready: pyproject.toml
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "Installing MACE and its rivals into $(PEERS), apart from the project ..."
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -e . xgboost-cpu matplotlib ortools treecf==0.3.2 dice-ml
	@touch $@

demo: $(VENV)/.demo  ## explain a refused credit applicant, with the proven bounds
	@$(BIN)/mace demo

$(VENV)/.serve: pyproject.toml $(VENV)/.demo
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[service,letters,parquet,plot]"
	@touch $@

serve: $(VENV)/.serve  ## the service and its page, http://127.0.0.1:8000; OPTIONS="--model m.skops --space space.json"
	@$(BIN)/mace serve $(OPTIONS)

bench-service: $(VENV)/.test  ## a hundred clients at once for a minute, on the loopback
	$(BIN)/python benchmarks/service.py

check: $(VENV)/.test  ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check  ## the quick part: lint, types, and some cases of every test
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-all: check  ## everything: lint, types and every case of every test
	$(BIN)/python -m pytest -n $(JOBS)

test-rest: $(VENV)/.test  ## what test-all has beyond test
	$(BIN)/python -m pytest -n $(JOBS) -m slow

browser:  ## Debian's Chromium for the tests of the page, unless a browser is there
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	  echo "Installing Chromium ..." && apt-get install -qq -y --no-install-recommends chromium > /dev/null

test-page: browser $(VENV)/.test  ## the page in a real browser
	$(BIN)/python -m pytest -n $(JOBS) tests/page

$(VENV)/.torch: pyproject.toml $(VENV)/.test
	@echo "Installing PyTorch into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[torch]"
	@touch $@

test-torch: $(VENV)/.torch  ## the tests of PyTorch's networks; TORCH_INDEX=<index of a CPU build> spares the GPU libraries
	$(BIN)/python -m pytest tests/models/test_torch.py

$(LOWEST)/.ready: pyproject.toml tests/support/lowest.py
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@echo "Installing MACE and every dependency at its declared minimum into $(LOWEST) ..."
	@$(LOWEST)/bin/python tests/support/lowest.py > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/lowest.txt -e ".[test]"
	@touch $@

test-lowest: $(LOWEST)/.ready  ## a quick part of the tests with every dependency at its minimum; PYTHON=python3.11 for the lowest Python
	NUMBA_CACHE_DIR=$(LOWEST)/numba $(LOWEST)/bin/python -m pytest -W default $(QUICK)

bench: $(VENV)/.test  ## a small version of the benchmarks
	$(BIN)/python benchmarks/trees.py --rows 30 --models tree,forest10,forest100
	$(BIN)/python benchmarks/hard_trees.py --rows 3 --limit 5
	$(BIN)/python benchmarks/networks.py --rows 30 --models lr,mlp10x10 --milp 3
	$(BIN)/python benchmarks/general.py --problems 5 --limit 5
	$(BIN)/python benchmarks/deadlines.py --quick
	$(BIN)/mace reproduce --samples 10 --datasets adult,compas --smt-limit 3 --jobs $(JOBS) --out benchmarks/results/reproduce

bench-peers: $(PEERS)/.ready  ## the tree lane beside CP-SAT, treecf, DiCE and the SMT lane, a small version
	$(PEERS)/bin/python benchmarks/peers.py --rows 3 --limit 20 --settings "compas forest10,adult forest10,adult forest100"

bench-growth: $(PEERS)/.ready  ## how the tree lane's cost grows; redraws docs/growth-trees.svg
	$(PEERS)/bin/python benchmarks/growth.py

bench-batch: $(PEERS)/.ready  ## rows a second with 1 and 2 processes, beside DiCE, and 100,000 rows of CSV in flat memory
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check pyarrow
	$(PEERS)/bin/python benchmarks/batch.py

campaign: $(VENV)/.test  ## thousands of random problems against brute force; leaves tests/campaigns/*.json
	$(BIN)/python tests/campaigns/smt.py
	$(BIN)/python tests/campaigns/trees.py
	$(BIN)/python tests/campaigns/network.py
	$(BIN)/python tests/campaigns/general.py
	$(BIN)/python tests/campaigns/composites.py
	$(BIN)/python tests/campaigns/readers.py
	$(BIN)/python tests/campaigns/reasons.py
	$(BIN)/python tests/campaigns/sets.py
	$(BIN)/python tests/campaigns/certificates.py
	$(BIN)/python tests/campaigns/certificates_of_parts.py
	$(BIN)/python tests/campaigns/pipelines.py
	$(BIN)/python tests/campaigns/constraints.py
	$(BIN)/python tests/campaigns/several.py
	$(BIN)/python tests/campaigns/decimals.py
	$(BIN)/python tests/campaigns/realism.py
	$(BIN)/python tests/campaigns/files.py
	$(BIN)/python tests/campaigns/degenerate.py
	$(BIN)/python tests/campaigns/interpreted.py

generate: $(VENV)/.test  ## rewrite the generated parts of README and docs
	$(BIN)/python docs/generate.py
	$(BIN)/python tests/support/bad_input.py

notebooks: $(VENV)/.test  ## run the notebooks of the documents, and keep their outputs
	$(BIN)/python docs/notebooks.py

pictures: $(VENV)/.test  ## draw the pictures of the documents
	$(BIN)/python docs/idea.py
	$(BIN)/python docs/pictures.py

installed: $(VENV)/.test  ## measure the packages that are installed, and list their licences
	$(BIN)/python docs/installed.py

docs: generate  ## build the site into site/, strictly: no warning, no dead link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: $(VENV)/.test  ## the site at http://127.0.0.1:8000, made anew as pages change
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

dist: $(VENV)/.test  ## sdist and wheel into dist/, dated by the last commit so that they can be made again
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/support/distribution.py dist

sbom: dist  ## what a default install of the wheel brings, as CycloneDX, into dist/sbom.json
	$(BIN)/python -m venv --clear --without-pip $(VENV)-sbom
	$(BIN)/python -m pip --python $(VENV)-sbom/bin/python install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/cyclonedx-py environment $(VENV)-sbom/bin/python --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json

clean:
	rm -rf $(VENV) $(VENV)-sbom $(PEERS) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis
