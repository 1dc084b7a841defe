"""Which label values are exported when there are too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.metrics.choose import INCUMBENT_FACTOR, choose

names = st.text(st.characters(), max_size=4)
sizes_by_name = st.dictionaries(names, st.floats(0, 1e6), max_size=30)


@given(sizes_by_name, st.sets(names), st.integers(1, 40))
def test_everything_is_chosen_while_it_fits_and_exactly_the_limit_beyond(
    sizes: dict[str, float], previous: set[str], limit: int
) -> None:
    chosen = choose(previous, sizes, set(), limit)
    assert chosen <= sizes.keys()
    assert len(chosen) == min(limit, len(sizes))


@given(sizes_by_name, st.sets(names), st.integers(1, 10), st.data())
def test_whoever_comes_first_is_chosen_before_anybody_else(
    sizes: dict[str, float], previous: set[str], limit: int, data: st.DataObject
) -> None:
    first = data.draw(st.sets(st.sampled_from(sorted(sizes)), max_size=15)) if sizes else set()
    chosen = choose(previous, sizes, first, limit)
    assert first <= chosen or chosen <= first


@given(sizes_by_name, st.integers(1, 10))
def test_without_a_past_nobody_left_out_is_larger_than_anybody_chosen(sizes: dict[str, float], limit: int) -> None:
    chosen = choose(frozenset(), sizes, frozenset(), limit)
    left_out = [size for name, size in sizes.items() if name not in chosen]
    assert max(left_out, default=0) <= min((sizes[name] for name in chosen), default=0) or not left_out


@given(sizes_by_name, st.integers(1, 10), st.data())
def test_a_choice_outlives_noise_below_the_hysteresis(sizes: dict[str, float], limit: int, data: st.DataObject) -> None:
    """Sizes that move by less than a quarter against each other exchange nobody: no series flickers."""
    chosen = choose(frozenset(), sizes, frozenset(), limit)
    noise = st.floats(1.0, INCUMBENT_FACTOR * 0.999)
    moved = {name: size if name in chosen else size * data.draw(noise) for name, size in sizes.items()}
    assert choose(chosen, moved, frozenset(), limit) == chosen


def test_a_newcomer_that_is_clearly_larger_takes_the_place() -> None:
    assert choose({"old"}, {"old": 100, "new": 124}, set(), 1) == {"old"}
    assert choose({"old"}, {"old": 100, "new": 126}, set(), 1) == {"new"}


def test_the_order_of_the_input_does_not_matter() -> None:
    names_in_order = [f"tag-{number}" for number in range(20)]
    forwards = choose(set(), dict.fromkeys(names_in_order, 1.0), set(), 5)
    backwards = choose(set(), dict.fromkeys(reversed(names_in_order), 1.0), set(), 5)
    assert forwards == backwards == {"tag-0", "tag-1", "tag-10", "tag-11", "tag-12"}
