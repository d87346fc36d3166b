# The commands of a working day; CI runs the same ones.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TARGET ?= build/tiny/target
DRAFTER ?= build/tiny/drafter
export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1

.PHONY: setup browser lint check format test verdict bench clean

setup: $(VENV)/.ready ## an environment with the CPU engine, from nothing

# torch first and pinned: left to the engine's own requirement, pip takes the CUDA build.
# The engine then brings torchvision and its siblings built for CUDA, which break
# `import transformers` beside a CPU torch; where they work, they stay.
$(VENV)/.ready: pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[cpu,events,dev]' --editable ./lab
	$(BIN)/python -c 'import torchvision' 2>/dev/null || \
		$(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

lint: setup ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

check: lint ## the same, layers and the quick tests, no engine among them; under two minutes
	$(BIN)/pytest -q -m 'not engine and not slow'

browser: ## a Chromium for the tests of pages, where the machine has none and lets us install one
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } || \
		echo 'no Chromium, and none could be installed: tests of pages will be skipped'

test: setup ## every test, real engines included
	$(BIN)/pytest -q

verdict: setup ## every test, and what fails once more: CI's judgement
	$(BIN)/python .ci/verdict.py -q --durations=40 --durations-min=5

bench: setup ## the measured figures; TARGET and DRAFTER name a pair other than untrained models
	$(BIN)/python benchmarks/engine_overhead.py
	[ -e $(TARGET) ] || $(BIN)/headstart lab tiny build/tiny
	$(BIN)/headstart bench --target $(TARGET) --drafter $(DRAFTER) --out build/bench

format: setup
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
