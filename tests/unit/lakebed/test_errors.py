"""What an error shows."""

from lakebed.errors import ConfigInvalid, LakeError, StoreUnavailable


def test_an_error_shows_its_facts_after_its_message():
    error = StoreUnavailable("no answer", path="s3://b/x", tries=3)
    assert str(error) == "no answer (path: s3://b/x, tries: 3)"


def test_an_error_without_facts_is_its_message():
    assert str(LakeError("broken")) == "broken"


def test_every_fault_of_a_configuration_is_a_line():
    assert str(ConfigInvalid(["a: wrong", "b: wrong"])) == "a: wrong\nb: wrong"


def test_every_code_is_used_once():
    def family(kind: type[LakeError]) -> list[type[LakeError]]:
        return [kind, *(each for below in kind.__subclasses__() for each in family(below))]

    ours = [kind for kind in family(LakeError) if kind.__module__ == "lakebed.errors"]
    codes = [kind.code for kind in ours]
    assert len(codes) == len(set(codes)) > 10
