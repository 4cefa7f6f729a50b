"""The page of table features says what the code does."""

import pytest

from lakebed.deltalog.table_features import FEATURES, refused
from tests.support.features_page import PAGE, features_page


def test_the_page_of_features_is_what_the_code_does():
    assert PAGE.read_text() == features_page(), "write it anew: make features"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.name)
def test_a_feature_is_written_or_refused_with_what_to_do(feature):
    why = refused(feature.name)
    assert (why is None) == feature.appends
    assert why is None or feature.note in why


def test_a_feature_that_nobody_knows_is_refused():
    assert "something-new" in str(refused("something-new"))
