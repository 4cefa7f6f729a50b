"""The page of table features says what the code does."""

from lakebed.deltalog.table_features import FEATURES, unsafe_features
from tests.support.features_page import PAGE, features_page


def test_the_page_of_features_is_what_the_code_does():
    assert PAGE.read_text() == features_page(), "write it anew: make features"


def test_every_feature_of_the_page_is_written_and_any_other_refused():
    assert not list(unsafe_features(frozenset(one.name for one in FEATURES)))
    assert "something-new" in next(unsafe_features(frozenset({"something-new"})))
