"""Whatever is wrong with whichever lines, the decoder says of each what the exact path says of it.

Most lines of these blocks are good, so that both paths have a part in the answer.
"""

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blizzard.model.settings import DecodeLimits
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import blocks
from lakebed.columns.schema import Schema
from lakebed.types import OnBadRecord, OnMismatch, UnknownFields
from tests.support import damage
from tests.support.decoding import decode_all, outcome
from tests.support.nested import Lines, some_fields

LIMIT = 5_000
ALL_NAMES = DecodeLimits(max_names=10**6, max_name_characters=10**6)
"""Few labels are not the subject here."""

seeds = st.integers(0, 2**32)
modes = st.fixed_dictionaries(
    {
        "unknown": st.sampled_from(list(UnknownFields)),
        "on_mismatch": st.sampled_from(list(OnMismatch)),
        "on_bad_record": st.sampled_from(list(OnBadRecord)),
    }
)
shares = st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0])


def exactly(schema: Schema, data: bytes, mode: dict[str, object]) -> tuple[object, ...]:
    exact = ExactPath(schema, max_line_bytes=LIMIT, **mode)  # type: ignore[arg-type]
    # None of these lines is too long to be held.
    return outcome(exact.read(block) for block in blocks([data]))


def file_of(random: Random, schema: Schema, count: int, share: float) -> bytes:
    """Return lines of which a share is damaged: by wrong values, by wrong bytes, by length."""
    good = Lines(random, unknown=random.choice([0, 0, 0.3]))
    wrong = Lines(random, wrong=0.2, unknown=0.2)
    lines: list[bytes] = []
    for _ in range(count):
        if random.random() >= share:
            lines.append(good.line(schema.fields).encode())
            continue
        line = wrong.line(schema.fields).encode()
        if random.random() < 0.5:
            line = damage.damaged_lines(random, [line]).removesuffix(b"\n")
        lines.append(line + b" " * random.choice([0, 0, 0, 0, LIMIT]))
    return b"\n".join(lines) + random.choice([b"", b"\n"])


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, modes, shares)
def test_the_mixed_path_is_the_exact_path(seed: int, mode: dict[str, object], share: float):
    random = Random(seed)
    schema = Schema(some_fields(random, random.randrange(3)))
    data = file_of(random, schema, random.randrange(1, 40), share)
    decoder = Decoder(schema, max_line_bytes=LIMIT, limits=ALL_NAMES, **mode)  # type: ignore[arg-type]
    # A second file finds the decoder as the first one left it.
    for _ in range(2):
        assert outcome(decoder.decode([data])) == exactly(schema, data, mode)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, modes, shares)
def test_files_that_are_read_together_keep_their_own_bad_lines(
    seed: int, mode: dict[str, object], share: float
):
    random = Random(seed)
    schema = Schema(some_fields(random, random.randrange(3)))
    files = [file_of(random, schema, random.randrange(6), share) for _ in range(6)]
    decoder = Decoder(schema, max_line_bytes=LIMIT, limits=ALL_NAMES, **mode)  # type: ignore[arg-type]
    opened = ((place, (piece for piece in [file])) for place, file in enumerate(files))
    found = [outcome(batches) for _, batches in decode_all(decoder, opened)]
    assert found == [exactly(schema, file, mode) for file in files]
