# headstart with vLLM's CPU engine. Build it from the root of a checkout:
#   docker build -f deploy/images/cpu.Dockerfile -t headstart:cpu .
FROM python:3.11-slim-bookworm

# The engine's shared library needs libnuma, compiled parts of it need OpenMP's runtime.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libnuma1 libgomp1 \
 && rm -rf /var/lib/apt/lists/*

# The engine wants torch's build for CPUs, which PyPI does not have. torch comes first and pinned. Where
# torchvision and its siblings come built for CUDA, they break `import transformers` and go again.
WORKDIR /build
COPY pyproject.toml VERSION README.md LICENSE ./
COPY src src
COPY client client
COPY events events
COPY server server
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
# hadolint ignore=DL3013
RUN pip install --no-cache-dir torch==2.13.0 \
 && pip install --no-cache-dir '.[cpu,events]' ./client ./events ./server \
 && { python -c 'import torchvision' 2>/dev/null \
      || pip uninstall --yes torchvision torchaudio torchcodec; } \
 && rm -rf /build

# Models are mounted or downloaded to /models; nothing else is written to.
ENV HF_HOME=/models \
    VLLM_NO_USAGE_STATS=1
RUN useradd --uid 10001 --create-home headstart && mkdir /models && chown headstart /models
USER 10001
WORKDIR /home/headstart
VOLUME /models
EXPOSE 8000

# A model takes minutes to load; only after that does an unready server count as ill.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15m --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]

# No shell between: SIGTERM reaches the server, which drains.
ENTRYPOINT ["headstart", "serve"]
CMD ["--config", "/etc/headstart/headstart.toml"]
