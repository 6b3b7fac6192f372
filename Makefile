# Every target that needs Python makes .venv first, from requirements.lock; see scripts/bootstrap.
BIN := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help bootstrap demo test test-browser test-vm lint fmt bench bench-incidents soak docs site gallery dist check clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bootstrap: ## Make .venv with everything that is needed
	@scripts/bootstrap

demo: bootstrap ## A small experiment, from question to report
	@scripts/demo $(ARGS)

test: bootstrap ## All tests; ARGS="-m 'not server'" leaves out those that need PostgreSQL
	$(BIN)/python scripts/test.py --durations=20 $(ARGS)

test-browser: bootstrap ## Reports of all sizes in Chromium; PICTURES=FOLDER keeps what they look like
	$(BIN)/pytest tests/browser -q -p no:xdist --all-pages $(ARGS)

test-vm: bootstrap ## Real virtual machines: made, booted into two kernels, stopped
	$(BIN)/pytest tests/vms -q -rs -p no:xdist --soak vm-boots $(ARGS)

lint: bootstrap ## Rules of style, types and the one-way rule between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: bootstrap ## Format, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bootstrap ## Measure pgstrata itself; ONLY=live,live-runs LOADS=5,equal names a part
	$(BIN)/python bench $(ARGS)

bench-incidents: bootstrap ## Known causes injected into a server: found and named? MINUTES=60 records more first
	ONLY=incidents $(BIN)/python bench $(ARGS)

soak: bootstrap ## What is too long for each change, in parts of at most an hour; ARGS=--list
	$(BIN)/python soak $(ARGS)

docs: bootstrap ## Write the generated references anew
	$(BIN)/typer pgstrata.cli.main utils docs --name pgstrata --output docs/reference/command-line.md
	$(BIN)/python -m pgstrata.experiment.schema > docs/reference/experiment.schema.json
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/guards.py
	$(BIN)/python scripts/workloads.py
	$(BIN)/python scripts/metrics.py
	$(BIN)/python scripts/messages.py
	$(BIN)/python scripts/man.py
	$(BIN)/python scripts/verdicts.py

site: bootstrap ## Build the manual as a site into build/site/html; broken links fail
	@scripts/site

gallery: bootstrap ## Write docs/gallery from STUDIES="a b"; without, a demo and three examples are measured first
	$(BIN)/python scripts/gallery.py $(STUDIES)

dist: bootstrap ## Build the wheel and the sdist into dist/, and check them
	@scripts/dist

check: lint test ## What has to pass before a change is merged

clean: ## Remove caches and the demo; .venv stays
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis demo build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
