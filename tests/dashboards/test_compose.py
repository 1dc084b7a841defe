"""The Compose file, its Prometheus and the provisioning of its Grafana fit together and fit the product."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from exporter.config import WebConfig
from exporter.config_keys import config_keys
from tests.dashboards.committed import FOLDER, JSON, PROMETHEUS, dashboards
from tests.requirements import find_program
from tests.sources import PROJECT

FOLDER_OF_COMPOSE = PROJECT / "deploy" / "compose"
PINNED = re.compile(r"[a-z0-9-]+/[a-z0-9-]+:v?\d+\.\d+\.\d+")
PREFIX = "WINDMILL_EXPORTER_"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture
def services() -> Any:
    """The services by name."""
    return load(FOLDER_OF_COMPOSE / "compose.yaml")["services"]


def mounts(service: Any) -> dict[str, str]:
    """Sources by the place where they are mounted."""
    return {target: source for source, target, *_ in (each.split(":") for each in service.get("volumes", []))}


def provisioned(name: str) -> Any:
    """One of the provisioning files."""
    return load(FOLDER / "provisioning" / name / "windmill.yaml")


def test_every_mounted_file_exists_and_every_volume_is_declared(services: Any) -> None:
    declared = load(FOLDER_OF_COMPOSE / "compose.yaml")["volumes"]
    sources = [source for service in services.values() for source in mounts(service).values()]
    paths = [source for source in sources if source.startswith(".")]
    assert [source for source in paths if not (FOLDER_OF_COMPOSE / source).exists()] == []
    assert {source for source in sources if not source.startswith(".")} == set(declared)
    assert len(paths) == 5


def test_nothing_of_the_project_can_be_written(services: Any) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            assert volume.endswith(":ro") or not volume.startswith(".")


def test_images_are_pinned_and_the_exporter_is_built_from_this_project(services: Any) -> None:
    images = {name: service["image"] for name, service in services.items() if "image" in service}
    assert set(images) == {"prometheus", "grafana"}
    assert all(PINNED.fullmatch(image) for image in images.values())
    assert (FOLDER_OF_COMPOSE / services["exporter"]["build"]).resolve() == PROJECT


def test_only_this_host_reaches_the_services(services: Any) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_exporter_is_configured_by_keys_that_exist(services: Any) -> None:
    known = {PREFIX + path.replace(".", "_").upper() for path in config_keys()} | {"DATABASE_URL"}
    assert set(services["exporter"]["environment"]) <= known


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_configuration_of_prometheus(tmp_path: Path) -> None:
    text = (FOLDER_OF_COMPOSE / "prometheus.yml").read_text()
    assert "/etc/prometheus/rules/" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", f"{tmp_path}/"))
    shutil.copytree(FOLDER / "rules", tmp_path / "rules")
    command = [str(find_program("promtool")), "check", "config", "prometheus.yml"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.count("rules found") == 2


def test_prometheus_scrapes_the_exporter_at_its_default_port(services: Any) -> None:
    [scrape] = load(FOLDER_OF_COMPOSE / "prometheus.yml")["scrape_configs"]
    [discovery] = scrape["dns_sd_configs"]
    assert set(discovery["names"]) <= set(services)
    assert WebConfig().listen_address.endswith(f":{discovery['port']}")


def test_the_files_are_where_prometheus_and_grafana_look_for_them(services: Any) -> None:
    rules = mounts(services["prometheus"])["/etc/prometheus/rules"]
    assert len(list((FOLDER_OF_COMPOSE / rules).glob("*.yaml"))) == 2
    grafana = mounts(services["grafana"])
    for name in ("datasources", "dashboards"):
        source = grafana[f"/etc/grafana/provisioning/{name}"]
        assert (FOLDER_OF_COMPOSE / source).resolve() == FOLDER / "provisioning" / name
    [provider] = provisioned("dashboards")["providers"]
    assert (FOLDER_OF_COMPOSE / grafana[provider["options"]["path"]]).resolve() == FOLDER
    home = Path(services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert (FOLDER / home.name).exists()


def test_every_datasource_has_its_plugin_and_names_a_service(services: Any) -> None:
    datasources = provisioned("datasources")["datasources"]
    installed = set(services["grafana"]["environment"]["GF_INSTALL_PLUGINS"].split(","))
    assert {each["type"] for each in datasources} == installed | {PROMETHEUS}
    assert len({each["uid"] for each in datasources}) == len({each["name"] for each in datasources}) == 3
    hosts = {each["type"]: urlsplit(each["url"]) for each in datasources}
    assert {url.hostname for url in hosts.values()} <= set(services)
    assert hosts[JSON].path == "/grafana"


def test_every_dashboard_finds_a_datasource_of_its_type() -> None:
    types = {each["type"] for each in provisioned("datasources")["datasources"]}
    assert all(dashboards(plugin) for plugin in (PROMETHEUS, JSON))
    assert {PROMETHEUS, JSON} <= types
