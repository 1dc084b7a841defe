"""`GET /api/admission`: what pulls are told."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from aiohttp import ClientSession
from hypothesis import given
from hypothesis import strategies as st

from exporter.fairness.admission import STALE_DECISION_SECONDS, admission_of
from exporter.fairness.values import ADMIT_ALL_PPM, Admission, FairnessMode, FairnessSettings, Payload
from exporter.metrics.exposition import Exposition, render
from exporter.snapshot import CollectorStatus, Snapshot
from exporter.web.admission import MAX_PULLS, answer_pulls, parse_pulls
from tests.metrics.scenes import MONOTONIC, NOW, fairness, parsed, snapshot
from tests.web.serving import Service

CAPPED = Payload(("noisy", "louder"), 518)
NOBODY = Payload((), 5500)
draws = st.integers(0, ADMIT_ALL_PPM - 1)
names = st.text(min_size=1, max_size=20)
payloads = st.builds(Payload, st.lists(names, max_size=64, unique=True).map(tuple), st.integers(0, ADMIT_ALL_PPM))
ages = st.none() | st.floats(0, 1e6)


def state(payload: Payload = CAPPED, mode: FairnessMode = FairnessMode.ENFORCE, age: float | None = 1.0) -> Snapshot:
    return snapshot(fairness(mode=mode, in_force=payload, payload_age_seconds=age))


def test_a_draw_below_the_probability_admits_and_another_leaves_the_capped_out() -> None:
    for draw, admit, exclude in ((517, True, ()), (518, False, CAPPED.overloaded)):
        answer, [reason] = answer_pulls(state(), [draw], MONOTONIC)
        assert (answer.admit_capped, answer.exclude, answer.admit) == (admit, exclude, (admit,))
        assert reason is (Admission.ADMITTED if admit else Admission.EXCLUDED)
        assert (answer.admission_ppm, answer.age_seconds, answer.stale) == (518, 1.0, False)
        assert (answer.capped, answer.mode, answer.would) == (CAPPED.overloaded, FairnessMode.ENFORCE, None)


def test_nobody_is_left_out_while_nobody_is_capped() -> None:
    answer, [reason] = answer_pulls(state(NOBODY), [9999], MONOTONIC)
    assert (answer.admit_capped, answer.exclude, answer.capped, answer.stale) == (True, (), (), False)
    assert reason is Admission.NOBODY_CAPPED


def test_a_decision_ages_here_and_over_60_s_holds_nobody_back_and_says_so() -> None:
    """A stopped exporter must not leave a cap for ever, and neither must a database that is away."""
    fresh, _ = answer_pulls(state(age=1.0), [9999], MONOTONIC + 59)
    assert (fresh.admit_capped, fresh.stale, fresh.age_seconds) == (False, False, 60)
    stale, [reason] = answer_pulls(state(age=1.0), [9999], MONOTONIC + 59.5)
    assert (stale.admit_capped, stale.exclude, stale.capped, stale.stale) == (True, (), (), True)
    assert reason is Admission.STALE


@pytest.mark.parametrize("age", [None, 61.0])
def test_a_decision_that_never_was_or_is_old_says_so_also_when_it_caps_nobody(age: float | None) -> None:
    answer, [reason] = answer_pulls(state(NOBODY, age=age), [9999], MONOTONIC)
    assert (answer.admit_capped, answer.stale, reason) == (True, True, Admission.NOBODY_CAPPED)


def test_shadow_admits_everybody_and_says_what_it_would_have_said() -> None:
    part = fairness(mode=FairnessMode.SHADOW, in_force=NOBODY)
    assert part.would is not None
    assert part.would.payload.overloaded == ("noisy",)
    ppm = part.would.payload.admission_ppm
    answer, reasons = answer_pulls(snapshot(part), [ppm, ppm - 1], MONOTONIC)
    assert (answer.admit, answer.exclude, answer.capped, answer.admission_ppm) == ((True, True), (), (), ADMIT_ALL_PPM)
    assert reasons == (Admission.SHADOW, Admission.SHADOW)
    assert answer.would is not None
    assert (answer.would.admit_capped, answer.would.exclude, answer.would.capped) == (False, ("noisy",), ("noisy",))
    assert (answer.would.admit, answer.would.admission_ppm) == ((False, True), ppm)


def test_shadow_never_enforces_what_another_writer_decided() -> None:
    answer, _ = answer_pulls(state(CAPPED, FairnessMode.SHADOW), [9999], MONOTONIC)
    assert (answer.admit_capped, answer.exclude) == (True, ())


def test_what_shadow_would_say_is_as_old_as_its_reading() -> None:
    part = fairness(mode=FairnessMode.SHADOW, in_force=NOBODY, read_at=NOW - 50)
    answer, _ = answer_pulls(snapshot(part), [9999], MONOTONIC + 20)
    assert answer.would is not None
    assert (answer.would.age_seconds, answer.would.admit_capped) == (70, True)


def test_off_admits_everybody() -> None:
    answer, [reason] = answer_pulls(Snapshot(database_up=True), [9999], MONOTONIC)
    assert (answer.admit_capped, answer.exclude, answer.stale, answer.would) == (True, (), False, None)
    assert (answer.mode, reason, answer.age_seconds) == (FairnessMode.OFF, Admission.OFF, None)


def test_before_the_first_reading_everybody_is_admitted_and_it_says_so() -> None:
    unread = Snapshot((CollectorStatus("fairness"),))
    answer, [reason] = answer_pulls(unread, [9999], MONOTONIC)
    assert (answer.admit_capped, answer.stale, answer.mode) == (True, True, None)
    assert reason is Admission.NOBODY_CAPPED


def test_while_fairness_is_switched_off_in_windmill_nothing_is_stale() -> None:
    """Nobody refreshes then; the age of the payload says nothing."""
    off = fairness(in_force=Payload(), settings=FairnessSettings(enabled=False), payload_age_seconds=9000.0)
    answer, [reason] = answer_pulls(snapshot(off), [9999], MONOTONIC)
    assert (answer.admit_capped, answer.stale, reason) == (True, False, Admission.NOBODY_CAPPED)


@given(payloads, ages, st.lists(draws, min_size=1, max_size=50), st.sampled_from(list(FairnessMode)))
def test_every_answer_is_consistent(payload: Payload, age: float | None, drawn: list[int], mode: FairnessMode) -> None:
    answer, reasons = answer_pulls(state(payload, mode, age), drawn, MONOTONIC)
    assert answer.admit == tuple(reason is not Admission.EXCLUDED for reason in reasons)
    assert answer.admit_capped is answer.admit[0]
    assert answer.exclude == (() if answer.admit[0] else payload.overloaded)
    assert len(answer.admit) == len(drawn)
    held_back = Admission.EXCLUDED in reasons
    if mode is not FairnessMode.ENFORCE or not payload.overloaded or age is None or age > STALE_DECISION_SECONDS:
        assert not held_back
        assert answer.capped == ()
    else:
        assert answer.capped == payload.overloaded
        assert answer.admit == tuple(draw < payload.admission_ppm for draw in drawn)


@given(payloads.filter(lambda payload: payload.overloaded), st.floats(0, STALE_DECISION_SECONDS))
def test_the_probability_is_that_of_the_decision(payload: Payload, age: float) -> None:
    """Over all draws exactly `admission_ppm` of 10,000 admit."""
    step = 97
    told = Counter(admission_of(payload, age, draw) for draw in range(0, ADMIT_ALL_PPM, step))
    assert told[Admission.ADMITTED] == len(range(0, payload.admission_ppm, step))


@pytest.mark.parametrize(("texts", "number"), [(["1"], 1), (["1000"], 1000), (["999"], 999)])
def test_pulls_are_counted(texts: list[str], number: int) -> None:
    assert parse_pulls(texts) == number


WRONG = ["0", "1001", "-1", "+1", " 1", "1.0", "1e3", "", "٣", "99999999999999999999", "01", "1,2", "ten"]


@pytest.mark.parametrize("text", WRONG)
async def test_a_number_of_pulls_that_is_none_is_400_and_named(client: ClientSession, text: str) -> None:
    async with client.get("/api/admission", params={"pulls": text}) as response:
        assert response.status == 400
        assert (await response.json())["message"] == f"pulls: expected an integer from 1 to {MAX_PULLS}, once."


async def test_pulls_twice_is_400(client: ClientSession) -> None:
    async with client.get("/api/admission?pulls=1&pulls=2") as response:
        assert response.status == 400


async def test_over_http_each_pull_has_a_draw_of_its_own(client: ClientSession, service: Service) -> None:
    service.board.current = state()
    async with client.get("/api/admission?pulls=1000") as response:
        assert response.status == 200
        assert response.headers["Cache-Control"] == "no-store"
        body = await response.json()
    assert len(body["admit"]) == 1000
    assert 0 < sum(body["admit"]) < 200
    assert set(body) == {
        *("admit_capped", "exclude", "admission_ppm", "age_seconds", "admit", "capped", "mode", "stale", "would"),
    }


@pytest.fixture
def service() -> Service:
    """Its draws go 0, 1, 2 and so on in steps of 100."""
    numbers = itertools.count(0, 100)
    return Service(draw=lambda below: next(numbers) % below)


async def test_the_answers_are_counted_by_what_was_said(client: ClientSession, service: Service) -> None:
    service.board.current = state()
    async with client.get("/api/admission?pulls=100") as response:
        assert sum((await response.json())["admit"]) == 6
    service.board.current = replace(service.board.current, fairness=None, collectors=())
    async with client.get("/api/admission") as response:
        assert response.status == 200
    samples = parsed(render(service.own.metrics(), Exposition.TEXT), Exposition.TEXT)
    counted = {
        dict(labels)["decision"]: value
        for (name, labels), value in samples.items()
        if name == "windmill_fairness_admissions_total"
    }
    assert counted == {"admitted": 6, "excluded": 94, "off": 1, "shadow": 0, "stale": 0, "nobody_capped": 0}
