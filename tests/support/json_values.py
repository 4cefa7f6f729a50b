"""Random JSON values and records, of all the kinds that a look tells apart."""

from hypothesis import strategies as st

names = st.sampled_from(["a", "b", "c", "A", "d.e", "x y", ""])
texts = st.one_of(
    st.text(max_size=3),
    st.dates().map(str),
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
    st.sampled_from(["2024-13-01", "2024-01-02T03:04:05", "2024-01-02T03:04:05.123456789Z"]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63, 10**38 - 1, 10**38]),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
records = st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=5)
