"""The manifests of `deploy/kubernetes` as tests read them: documents, containers, and the sidecar put into a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.sources import PROJECT

Json: TypeAlias = dict[str, Any]

KUBERNETES = PROJECT / "deploy" / "kubernetes"
SIDECAR = KUBERNETES / "sidecar" / "sidecar.yaml"
HELM_VALUES = KUBERNETES / "helm" / "values.yaml"
MONITORING_GROUP = "monitoring.coreos.com/v1"


def load(path: Path) -> Json:
    """The only document of a file."""
    document: Json = yaml.safe_load(path.read_text())
    return document


def objects() -> Iterator[tuple[Path, Json]]:
    """Every file of Kubernetes objects, the sidecar's patch included; not kustomizations and not Helm's values."""
    for path in sorted(KUBERNETES.rglob("*.yaml")):
        if path.name != "kustomization.yaml" and path != HELM_VALUES:
            yield path, load(path)


def exporter_containers() -> Mapping[str, Json]:
    """Our container wherever it is written down."""
    [sidecar] = load(SIDECAR)["spec"]["template"]["spec"]["initContainers"]
    [standalone] = load(KUBERNETES / "standalone" / "deployment.yaml")["spec"]["template"]["spec"]["containers"]
    [helm] = load(HELM_VALUES)["windmill"]["app"]["initContainers"]
    return {"sidecar": sidecar, "standalone": standalone, "helm": helm}


def merge(base: Any, patch: Any) -> Any:
    """A strategic merge as far as the patch needs it: maps key by key, lists of named things by name, ours first."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {**base, **{key: merge(base.get(key), value) for key, value in patch.items()}}
    if isinstance(base, list) and all(isinstance(item, dict) and "name" in item for item in (*base, *patch)):
        names = {item["name"] for item in patch}
        known = {item["name"]: item for item in base}
        return [
            *(merge(known.get(item["name"], {}), item) for item in patch),
            *(item for item in base if item["name"] not in names),
        ]
    return patch


def with_sidecar(pod_spec: Json, kind: str) -> Json:
    """A workload of `kind` around `pod_spec` with the sidecar's patch applied to its pods."""
    patch = load(SIDECAR)["spec"]
    workload: Json = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "windmill-app"},
        "spec": {"template": {"metadata": {"labels": {"app": "windmill-app"}}, "spec": pod_spec}},
    }
    if kind == "Deployment":
        workload["spec"]["selector"] = {"matchLabels": {"app": "windmill-app"}}
    workload["spec"] = merge(workload["spec"], patch)
    return workload


def keys_of(values: Mapping[str, Any], depth: int) -> Sequence[str]:
    """The dotted keys of Helm's values down to `depth`."""
    keys = []
    for key, value in values.items():
        if depth > 1 and isinstance(value, dict):
            keys += [f"{key}.{below}" for below in keys_of(value, depth - 1)]
        else:
            keys.append(key)
    return keys
