"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["overloaded", "admission_ppm", "version", "at", "usage", "owed", "since", "other", "by"])
            | st.text(max_size=5),
            inner,
            max_size=8,
        )
    ),
    max_leaves=20,
)
