"""How files are packed into units."""

from blizzard.compression import Codec
from blizzard.plan import COMPRESSED_WEIGHT, SMALLEST_UNIT, UNITS_PER_CORE, plan, weight
from tests.support.builders import source_file


def test_small_files_share_a_unit():
    units = plan([source_file(f"{number}", size=1000) for number in range(50)], parallelism=8)
    assert [len(unit.files) for unit in units] == [50]


def test_files_of_two_partitions_never_share_a_unit():
    files = [
        source_file(f"{day}/{number}", partition_values={"date": day})
        for number in range(3)
        for day in ("2024-01-01", "2024-01-02", None)
    ]
    units = plan(files, parallelism=1)
    assert [(dict(unit.partition_values), len(unit.files)) for unit in units] == [
        ({"date": None}, 3),
        ({"date": "2024-01-01"}, 3),
        ({"date": "2024-01-02"}, 3),
    ]


def test_a_large_load_gives_every_core_several_units():
    files = [source_file(f"{number:03}", size=SMALLEST_UNIT) for number in range(120)]
    units = plan(files, parallelism=4)
    assert 4 * UNITS_PER_CORE <= len(units) <= 4 * UNITS_PER_CORE + 1


def test_a_compressed_byte_weighs_more_than_a_plain_one():
    plain = source_file(size=10)
    packed = source_file(size=10, codec=Codec.ZSTD)
    assert weight(packed) == COMPRESSED_WEIGHT * weight(plain)


def test_no_files_are_no_units():
    assert plan([], parallelism=4) == ()
