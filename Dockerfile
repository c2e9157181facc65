# The service in an image. Nothing in it runs as root, and nothing but /jobs and /tmp is written to:
#
#   docker build -t mace .
#   docker run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -p 127.0.0.1:8000:8000 mace
#
# Your own model, with jobs that outlive the container:
#
#   docker run --rm --read-only --tmpfs /tmp -v "$PWD/served:/served:ro" -v mace-jobs:/jobs -e MACE_API_KEYS -p 127.0.0.1:8000:8000 mace \
#     mace serve --host 0.0.0.0 --jobs /jobs --model /served/m.skops --space /served/space.json --data /served/people.csv --target good

FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN python -m venv /mace && /mace/bin/pip install --no-cache-dir "/source[service,letters,parquet,plot]"
# Compiled once, here: workers of a service never compile.
ENV NUMBA_CACHE_DIR=/mace/kernels NUMBA_CPU_NAME=generic
RUN /mace/bin/mace warmup

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /tmp --shell /usr/sbin/nologin mace && mkdir /jobs && chown mace /jobs && chmod 700 /jobs
COPY --from=build /mace /mace
ENV PATH=/mace/bin:$PATH NUMBA_CACHE_DIR=/mace/kernels NUMBA_CPU_NAME=generic MACE_COMPILE=never PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=/tmp/matplotlib
USER 10001
VOLUME /jobs
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "from mace.client import Client; raise SystemExit(not Client('http://127.0.0.1:8000', timeout=4).ready())"]
CMD ["mace", "serve", "--host", "0.0.0.0", "--jobs", "/jobs"]
