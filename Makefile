# `make help` lists the targets. Everything runs in .venv, made from the hashed lock.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
CLUSTER := hack/local-cluster/cluster
# The first is resolved first, and the others must agree with it.
EXTRAS := dev operator evaluator cli
UPGRADE ?=
# Large packages that few processes import.
RARELY := /(cfnlint|grimp|kubernetes|moto|mypy|networkx|pip|samtranslator|setuptools|sympy)/
# Where a cluster of your own is used, nothing is brought up or down.
ifdef STAYER_KUBECONFIG
WITH_CLUSTER := export KUBECONFIG="$$STAYER_KUBECONFIG";
else
WITH_CLUSTER := $(CLUSTER) up; set -a; eval "$$($(CLUSTER) env)"; set +a;
endif

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

# The lock's date is the environment's: a changed lock is installed again. uv installs several
# times faster than the pip of older machines. It compiles nothing, and where Python may write no
# bytecode every process would compile all that it imports: tests start hundreds.
.venv/installed: requirements/dev.txt requirements/tools.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
	  || { echo "python3 -m venv failed; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/tools.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 -x '$(RARELY)' .venv/lib
	@touch $@

.PHONY: venv
venv: .venv/installed ## The Python environment, from the hashed lock

.PHONY: demo
demo: .venv/installed ## Cluster, images, chart, example tasks, one run, its scores
	@$(WITH_CLUSTER) hack/demo

.PHONY: test
test: .venv/installed ## Every test, those on the local cluster included (starts it)
	@$(WITH_CLUSTER) STAYER_CLUSTER=1 hack/install >&2; STAYER_CLUSTER=1 $(BIN)/pytest -q

.PHONY: test-unit
test-unit: .venv/installed ## The fast tests: no cluster
	@$(BIN)/pytest -q -m "not cluster" -n auto --dist loadfile

# Go and helm are the machine's or, once it is up, the local cluster's; `make test` brings both and
# runs these two checks as tests.
.PHONY: lint
lint: .venv/installed ## ruff, mypy --strict, import contracts, go vet, helm lint; edits nothing
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@eval "$$($(CLUSTER) env 2>/dev/null)"; PATH="$${STAYER_BIN:+$$STAYER_BIN:}$$PATH:/usr/local/go/bin"; left=""; \
	  if command -v go >/dev/null; then (cd images/runner && go vet ./...); else left="go vet"; fi; \
	  if command -v helm >/dev/null; then helm lint --strict --quiet helm/stayer; else left="$${left:+$$left, }helm lint"; fi; \
	  if [ -n "$$left" ]; then echo "lint: left out, as the program is missing: $$left (make test brings it)"; fi

.PHONY: fix
fix: .venv/installed ## Format, and mend what ruff can
	@$(BIN)/ruff check --fix . || true
	@$(BIN)/ruff format .

.PHONY: generate
generate: .venv/installed ## CRDs from the models, the chart's copies of them
	@$(BIN)/python -m stayer_operator.api.generate crds
	@helm/generate

.PHONY: verify
verify: .venv/installed ## Fail if a generated file is stale
	@$(BIN)/python -m stayer_operator.api.generate --check crds
	@helm/generate --check

.PHONY: cluster-up
cluster-up: ## A real single-node Kubernetes on this machine (first time: 20 to 30 minutes on 2 cores)
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Remove it without trace
	@$(CLUSTER) down

.PHONY: images
images: .venv/installed ## Build what changed and push it to the registry
	@$(WITH_CLUSTER) $(BIN)/python images/build

.PHONY: install
install: .venv/installed ## Images, then the chart into the cluster
	@$(WITH_CLUSTER) hack/install

.PHONY: bench
bench: .venv/installed ## Measurements: writes per trial, starts, scale, snapshots
	@$(WITH_CLUSTER) hack/bench

.PHONY: lock
lock: .venv/installed ## Write requirements/*.txt from pyproject.toml; UPGRADE=--upgrade for newer versions
	@for extra in $(EXTRAS); do \
	  echo "requirements/$$extra.txt"; \
	  $(BIN)/uv pip compile pyproject.toml --quiet $$( test $$extra = dev || echo --constraint requirements/dev.txt ) --extra $$extra $(UPGRADE) --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --custom-compile-command "make lock" -o requirements/$$extra.txt; \
	done
	@$(BIN)/uv pip compile requirements/tools.in --quiet $(UPGRADE) --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --custom-compile-command "make lock" -o requirements/tools.txt
