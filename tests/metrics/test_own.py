"""What a replica counts about itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from prometheus_client.registry import REGISTRY

from exporter.errors import DatabaseTimeout, DatabaseUnavailable, MissingCapability, StatementFailed
from exporter.fairness.values import Admission, RefreshOutcome, RefreshResult
from exporter.metrics.exposition import OPENMETRICS_END, Exposition, render
from exporter.metrics.own import COLLECTORS, FAILURE_REASONS, OwnMetrics
from exporter.queue.values import QueueOutcome, SampleResult
from tests.metrics.scenes import own_metrics, parsed
from tests.sources import PROJECT


def read(own: OwnMetrics) -> Mapping[str, float]:
    """Samples by name and label values, as a strict parser sees them."""
    text = render(own.metrics(), Exposition.OPENMETRICS) + OPENMETRICS_END
    samples = parsed(text, Exposition.OPENMETRICS)
    return {" ".join([name, *(value for _, value in labels)]): number for (name, labels), number in samples.items()}


def test_every_counter_has_all_its_series_at_0_from_the_first_scrape_on() -> None:
    """Field case F82: a rate sees the first event, and alerts have something to look at."""
    found = read(own_metrics())
    expected = [
        *(f"windmill_fairness_refreshes_total {result}" for result in RefreshResult),
        "windmill_fairness_transitions_total capped",
        "windmill_fairness_transitions_total uncapped",
        "windmill_fairness_audit_failures_total",
        "windmill_fairness_payload_errors_total",
        *(f"windmill_fairness_admissions_total {decision}" for decision in Admission),
        *(f"windmill_queue_samples_total {result}" for result in SampleResult),
        "windmill_queue_unreadable_samples_total",
        *(f"windmill_exporter_collector_duration_seconds_count {name}" for name in COLLECTORS),
        *(
            f"windmill_exporter_collector_failures_total {name} {reason}"
            for name in COLLECTORS
            for reason in FAILURE_REASONS
        ),
    ]
    assert {name: found.get(name) for name in expected} == dict.fromkeys(expected, 0.0)


def test_the_reasons_are_those_of_the_error_tree() -> None:
    documented: list[str] = []
    for error in (DatabaseUnavailable, DatabaseTimeout, MissingCapability, StatementFailed):
        reasons = str(error.__doc__).partition("Reasons: ")[2]
        without_explanations = re.sub(r"\([^)]*\)", "", reasons)
        documented.extend(re.findall(r"\w+", without_explanations))
    assert sorted(documented) == sorted(FAILURE_REASONS)


def test_a_refresh_is_counted_with_everything_it_did() -> None:
    own = own_metrics()
    own.record_refresh(RefreshOutcome(RefreshResult.WON, None, ("a", "b"), ("c",), audit_failures=2, payload_errors=3))
    own.record_refresh(RefreshOutcome(RefreshResult.LOST))
    found = read(own)
    assert found["windmill_fairness_refreshes_total won"] == 1
    assert found["windmill_fairness_refreshes_total lost"] == 1
    assert found["windmill_fairness_transitions_total capped"] == 2
    assert found["windmill_fairness_transitions_total uncapped"] == 1
    assert found["windmill_fairness_audit_failures_total"] == 2
    assert found["windmill_fairness_payload_errors_total"] == 3


def test_a_queue_tick_is_counted_by_outcome() -> None:
    own = own_metrics()
    own.record_queue(QueueOutcome(None, ((SampleResult.STORED, 4), (SampleResult.UNCHANGED, 6)), unreadable_samples=2))
    own.record_queue(QueueOutcome(None, ((SampleResult.STORED, 1),)))
    found = read(own)
    assert found["windmill_queue_samples_total stored"] == 5
    assert found["windmill_queue_samples_total unchanged"] == 6
    assert found["windmill_queue_unreadable_samples_total"] == 2


def test_a_run_of_a_collector_is_timed_and_its_failure_counted_by_reason() -> None:
    own = own_metrics()
    own.observe_collector("queue", 0.2)
    own.observe_collector("queue", 3.0, DatabaseTimeout("queue: no answer", reason="deadline"))
    own.observe_collector("fairness", 0.1, StatementFailed("fairness: refused", reason="statement_error"))
    found = read(own)
    assert found["windmill_exporter_collector_duration_seconds_count queue"] == 2
    assert found["windmill_exporter_collector_duration_seconds_sum queue"] == pytest.approx(3.2)
    assert found["windmill_exporter_collector_duration_seconds_bucket queue 0.25"] == 1
    assert found["windmill_exporter_collector_failures_total queue deadline"] == 1
    assert found["windmill_exporter_collector_failures_total fairness statement_error"] == 1
    assert found["windmill_exporter_collector_failures_total fairness deadline"] == 0


def test_requests_are_timed_by_route_and_status_class() -> None:
    own = own_metrics()
    own.observe_request("/metrics", 200, 0.003)
    own.observe_request("other", 404, 0.001)
    found = read(own)
    assert found["windmill_exporter_http_request_duration_seconds_count /metrics 2xx"] == 1
    assert found["windmill_exporter_http_request_duration_seconds_count other 4xx"] == 1
    assert found["windmill_exporter_http_request_duration_seconds_bucket 0.005 /metrics 2xx"] == 1


def test_the_pool_is_asked_when_the_metrics_are() -> None:
    pool = {"idle": 0, "busy": 2}
    own = OwnMetrics(lambda: pool)
    pool["idle"] = 1
    assert read(own)["windmill_exporter_database_pool_connections idle"] == 1
    assert read(own)["windmill_exporter_database_pool_connections busy"] == 2


def test_a_bad_reload_shows_until_a_good_one() -> None:
    own = own_metrics()
    assert read(own)["windmill_exporter_config_last_reload_successful"] == 1
    own.record_reload(successful=True, now_epoch=100.0)
    own.record_reload(successful=False, now_epoch=200.0)
    found = read(own)
    assert found["windmill_exporter_config_last_reload_successful"] == 0
    assert found["windmill_exporter_config_last_reload_success_timestamp_seconds"] == 100
    own.record_reload(successful=True, now_epoch=300.0)
    found = read(own)
    assert found["windmill_exporter_config_last_reload_successful"] == 1
    assert found["windmill_exporter_config_last_reload_success_timestamp_seconds"] == 300


def test_a_web_config_that_cannot_be_used_shows_until_one_can() -> None:
    own = own_metrics()
    assert read(own)["windmill_exporter_web_config_last_reload_successful"] == 1
    own.set_web_config_successful(False)
    assert read(own)["windmill_exporter_web_config_last_reload_successful"] == 0


def test_admissions_are_counted_by_what_was_said() -> None:
    own = own_metrics()
    own.count_admissions(Admission.EXCLUDED, 3)
    own.count_admissions(Admission.EXCLUDED, 1)
    found = read(own)
    assert found["windmill_fairness_admissions_total excluded"] == 4
    assert found["windmill_fairness_admissions_total admitted"] == 0


def test_process_and_garbage_collector_basics_are_there() -> None:
    found = read(own_metrics())
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_cpu_seconds_total"] > 0
    assert "python_gc_collections_total 2" in found


def test_everything_recorded_but_requests_raises_the_number_of_changes() -> None:
    own = own_metrics()
    seen = [own.changes]
    records: list[Callable[[], None]] = [
        lambda: own.record_refresh(RefreshOutcome(RefreshResult.WON)),
        lambda: own.record_queue(QueueOutcome(None)),
        lambda: own.observe_collector("queue", 0.1),
        lambda: own.record_reload(successful=True, now_epoch=1.0),
        lambda: own.set_web_config_successful(False),
    ]
    for record in records:
        record()
        seen.append(own.changes)
    assert seen == sorted(set(seen))
    own.observe_request("/metrics", 200, 0.1)
    own.count_admissions(Admission.EXCLUDED, 1)
    assert own.changes == seen[-1]


def test_two_in_one_process_never_meet_and_the_global_registry_stays_alone() -> None:
    """Field case F79: the application can be built twice."""
    first, second = own_metrics(), own_metrics()
    first.record_refresh(RefreshOutcome(RefreshResult.WON))
    assert read(second)["windmill_fairness_refreshes_total won"] == 0
    assert not [each.name for each in REGISTRY.collect() if each.name.startswith("windmill")]


def test_creation_times_are_never_exported() -> None:
    own = own_metrics()
    own.observe_request("/metrics", 200, 0.1)
    assert [sample for each in own._registry.collect() for sample in each.samples if sample.name.endswith("_created")]
    assert not [name for name in read(own) if "_created" in name]


@pytest.mark.parametrize("name", ["PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"])
def test_an_inherited_multi_process_variable_changes_nothing(name: str, tmp_path: Path) -> None:
    """Field case F88: the library would want to write files into a folder that does not exist."""
    code = (
        "import os\n"
        "from exporter.metrics.own import OwnMetrics\n"
        "own = OwnMetrics(lambda: {'idle': 1})\n"
        "own.observe_request('/metrics', 200, 0.1)\n"
        f"print(len(own.metrics()) > 10, os.environ[{name!r}])\n"
    )
    missing = tmp_path / "missing"
    environment = {**os.environ, name: str(missing)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == (f"True {missing}\n", "")
    assert not missing.exists()
