# Everything a newcomer needs: `make demo` and `make test` set up what they use.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
READY := $(VENV)/.ready
need-uv = @[ -x "$(UV)" ] || { $(PYTHON) -m venv .tools \
  && .tools/bin/pip install --quiet --require-hashes --requirement scripts/uv.lock; }
WORKERS ?= 2

# What pytest makes of its files is kept, wherever Python is told to keep nothing compiled: to make
# it anew takes each process half a minute.
unexport PYTHONDONTWRITEBYTECODE

PEERS := .tools/peers/.ready

MKDOCS := .tools/docs/.ready

PIP_AUDIT := .tools/audit/bin/pip-audit

ARCHIVE := dist/blizzard-env.tar.gz

.PHONY: help setup java demo check test test-quick test-spark test-stores test-ops browser live-images archive wheel \
  test-wheel test-helm helm-renderings test-spark-versions test-cluster interop bench bench-all bench-growth \
  bench-wide bench-slots bench-commits bench-cold bench-adopt bench-live bench-open-page bench-upkeep features config-schema openapi dashboards commands-page \
  tutorial docs docs-serve scaling format lock audit-deps sbom clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with everything pinned in requirements.lock

$(READY): requirements.lock pyproject.toml
	@scripts/need-python $(PYTHON)
	$(need-uv)
	@[ -x $(BIN)/python ] || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -c "import blizzard.worker.ndjson.compiled.fast, blizzard.worker.ndjson.forms.framer"
	@touch $(READY)

java: ## see that Java 17 or newer is there; install it where that is allowed
	@scripts/need-java

demo: setup java ## sample NDJSON -> blizzard on local Spark -> Parquet -> penguin -> Delta table
	@$(BIN)/blizzard demo --dir demo

check: setup ## ruff (with its security rules), mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: test-quick test-spark ## the whole test suite

test-quick: setup ## the tests that need no Spark, on all cores
	$(BIN)/pytest -q -m "not spark and not interop and not stores and not browser and not ops and not helm" -n $(WORKERS) \
	  --dist loadfile --no-loadscope-reorder

test-spark: setup java ## the tests on a real local Spark; installs strace where that is allowed
	@scripts/need-strace
	$(BIN)/blizzard warm
	$(BIN)/pytest -q -m "spark and not cluster" -n $(WORKERS) --dist loadgroup

test-stores: setup ## the tests on object stores that others wrote; fetches them (needs npm and Go)
	@STORE=$(STORE) scripts/need-stores $(UV) $(BIN)/python
	STORE=$(STORE) $(BIN)/pytest -q -m stores -n $(WORKERS) --dist loadfile tests/stores

live-images: setup ## take the pictures of docs/live.md from a lake with a history
	@CHROMIUM=$$(scripts/need-chromium) && export CHROMIUM && $(BIN)/python -m tests.support.live_images

browser: setup ## the tests of the live page in a real browser; installs Debian's chromium where that is allowed
	@CHROMIUM=$$(scripts/need-chromium) && export CHROMIUM && \
	  $(BIN)/pytest -q -m browser -n $(WORKERS) --dist loadfile tests/browser

test-ops: setup ## alerts and dashboards on a real run, in Prometheus; fetches it
	@scripts/need-prometheus
	$(BIN)/pytest -q -m ops -n $(WORKERS) --dist load tests/ops

archive: $(ARCHIVE) ## what executors of a cluster need, for spark.archives: dist/blizzard-env.tar.gz

# Made anew when the code or the versions change. Sources keep their times in it, so that what was
# compiled here is not compiled again on every executor.
$(ARCHIVE): requirements.lock pyproject.toml $(shell find src -name '*.py') | $(READY)
	@rm -rf dist/env && mkdir -p dist/env
	$(UV) pip compile --quiet --group executor --constraint requirements.lock --generate-hashes \
	  --no-header --no-annotate --python $(BIN)/python -o dist/executor.lock
	$(UV) pip install --quiet --python $(BIN)/python --target dist/env --no-deps \
	  --require-hashes --compile-bytecode --requirements dist/executor.lock
	$(UV) pip install --quiet --python $(BIN)/python --target dist/env --no-deps \
	  --no-build-isolation --compile-bytecode --reinstall-package blizzard-penguin .
	@# Of the services that botocore describes, those that give keys.
	find dist/env/botocore/data -mindepth 1 -maxdepth 1 -type d \
	  -not -name sts -not -name sso -not -name sso-oidc -not -name signin -exec rm -r {} +
	PYTHONPATH=dist/env $(BIN)/python -c "import blizzard.worker.ndjson.compiled.fast, blizzard.worker.ndjson.forms.framer"
	set -o pipefail; tar -C dist/env --format=posix --exclude='*/tests' --exclude=./pyarrow/include \
	  --exclude=./bin --exclude='*/direct_url.json' --exclude='*/uv_*.json' -cf - . \
	  | gzip -1 > $(ARCHIVE).part
	@mv $(ARCHIVE).part $(ARCHIVE)
	@rm -rf dist/env

wheel: setup ## build the wheel of both programs, and the locks of what it needs: dist/*.whl, dist/blizzard.lock, dist/penguin.lock
	@rm -f dist/blizzard_penguin-*.whl
	$(BIN)/hatchling build -t wheel
	$(UV) pip compile --quiet pyproject.toml --extra blizzard --universal --constraint requirements.lock \
	  --generate-hashes --no-header --no-annotate --python $(BIN)/python -o dist/blizzard.lock
	$(UV) pip compile --quiet pyproject.toml --universal --constraint requirements.lock \
	  --generate-hashes --no-header --no-annotate --python $(BIN)/python -o dist/penguin.lock

test-wheel: wheel java ## install the wheel into empty environments, and use it there
	@scripts/try-wheel $(UV) $(BIN)/python

# Not a part of `make test`: some 400 MB to download for each version.
test-spark-versions: setup java ## the end-to-end tests on every version of Spark that is allowed; downloads them
	@scripts/try-spark-versions $(UV) $(BIN)/python $(VERSIONS)

# helm comes as source from Go's proxy: some minutes and 200 MB, once, so it
# is no part of .ci/run. What helm renders is kept in tests/data/helm, which `make test` checks against the chart.
.tools/bin/helm: | $(READY)
	GOBIN=$(abspath .tools/bin) go install helm.sh/helm/v3/cmd/helm@v3.22.0

test-helm: setup .tools/bin/helm ## lint the Helm chart, render it and compare with what is kept; fetches helm, needs Go
	.tools/bin/helm lint --strict deploy/helm
	$(BIN)/pytest -q -m helm tests/unit/test_helm.py

helm-renderings: setup .tools/bin/helm ## render the Helm chart anew into tests/data/helm, after a change of it
	$(BIN)/python -m tests.support.charts

test-cluster: setup java archive ## the tests on a standalone cluster: a master and two workers
	$(BIN)/blizzard warm
	$(BIN)/pytest -q -m cluster -p no:randomly tests/cluster

interop: setup java ## Spark with Delta on the same tables; fetches the Delta package
	$(BIN)/pytest -q -m interop -n $(WORKERS) --dist loadfile tests/interop

# Contestants that nothing else needs are kept apart from .venv, pinned by a lock of their own.
$(PEERS): bench/peers.lock | $(READY)
	$(UV) venv --quiet --clear --python $(PYTHON) .tools/peers
	$(UV) pip install --quiet --python .tools/peers/bin/python --no-deps --require-hashes \
	  --requirements bench/peers.lock
	@touch $(PEERS)

bench: setup java $(PEERS) ## blizzard against its peers, some minutes; writes docs/performance.md
	$(BIN)/blizzard warm
	$(BIN)/python -m bench.race --write

bench-all: setup java $(PEERS) ## the same at full size, with the long ones; an hour
	$(BIN)/blizzard warm
	$(BIN)/python -m bench.race --all --write

bench-growth: setup ## measure what grows with the history; writes bench/README.md
	$(BIN)/python -m bench.growth --most 1000000 --write

bench-wide: setup java archive ## measure two workers of one core against one; writes bench/README.md
	$(BIN)/python -m bench.wide --write

bench-slots: setup java ## measure two, four and eight tasks at once; writes bench/README.md
	$(BIN)/python -m bench.slots --write

bench-commits: setup java ## measure a commit to tables of up to a million files; writes bench/README.md
	$(BIN)/python -m bench.commits --most 1000000 --spark --write

bench-cold: setup java ## measure what starts of the programs cost; writes bench/README.md
	$(BIN)/python -m bench.cold --spark 3 --write

bench-adopt: setup ## measure the adoption of folders of up to a million files; writes bench/README.md
	$(BIN)/python -m bench.adoption --most 1000000 --write

bench-live: setup ## measure what the live page costs; writes docs/live.md
	$(BIN)/python -m bench.live --write

bench-open-page: setup java ## measure what the live page costs a real run; writes docs/live.md
	$(BIN)/blizzard warm
	$(BIN)/python -m bench.open_page --write

bench-upkeep: setup ## measure fsck and vacuum of tables of up to a million files; writes bench/README.md
	$(BIN)/python -m bench.upkeep --most 1000000 --write

features: setup ## write docs/table-features.md from the code
	$(BIN)/python -m tests.support.features_page

config-schema: setup ## write the JSON Schema of configurations from the code and docs/configuration.md
	$(BIN)/python -m tests.support.config_schema

openapi: setup ## write docs/openapi.json, the description of the live page's API, from the code
	$(BIN)/python -m liveview.answers > docs/openapi.json

dashboards: setup ## write ops/grafana/*.json from ops/grafana/panels.yml
	$(BIN)/python -m tests.support.dashboards

commands-page: setup ## write docs/commands.md from the programs' own help
	$(BIN)/python -m tests.support.commands_page

tutorial: setup java ## follow docs/tutorial.md and write into it what is printed; some minutes
	$(BIN)/python -m tests.support.tutorial

# What the site is built with is kept apart from .venv, pinned by a lock of its own.
$(MKDOCS): docs/requirements.lock
	@scripts/need-python $(PYTHON)
	$(need-uv)
	$(UV) venv --quiet --clear --python $(PYTHON) .tools/docs
	$(UV) pip install --quiet --python .tools/docs/bin/python --no-deps --require-hashes \
	  --requirements docs/requirements.lock
	@touch $(MKDOCS)

docs: $(MKDOCS) ## build the documentation site: dist/site/index.html; warnings are errors
	@# Not --quiet: then warnings would not be counted.
	NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --strict

docs-serve: $(MKDOCS) ## serve the site on http://127.0.0.1:8000 while you write
	NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs serve --strict

scaling: setup ## compute docs/scaling.md from what was measured
	$(BIN)/python -m bench.scaling --write

format: setup ## format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lock: ## resolve the dependencies anew into requirements.lock
	$(UV) pip compile --quiet --upgrade pyproject.toml --all-extras --group dev --universal \
	  --generate-hashes --python-version 3.11 --no-header -o requirements.lock
	$(UV) pip compile --quiet --upgrade bench/peers.in --universal \
	  --generate-hashes --python-version 3.11 --no-header -o bench/peers.lock
	$(UV) pip compile --quiet --upgrade docs/requirements.in --universal \
	  --generate-hashes --python-version 3.11 --no-header -o docs/requirements.lock
	@for tool in uv pip-audit; do echo $$tool | $(UV) pip compile --quiet --upgrade - --universal \
	  --generate-hashes --python-version 3.11 --no-header --no-annotate -o scripts/$$tool.lock; done

# With --strict a package that it knows nothing of is a failure:
# where the service cannot be reached, that is said, and nothing passes for audited.
.tools/audit/.ready: scripts/pip-audit.lock | $(READY)
	$(UV) venv --quiet --clear --python $(PYTHON) .tools/audit
	$(UV) pip install --quiet --python .tools/audit/bin/python --no-deps --require-hashes \
	  --requirements scripts/pip-audit.lock
	@touch $@

audit-deps: .tools/audit/.ready ## look for known vulnerabilities in what requirements.lock pins; asks a service
	@$(PIP_AUDIT) --strict --require-hashes --disable-pip --requirement requirements.lock || { \
	  echo "audit-deps: not passed. 'could not be audited' is no finding: the service that pip-audit" \
	    "asks cannot be reached from here, or does not know the package." >&2; exit 1; }

sbom: setup ## write what the programs are made of, as CycloneDX: dist/sbom.json
	@mkdir -p dist
	$(BIN)/python scripts/sbom > dist/sbom.json.part
	@mv dist/sbom.json.part dist/sbom.json

clean: ## remove what make made
	rm -rf $(VENV) .tools demo dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
