"""A configuration means the same whichever of the two YAML parsers reads it."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lakebed.config.files import FastLoader, PreciseLoader, parsed, parsed_by

CONFIG = """\
pipelines:
  events:
    source: &a
      path: s3://bucket/landing/**/*.ndjson   # a comment
      compression: "gz\\u0069p"
    sink: {path: 's3://bucket/it''s', file_size_mb: 0128}
    schema:
      ddl: |
        id BIGINT,
        at TIMESTAMP
      fields:
        - {name: id, type: int64, nullable: no}
        - name: ""
          type: ~
    again:
      <<: *a
      path: >-
        folded
        text
"""
BITS = [*":-[]{}#'\"|>&*!%@`,? \n\t\r\x85\u2028\ufeff\x07é\\~<=", "- ", ": ", "<<: *a", "---\n"]


def places(node: yaml.Node | None) -> Any:
    """Return what a tree holds, and on which lines."""
    match node:
        case yaml.ScalarNode():
            return node.tag, node.value, node.start_mark.line, node.style or None
        case yaml.MappingNode():
            return [(places(key), places(value)) for key, value in node.value]
        case yaml.SequenceNode():
            return [places(each) for each in node.value]
        case _:
            return None


def read(loading: Any, text: str) -> Any:
    """Return what a text means with its lines, or None where it is refused."""
    try:
        node, content = parsed(text) if loading is None else parsed_by(loading, text)
    except yaml.YAMLError:
        return None
    return content, places(node)


def test_the_fast_parser_is_there_and_reads_a_configuration_as_the_other_does():
    assert issubclass(FastLoader, yaml.CSafeLoader)
    assert read(FastLoader, CONFIG) == read(PreciseLoader, CONFIG) is not None


@given(
    st.lists(
        st.tuples(st.integers(0, len(CONFIG)), st.sampled_from(BITS), st.booleans()), max_size=4
    )
)
def test_a_configuration_with_slips_of_the_pen_means_the_same(slips: list[tuple[int, str, bool]]):
    text = CONFIG
    for place, bit, instead in slips:
        text = text[:place] + bit + text[place + instead :]
    assert read(None, text) == read(PreciseLoader, text)


@pytest.mark.parametrize("text", ["a: {b?: c}", "a: b\tc", "a\tb: c", "a: {b:\u2028 c}"])
def test_what_libyaml_alone_allows_is_refused(text: str):
    assert read(FastLoader, text) is not None
    assert read(None, text) == read(PreciseLoader, text)
