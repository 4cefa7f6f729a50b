"""Whether a store has create-only writes, asked by several processes at once."""

from lakebed.layout import CREATE_ONLY_PROOF
from lakebed.storage.create_only import prove
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store


class OthersProveToo(Store):
    """Another process removes the object of its own proof right after ours was read."""

    def get(self, path: str) -> bytes | None:
        body = super().get(path)
        if path == CREATE_ONLY_PROOF:
            self.delete(path)
        return body


def left(root):
    return [each.name for each in root.iterdir()]


def test_a_store_is_not_blamed_for_what_another_process_removes(tmp_path):
    prove(OthersProveToo(str(tmp_path), StorageOptions()), CREATE_ONLY_PROOF)
    assert left(tmp_path) == []
