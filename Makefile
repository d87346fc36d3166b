# The commands of a working day; CI runs the same ones.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCHVISION ?= $(firstword $(wildcard ../shared/wheels/torchvision-*.whl))
TARGET ?= build/tiny/target
DRAFTER ?= build/tiny/drafter
COMPILE := $(BIN)/python -m compileall -qq -x '/(tests?|transformers/models)/'
export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: setup browser rtsp mqtt redis promtool lint check format test verdict nightly bench figures \
	dist licences seams reference site first-hour clean

setup: $(VENV)/.ready ## an environment with the CPU engine, from nothing

# torch first and pinned: left to the engine's own requirement, pip takes the CUDA build.
# The engine then brings torchvision and its siblings built for CUDA, which break
# `import transformers` beside a CPU torch; where they work, they stay. Without them the tests of
# the models that need torchvision are skipped, unless TORCHVISION names a build that works.
# pip compiles 20,000 files one by one, which takes minutes; compileall does it on all cores, the
# first while pip, on one core, makes out what belongs together. Python compiles what is left out
# when somebody imports it, as few do. Each of ours would be built in an environment of its own,
# with the same setuptools in each.
$(VENV)/.ready: pyproject.toml $(wildcard */pyproject.toml) VERSION
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile torch==2.13.0 'setuptools>=77'
	$(COMPILE) $(VENV)/lib/python*/site-packages/torch $(VENV)/lib/python*/site-packages/sympy & \
		$(BIN)/pip install --quiet --no-compile --no-build-isolation \
		--editable '.[cpu,events,camera,fleet,mqtt,redis,train,docs,dev]' \
		--editable ./client --editable ./events --editable ./server --editable ./research --editable ./lab; \
		status=$$?; wait; exit $$status
	$(BIN)/python -c 'import torchvision, torchaudio' 2>/dev/null || \
		$(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	[ -z '$(TORCHVISION)' ] || $(BIN)/python -c 'import torchvision' 2>/dev/null || \
		{ echo 'torchvision for the CPU: $(TORCHVISION)' && \
		$(BIN)/pip install --quiet --no-compile --no-deps '$(TORCHVISION)'; }
	$(COMPILE) -j 0 $(VENV)/lib || true # some packages hold templates
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

rtsp: ## GStreamer's RTSP server for the tests of cameras, likewise
	@/usr/bin/python3 -c 'import gi; gi.require_version("GstRtspServer", "1.0")' 2>/dev/null || \
		{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends \
		gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-good; } || \
		echo 'no RTSP server, and none could be installed: tests of RTSP cameras will be skipped'

mqtt: ## a Mosquitto broker for the tests of MQTT, likewise
	@command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ] || \
		{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends mosquitto; } || \
		echo 'no Mosquitto, and none could be installed: tests of MQTT will be skipped'

redis: ## a Redis server for the tests of stored memories, likewise
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || \
		{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends redis-server; } || \
		echo 'no Redis, and none could be installed: tests of it will be skipped'

promtool: ## Prometheus' checker for the tests of alerts, likewise; its service is not started
	@command -v promtool >/dev/null || \
		{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
		apt-get update -qq && RUNLEVEL=1 apt-get install -qq -y --no-install-recommends prometheus; } || \
		echo 'no promtool, and none could be installed: tests of alerts will be skipped'

test: setup ## every test, real engines included, in two processes
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder

verdict: setup ## the same, what fails once more, and the ten slowest: CI's judgement
	$(BIN)/python .ci/verdict.py -q --durations=10

nightly: setup ## what takes hours: fuzzes, the whole promise, every guide; PARTS names some
	$(BIN)/python .ci/nightly.py $(PARTS)

bench: setup ## the measured figures; TARGET and DRAFTER name a pair other than untrained models
	$(BIN)/python -m benchmarks.engine_overhead
	[ -e $(TARGET) ] || $(BIN)/headstart lab tiny build/tiny
	$(BIN)/headstart bench --target $(TARGET) --draft-model $(DRAFTER) --out build/bench

figures: setup ## every table and the picture of README.md and docs, from benchmarks/results
	$(BIN)/python -m benchmarks.figures

dist: setup ## wheel and sdist of every distribution, the same bytes from the same commit
	$(BIN)/python .ci/distributions.py dist

licences: setup ## docs/licences.md, from what is installed here
	$(BIN)/python .ci/licences.py docs/licences.md

seams: setup ## what headstart touches in the vLLM that is installed, with digests
	$(BIN)/python -m tools.vllm_seams

reference: setup ## the pages of docs/reference, from the code
	$(BIN)/python -m reference

site: setup ## the documents as a site in build/site; a warning is an error
	$(BIN)/mkdocs build --strict
	@echo 'to read it: $(BIN)/python -m http.server --directory build/site --bind 127.0.0.1 8080'

first-hour: ## README's commands and a first live answer, from nothing; the seconds of each
	$(PYTHON) -m tests.soak.first_hour

format: setup
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
