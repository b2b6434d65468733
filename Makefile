# veldt: every job sets itself up. Needs: make, Python >= 3.11. `make help` lists the jobs.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
TORCH_INDEX_URL ?=
ARGS ?=
# Node's folder goes in front of PATH: the machine's own if new enough, else the one from PyPI.
WITH_NODE = PATH="$$(bash tools/node-path.sh):$$PATH"
CLIENT_SOURCES := $(shell find web_client -path web_client/node_modules -prune -o -path web_client/dist -prune -o -type f -print 2>/dev/null)

.PHONY: help setup play play-livekit test quick check types trace bench pictures docker-proof lock clean fixtures test-lingbot

help: ## list the jobs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.torch: requirements/torch.txt
	@bash tools/find-python.sh "$(VENV)"
	@echo "installing Python dependencies: several GB, some minutes, once"
	@if [ -n "$(TORCH_INDEX_URL)" ]; then \
		$(PY) -m pip install --quiet --index-url "$(TORCH_INDEX_URL)" -r requirements/torch.txt; \
	else $(PY) -m pip install --quiet -r requirements/torch.txt; fi
	@touch $@

$(VENV)/.ready: $(VENV)/.torch requirements/lock.txt pyproject.toml
	@$(PY) -m pip install --quiet -r requirements/lock.txt
	@$(PY) -m pip install --quiet --no-deps --editable .
	@touch $@

web_client/node_modules/.ready: web_client/package-lock.json $(VENV)/.ready
	@echo "installing the page's dependencies"
	@cd web_client && $(subst tools/,../tools/,$(WITH_NODE)) npm ci --silent --no-progress
	@touch $@

web_client/dist/index.html: web_client/node_modules/.ready $(CLIENT_SOURCES)
	@cd web_client && $(subst tools/,../tools/,$(WITH_NODE)) npm run --silent build
	@touch $@

setup: $(VENV)/.ready web_client/dist/index.html ## install everything and build the page

play: setup ## play in the browser: prints the address (ARGS="--port 8001" for more)
	@exec $(VENV)/bin/veldt serve $(ARGS)

play-livekit: setup ## the same through a LiveKit on this machine
	@exec bash tools/play-livekit.sh $(ARGS)

test: setup ## all tests: Python, TypeScript, browser, LiveKit (PROCESSES=2: two at a time)
	@bash tools/chromium.sh --install >/dev/null
	@bash tools/livekit-server.sh --install >/dev/null
	@cd web_client && $(subst tools/,../tools/,$(WITH_NODE)) npm test --silent
	@CHROMIUM="$$(bash tools/chromium.sh)" bash tools/pytest.sh $(PY) $(ARGS)

quick: $(VENV)/.ready web_client/node_modules/.ready ## pure and unit tests, seconds
	@PYTHONASYNCIODEBUG=1 $(PY) -m pytest -q -x tests/admission tests/pipeline/streaming tests/server/media tests/contract $(ARGS)

test-lingbot: $(VENV)/.ready ## LingBot parity (LINGBOT_FIXTURES=DIR for other fixtures)
	@$(PY) -m pytest -q tests/pipeline/lingbot $(ARGS)

check: setup ## lint, types, import rule
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo
	@cd web_client && $(subst tools/,../tools/,$(WITH_NODE)) npm run --silent check

types: $(VENV)/.ready web_client/node_modules/.ready ## regenerate the page's types from the server's models
	@$(PY) -m server.protocol.schema
	@cd web_client && $(subst tools/,../tools/,$(WITH_NODE)) npm run --silent types

trace: setup ## play two sessions for ten seconds; writes var/trace.json for ui.perfetto.dev
	@$(PY) -m benchmarks.trace $(ARGS)

bench: setup ## print every figure and write benchmarks/results/latest.json
	@bash tools/chromium.sh --install >/dev/null
	@bash tools/livekit-server.sh --install >/dev/null
	@CHROMIUM="$$(bash tools/chromium.sh)" $(PY) -m benchmarks.run $(ARGS)

docker-proof: setup ## run the Dockerfile's steps without Docker and play the result (root; 20 minutes)
	@bash tools/livekit-server.sh --install >/dev/null
	@$(PY) -m tests.docker.proof $(ARGS)

pictures: setup ## take the pictures of the docs again: every state of the page, and a walk
	@CHROMIUM="$$(bash tools/chromium.sh --install)" $(PY) -m pytest -q tests/e2e/page/test_states.py \
		tests/e2e/page/test_layers.py tests/e2e/page/test_pictures.py --keep-pictures docs/pictures $(ARGS)

lock: $(VENV)/.ready ## renew requirements/lock.txt
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" bash requirements/compile.sh

clean: ## remove what the jobs made
	rm -rf $(VENV) web_client/node_modules web_client/dist var
