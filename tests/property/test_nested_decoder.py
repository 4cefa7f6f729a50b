"""However a schema is nested, the decoder says what the exact path says, value for value."""

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blizzard.model.settings import DecodeLimits
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block, blocks
from lakebed.columns.schema import Schema
from lakebed.types import OnMismatch, UnknownFields
from tests.support.decoding import outcome
from tests.support.nested import JSON_FREE, Lines, sharing, some_fields

LIMIT = 1 << 20

seeds = st.integers(0, 2**32)
unknowns = st.sampled_from(list(UnknownFields))
mismatches = st.sampled_from(list(OnMismatch))


def block_of(lines: list[str]) -> Block:
    return Block(text="\n".join(lines).encode(), first_line=1, lines=len(lines))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, unknowns, mismatches, st.sampled_from([0, 0, 0.01, 0.1]), st.integers(1, 400))
def test_the_decoder_and_the_exact_path_agree(
    seed: int, unknown: UnknownFields, on_mismatch: OnMismatch, wrong: float, step: int
):
    random = Random(seed)
    fields = some_fields(random, depth=random.randrange(4))
    schema = Schema(random.choice([fields, sharing(random, fields)]))
    lines = Lines(random, wrong=wrong, unknown=random.choice([0, 0.2, 0.5]))
    data = "\n".join(lines.line(fields) for _ in range(random.randrange(1, 9))).encode()
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    decoder = Decoder(
        schema,
        unknown=unknown,
        on_mismatch=on_mismatch,
        max_line_bytes=LIMIT,
        limits=DecodeLimits(max_names=10**6, max_name_characters=10**6),  # not the subject here
    )
    exact = ExactPath(schema, unknown=unknown, on_mismatch=on_mismatch, max_line_bytes=LIMIT)
    truth = outcome(exact.read(block) for block in blocks([data], max_line_bytes=LIMIT))
    assert outcome(decoder.decode(chunks)) == truth


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, st.sampled_from([each for each in UnknownFields if each is not UnknownFields.FAIL]))
def test_clean_data_of_typed_fields_never_leaves_the_fast_path(seed: int, unknown: UnknownFields):
    random = Random(seed)
    schema = Schema(some_fields(random, random.randrange(1, 4), JSON_FREE, clashing=False))
    lines = Lines(random, unknown=random.choice([0, 0.3, 0.6]))
    block = block_of([lines.line(schema.fields) for _ in range(random.randrange(1, 9))])
    fast = FastPath(schema, unknown=unknown, max_line_bytes=LIMIT).read(block)
    assert fast is not None
    truth = ExactPath(schema, unknown=unknown, max_line_bytes=LIMIT).read(block)
    assert outcome([fast]) == outcome([truth])


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, st.sampled_from([UnknownFields.DROP, UnknownFields.RESCUE]))
def test_fields_that_take_the_same_values_do_not_leave_the_fast_path(
    seed: int, unknown: UnknownFields
):
    """Structs of one object, and fields that are taken from inside it; several blocks at once.

    One path reads all blocks, twice, so that it knows names of blocks before.
    """
    random = Random(seed)
    fields = some_fields(random, random.randrange(1, 4), JSON_FREE, clashing=False)
    schema = Schema(random.choice([fields, sharing(random, fields), sharing(random, fields)]))
    lines = Lines(random, unknown=random.choice([0, 0.3, 0.6]))
    every = [
        block_of([lines.line(fields) for _ in range(random.randrange(1, 5))])
        for _ in range(random.randrange(2, 5))
    ]
    path = FastPath(schema, unknown=unknown, max_line_bytes=LIMIT)
    exact = ExactPath(schema, unknown=unknown, max_line_bytes=LIMIT)
    truth = [outcome([exact.read(one)]) for one in every]
    for _ in range(2):
        fast = path.read_combined(every)
        assert fast is not None
        assert [outcome([each]) for each in fast.decoded()] == truth
