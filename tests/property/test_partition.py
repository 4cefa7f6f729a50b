"""Any partition value survives its folder name."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.clock import uuid7
from lakebed.layout import NULL_FOLDER, data_file, escape, folder, unescape
from lakebed.partition import Template, TemplatePart
from tests.support.stores import local

# Half a surrogate pair is no text that a file or a log can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NASTY = st.text(st.sampled_from("/ %=:\\#?*\"'{}[]^~<>|.\x00\x01\n\r\t\x7f\x80ü日😀\U0010ffffa1"))
VALUES = st.one_of(TEXT, NASTY).filter(lambda value: value != NULL_FOLDER)


@given(VALUES)
def test_a_value_round_trips_through_its_folder_name(value):
    """W09: which is one segment of a path, whatever the value contains."""
    assert "/" not in escape(value)
    assert "=" not in escape(value)
    assert unescape(escape(value)) == (value or None)


@given(st.dictionaries(TEXT.filter(bool), st.one_of(st.none(), VALUES), min_size=1, max_size=4))
def test_all_values_of_a_partition_are_read_back_from_a_path(values):
    """W09, L18."""
    keys = Template(tuple(TemplatePart(key, "%s") for key in values))
    read = keys.values(f"{folder(values)}/x.ndjson")
    assert list(read.items()) == [(key, value or None) for key, value in values.items()]


@settings(max_examples=40, deadline=None)
@given(st.one_of(TEXT, NASTY).filter(lambda value: len(escape(value).encode()) < 200))
def test_a_data_file_is_found_under_the_name_it_was_given(value):
    """W09: the store takes the name as it is, and a listing gives the same one back."""
    with TemporaryDirectory() as root:
        store = local(Path(root))
        name = data_file({"k": value}, uuid7(1, b"0123456789"))
        store.create(name, b"x")
        assert [found.path for found in store.objects()] == [name]
        assert store.get(name) == b"x"
