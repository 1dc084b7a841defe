# `make demo` and `make test` need python3 (3.11 to 3.14, with venv), make, and the network for the first time.
# Choose another interpreter with `make test PYTHON=python3.13`, another environment with `make test VENV=/tmp/venv`.

VENV ?= .venv
DEMO_ARGS ?=
LOAD_ARGS ?= --seconds 300
BENCH ?= $(filter-out pooled_load,$(patsubst benchmarks/%.py,%,$(wildcard benchmarks/[a-z]*.py)))
TEST_ARGS ?=

.PHONY: help demo test lint bench load screenshots clean

help:
	@echo "make demo   a simulated cluster with the exporter (DEMO_ARGS=\"--seconds 60\")"
	@echo "make test   every test (TEST_ARGS=\"tests/fairness\")"
	@echo "make lint   ruff, mypy, and whether the generated dashboards are current"
	@echo "make bench  measurements, printed as ratios (BENCH=name for one of them)"
	@echo "make load   five minutes of two replicas behind PgBouncer (LOAD_ARGS=\"--seconds 60\")"
	@echo "make screenshots  the pictures in docs/, taken anew from the demo (needs chromium)"
	@echo "make clean  remove the virtual environment and caches"

demo: $(VENV)/demo.stamp
	@$(VENV)/bin/python -m exporter demo $(DEMO_ARGS)

test: $(VENV)/dev.stamp
	@sh tests/install-packages.sh
	@$(VENV)/bin/python -m pytest -q --numprocesses 2 --dist loadfile $(TEST_ARGS)

lint: $(VENV)/dev.stamp
	@$(VENV)/bin/ruff format --check --quiet --diff .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/python -m dashboards.build --check
	@$(VENV)/bin/python -m deploy.build --check
	@echo "lint: no complaints"

bench: $(VENV)/dev.stamp
	@for name in $(BENCH); do echo "== $$name"; $(VENV)/bin/python -m benchmarks.$$name || exit 1; done

load: $(VENV)/dev.stamp
	@sh tests/install-packages.sh
	@$(VENV)/bin/python -m benchmarks.pooled_load $(LOAD_ARGS)

screenshots: $(VENV)/dev.stamp
	@$(VENV)/bin/python -m docs.screenshots

clean:
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A changed pin or dependency makes the environment anew: what was installed before never lingers.
$(VENV)/created.stamp: pyproject.toml constraints.txt .ci/make-venv
	@sh .ci/make-venv create "$(VENV)" "$(PYTHON)"

$(VENV)/demo.stamp: $(VENV)/created.stamp
	@sh .ci/make-venv install "$(VENV)" demo

$(VENV)/dev.stamp: $(VENV)/created.stamp
	@sh .ci/make-venv install "$(VENV)" dev
