# docker build --tag windmill-exporter:0.1.0 .
#
# Two stages on the same base: the first installs into a virtual environment, the second copies it and nothing else. What runs
# needs no shell, no writable file, no home directory and no user of its name:
#     docker run --read-only --cap-drop ALL --env DATABASE_URL windmill-exporter:0.1.0
# A base pinned by digest is better still; a digest belongs to one registry, so add yours.

FROM python:3.13.9-slim-trixie AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source

# The build backend comes first and from the same pins: pip's isolated build would take any version.
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY exporter exporter
RUN ["python3", "-m", "venv", "/opt/windmill-exporter"]
RUN ["/opt/windmill-exporter/bin/python", "-m", "pip", "install", "--constraint", "constraints.txt", "setuptools"]
RUN ["/opt/windmill-exporter/bin/python", "-m", "pip", "install", "--no-build-isolation", "--constraint", "constraints.txt", "."]
RUN ["/opt/windmill-exporter/bin/python", "-m", "pip", "uninstall", "--yes", "setuptools", "pip"]

FROM python:3.13.9-slim-trixie

COPY --from=build /opt/windmill-exporter /opt/windmill-exporter

# Numeric, so that Kubernetes can see that it is not root. Any other uid will do as well.
USER 65532:65532
EXPOSE 9480

# Kubernetes ignores it and has probes of its own (deploy/kubernetes).
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/opt/windmill-exporter/bin/windmill-exporter", "healthcheck"]
ENTRYPOINT ["/opt/windmill-exporter/bin/windmill-exporter"]
