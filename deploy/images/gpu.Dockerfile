# headstart on vLLM's own image for NVIDIA GPUs. Build it from the root of a checkout:
#   docker build -f deploy/images/gpu.Dockerfile -t headstart:gpu .
ARG VLLM_IMAGE=vllm/vllm-openai:v0.32.0
# hadolint ignore=DL3006
FROM ${VLLM_IMAGE}

# vLLM is there already, with the torch that it was built for: the extra [gpu] would ask for it again.
WORKDIR /build
COPY pyproject.toml VERSION README.md LICENSE ./
COPY src src
COPY client client
COPY events events
COPY server server
# hadolint ignore=DL3013
RUN pip install --no-cache-dir '.[events]' ./client ./events ./server && rm -rf /build

ENV HF_HOME=/models \
    VLLM_NO_USAGE_STATS=1
RUN useradd --uid 10001 --create-home headstart && mkdir /models && chown headstart /models
USER 10001
WORKDIR /home/headstart
VOLUME /models
EXPOSE 8000

# A model takes minutes to load; only after that does an unready server count as ill.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15m --retries=3 \
  CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]

# No shell between: SIGTERM reaches the server, which drains.
ENTRYPOINT ["headstart", "serve"]
CMD ["--config", "/etc/headstart/headstart.toml"]
