"""The manifests: valid for Kubernetes, hardened, and in step with what the product really has and does."""

from __future__ import annotations

import copy
import re
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it ships no types
import pytest
import yaml
from aiohttp import ClientSession

from exporter import __version__
from exporter.config import WebConfig
from exporter.config_file import ConfigFile
from exporter.config_loading import WINDMILL_VARIABLES, build_config
from exporter.database.url import parse_url
from exporter.flags import parse_flags
from tests.deploy.dockerfile import read_stages
from tests.deploy.manifests import (
    HELM_VALUES,
    KUBERNETES,
    MONITORING_GROUP,
    SIDECAR,
    Json,
    exporter_containers,
    keys_of,
    load,
    objects,
    with_sidecar,
)
from tests.product import service
from tests.roles import SETTINGS_VIEW

OLDEST = "1.29"  # native sidecars are on by default since then
NEWEST = "1.37"

# Pods as the official chart makes them, reduced to what a patch could collide with.
SERVER: Json = {
    "terminationGracePeriodSeconds": 40,
    "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
    "initContainers": [{"name": "somebody-elses", "image": "other:1"}],
    "containers": [{"name": "windmill-app", "image": "windmill:1", "ports": [{"containerPort": 8000}]}],
}
WORKER: Json = {
    "terminationGracePeriodSeconds": 604800,
    "containers": [{"name": "windmill-worker", "image": "windmill:1", "securityContext": {"privileged": True}}],
    "volumes": [{"name": "windmill-database-url", "secret": {"secretName": "windmill-database"}}],
}

# As the README of chart 4.0.245 documents them.
CHART_KEYS = {
    "extraDeploy",
    "windmill.databaseSecret",
    "windmill.databaseUrlSecretName",
    "windmill.databaseUrlSecretKey",
    "windmill.app.labels",
    "windmill.app.initContainers",
    "windmill.app.extraContainers",
    "windmill.app.volumes",
}


def validate(document: Json, version: str) -> None:
    """Against Kubernetes' own schema, in which no field is unknown."""
    kubernetes_validate.validate(document, version, strict=True)


def pod_specs() -> dict[str, Json]:
    """The pods that our container ends up in."""
    return {
        "server": with_sidecar(SERVER, "Deployment")["spec"]["template"],
        "worker": with_sidecar(WORKER, "Deployment")["spec"]["template"],
        "standalone": load(KUBERNETES / "standalone" / "deployment.yaml")["spec"]["template"],
    }


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_every_object_is_valid(version: str) -> None:
    checked = 0
    for path, document in objects():
        if document["apiVersion"] != MONITORING_GROUP and path != SIDECAR:
            validate(document, version)
            checked += 1
    assert checked == 6


def test_a_misspelt_field_would_be_found() -> None:
    document = load(KUBERNETES / "standalone" / "deployment.yaml")
    [container] = document["spec"]["template"]["spec"]["containers"]
    container["startUpProbe"] = container.pop("startupProbe")
    with pytest.raises(kubernetes_validate.ValidationError, match="startUpProbe"):
        validate(document, NEWEST)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("kind", ["Deployment", "Job"])
@pytest.mark.parametrize("spec", [SERVER, WORKER], ids=["server", "worker"])
def test_the_sidecar_fits_into_windmills_pods_and_leaves_the_rest_alone(spec: Json, kind: str, version: str) -> None:
    """Field case F93: native, so that a Job completes and the main containers end first."""
    pod = copy.deepcopy(spec) | ({"restartPolicy": "Never"} if kind == "Job" else {})
    workload = with_sidecar(pod, kind)
    validate(workload, version)
    patched = workload["spec"]["template"]["spec"]
    assert patched["containers"] == spec["containers"]
    ours, *others = patched["initContainers"]
    assert others == spec.get("initContainers", [])
    assert (ours["name"], ours["restartPolicy"]) == ("windmill-exporter", "Always")
    assert [volume for volume in patched["volumes"] if volume in spec.get("volumes", [])] == spec.get("volumes", [])
    assert workload["spec"]["template"]["metadata"]["labels"]["app"] == "windmill-app"
    for key in ("securityContext", "terminationGracePeriodSeconds"):
        assert patched.get(key) == spec.get(key)


@pytest.mark.parametrize("place", ["sidecar", "standalone", "helm"])
def test_the_container_is_hardened_and_bounded(place: str) -> None:
    container = exporter_containers()[place]
    pod_context = load(KUBERNETES / "standalone" / "deployment.yaml")["spec"]["template"]["spec"]["securityContext"]
    context = (pod_context if place == "standalone" else {}) | container["securityContext"]
    [user] = read_stages()[-1].only("USER").words
    assert context == {
        "runAsNonRoot": True,
        "runAsUser": int(user.split(":")[0]),
        "runAsGroup": int(user.split(":")[1]),
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["image"] == f"windmill-exporter:{__version__}"
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "192Mi"}}
    assert all(mount["readOnly"] and "subPath" not in mount for mount in container.get("volumeMounts", []))
    [port] = container["ports"]
    assert port["containerPort"] == int(WebConfig().listen_address.removeprefix(":"))
    assert port["name"] == "exporter"


def test_the_three_copies_of_the_container_differ_only_in_how_they_are_fed() -> None:
    fed_by = {"args", "env", "volumeMounts", "restartPolicy", "securityContext"}
    sidecar, standalone, helm = (
        {key: value for key, value in container.items() if key not in fed_by}
        for container in exporter_containers().values()
    )
    assert sidecar == standalone == helm


async def test_the_probes_pass_while_the_database_is_away() -> None:
    """Field cases F92 and F93: otherwise Windmill itself would not start, or would leave its Service."""
    container = exporter_containers()["sidecar"]
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {"exporter"}
    async with service("postgres://u@127.0.0.1:1/windmill?sslmode=disable") as running, ClientSession() as client:
        for probe in probes.values():
            async with client.get(f"{running.urls[0]}{probe['path']}") as response:
                assert response.status == 200


@pytest.mark.parametrize("place", ["sidecar", "standalone", "helm"])
def test_every_flag_and_variable_is_one_that_the_product_reads(place: str) -> None:
    container = exporter_containers()[place]
    flags = dict(parse_flags(container.get("args", [])))
    path = flags.pop("config.file", "")
    text = load(KUBERNETES / "standalone" / "configmap.yaml")["data"]["config.yaml"] if path else ""
    environment = {entry["name"]: entry.get("value", "postgres://u@h/d") for entry in container.get("env", [])}
    loaded = build_config(flags, environment, ConfigFile("config.yaml", text.encode()), parse_url)
    assert loaded.warnings == []
    assert set(environment) <= set(WINDMILL_VARIABLES.values())
    database = loaded.config.database
    assert bool(database.url) != bool(database.url_file)
    if database.url_file:
        folder, _, name = database.url_file.rpartition("/")
        [mount] = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
        spec = pod_specs()["server" if place == "sidecar" else place]["spec"]
        [volume] = [volume for volume in spec["volumes"] if volume["name"] == mount["name"]]
        assert volume["secret"]["items"] == [{"key": "url", "path": name}]
        assert volume["secret"]["defaultMode"] == 0o444
    if path:
        assert loaded.config.fairness.settings_relation == SETTINGS_VIEW
        assert path.rpartition("/")[0] in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_whatever_selects_our_pods_finds_them() -> None:
    deployment = load(KUBERNETES / "standalone" / "deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = {
        "deployment": deployment["spec"]["selector"]["matchLabels"],
        "service": load(KUBERNETES / "standalone" / "service.yaml")["spec"]["selector"],
        "budget": load(KUBERNETES / "standalone" / "poddisruptionbudget.yaml")["spec"]["selector"]["matchLabels"],
        "policy": load(KUBERNETES / "standalone" / "networkpolicy.yaml")["spec"]["podSelector"]["matchLabels"],
    }
    assert {name: selector.items() <= labels.items() for name, selector in selectors.items()} == dict.fromkeys(
        selectors, True
    )
    monitored = load(KUBERNETES / "monitoring" / "podmonitor.yaml")["spec"]["selector"]["matchLabels"]
    for template in pod_specs().values():
        assert monitored.items() <= template["metadata"]["labels"].items()
    assert monitored.items() <= load(HELM_VALUES)["windmill"]["app"]["labels"].items()


def test_nobody_gets_a_token_for_kubernetes() -> None:
    account = load(KUBERNETES / "standalone" / "serviceaccount.yaml")
    spec = load(KUBERNETES / "standalone" / "deployment.yaml")["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is False
    assert spec["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == account["metadata"]["name"]
    assert spec["enableServiceLinks"] is False


def test_one_replica_survives_a_drained_node() -> None:
    replicas = load(KUBERNETES / "standalone" / "deployment.yaml")["spec"]["replicas"]
    assert replicas - load(KUBERNETES / "standalone" / "poddisruptionbudget.yaml")["spec"]["minAvailable"] == 1


def test_each_kustomization_names_exactly_the_files_beside_it() -> None:
    for path in KUBERNETES.rglob("kustomization.yaml"):
        document = load(path)
        named = {*document.get("resources", []), *(patch["path"] for patch in document.get("patches", []))}
        assert named == {other.name for other in path.parent.iterdir()} - {path.name}, path


def test_the_sidecars_patch_aims_at_the_charts_own_deployments() -> None:
    targets = [patch["target"] for patch in load(SIDECAR.parent / "kustomization.yaml")["patches"]]
    assert {target["kind"] for target in targets} == {"Deployment"}

    def hit(name: str) -> bool:
        return any(re.fullmatch(target["name"], name) for target in targets)

    names = [
        "windmill-app",
        "windmill-workers-default",
        "windmill-workers-native",
        "windmill-extra",
        "windmill-indexer",
    ]
    assert [hit(name) for name in names] == [True, True, True, False, False]


def test_the_helm_values_are_ones_that_the_chart_reads() -> None:
    values = load(HELM_VALUES)
    assert set(keys_of(values, 3)) <= CHART_KEYS
    [monitor] = values["extraDeploy"]
    assert monitor == load(KUBERNETES / "monitoring" / "podmonitor.yaml")
    assert "{{" not in yaml.safe_dump(values), "the chart's template engine would read it"
    named = {key for key in re.findall(r"windmill\.\w+", SIDECAR.read_text()) if "database" in key}
    assert named
    assert named <= CHART_KEYS


def test_the_helm_values_also_make_a_plain_container_for_older_clusters() -> None:
    container = exporter_containers()["helm"]
    del container["restartPolicy"]
    spec = copy.deepcopy(SERVER)
    spec["containers"].append(container)
    workload = with_sidecar(spec, "Deployment")
    workload["spec"]["template"]["spec"]["initContainers"] = SERVER["initContainers"]
    validate(workload, "1.25")


def test_the_pod_monitor_has_the_fields_that_the_operator_knows() -> None:
    monitor = load(KUBERNETES / "monitoring" / "podmonitor.yaml")
    assert set(monitor) == {"apiVersion", "kind", "metadata", "spec"}
    assert (monitor["apiVersion"], monitor["kind"]) == (MONITORING_GROUP, "PodMonitor")
    assert set(monitor["spec"]) == {"selector", "podMetricsEndpoints"}
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint == {"port": "exporter", "path": "/metrics", "interval": "15s", "scrapeTimeout": "10s"}


def rule_problems(rule: dict[str, Any]) -> list[str]:
    """What the operator's schema would refuse."""
    problems = []
    kind = {"record", "alert"} & set(rule)
    if len(kind) != 1:
        problems.append("one of record and alert")
    if unknown := set(rule) - {"record", "alert", "expr", "for", "labels", "annotations", "keep_firing_for"}:
        problems.append(f"unknown {unknown}")
    if not isinstance(rule.get("expr"), str):
        problems.append("expr is a text")
    if not re.fullmatch(r"(\d+(ms|[smhdwy]))+", str(rule.get("for", "1m"))):
        problems.append("for is a duration")
    texts = {**rule.get("labels", {}), **rule.get("annotations", {})}
    problems += [f"{name} is no text" for name, text in texts.items() if not isinstance(text, str)]
    return problems


def test_the_prometheus_rule_has_the_fields_that_the_operator_knows() -> None:
    document = load(KUBERNETES / "monitoring" / "prometheusrule.yaml")
    assert (document["apiVersion"], document["kind"]) == (MONITORING_GROUP, "PrometheusRule")
    groups = document["spec"]["groups"]
    assert len({group["name"] for group in groups}) == len(groups)
    for group in groups:
        assert set(group) <= {"name", "interval", "rules"}
        for rule in group["rules"]:
            assert rule_problems(rule) == [], rule


def test_the_prometheus_rule_says_what_the_rule_files_say() -> None:
    """One source: whoever changes a rule runs `python -m deploy.build`."""
    from deploy.build import RULES, TARGET, prometheus_rule

    assert TARGET.read_text() == prometheus_rule()
    written = load(TARGET)["spec"]["groups"]
    assert written == [group for path in sorted(RULES.glob("*.yaml")) for group in load(path)["groups"]]
    assert sum(len(group["rules"]) for group in written) > 10
