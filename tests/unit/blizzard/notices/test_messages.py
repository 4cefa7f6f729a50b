"""What messages say: recorded bodies, and anything at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.model.notices import NoticeKind
from blizzard.notices.messages import ObjectCreated, contents_of
from tests.support.queues import (
    event_bridge_body,
    event_grid,
    google_body,
    in_base64,
    s3_body,
    s3_record,
    sns_body,
)

TEST = (
    '{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2014-10-13T15:57:02.089Z",'
    '"Bucket":"lake","RequestId":"5582815E1AEA5ADF","HostId":"8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3e"}'
)
CONFIRMATION = json.dumps({"Type": "SubscriptionConfirmation", "TopicArn": "arn:aws:sns:x:1:t"})


def created(key: str) -> ObjectCreated:
    return ObjectCreated(bucket="lake", key=key)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (s3_body("in/a.ndjson"), [created("in/a.ndjson")]),
        (s3_body("in/a b+c é.ndjson"), [created("in/a b+c é.ndjson")]),
        (s3_body("a", "b"), [created("a"), created("b")]),
        (s3_body("a", event="ObjectCreated:CompleteMultipartUpload"), [created("a")]),
        (s3_body("a", versionId="096fKKXTRTtl3on89fVO.nfljtsv6qko"), [created("a")]),
        (s3_body("a", sequencer="0055AED6DCD90281E5"), [created("a")]),
        (sns_body(s3_body("in/a b.ndjson")), [created("in/a b.ndjson")]),
        (event_bridge_body("in/a b+c.ndjson"), [created("in/a b+c.ndjson")]),
        (sns_body(event_bridge_body("a")), [created("a")]),
    ],
)  # fmt: skip
def test_objects_that_were_created_are_named_whichever_way_the_message_came(body, found):
    contents = contents_of(body)
    assert list(contents.created) == found
    assert contents.others == ()
    assert not contents.is_unreadable


def blob(key: str) -> ObjectCreated:
    return ObjectCreated(bucket="lake", key=key, account="store")


@pytest.mark.parametrize("written", [json.dumps, in_base64], ids=["text", "base64"])
@pytest.mark.parametrize("cloud_events", [False, True])
@pytest.mark.parametrize("key", ["in/a.ndjson", "in/a b+c é%20 💎#?.ndjson", "lake/lake/a"])
def test_blobs_that_were_created_are_named_by_either_schema(written, cloud_events, key):
    contents = contents_of(written(event_grid(key, cloud_events=cloud_events)))
    assert contents.created == (blob(key),)
    assert contents.others == ()


@pytest.mark.parametrize("url", [None, 7, "nonsense", "https://other.example/x"])
def test_a_blob_without_a_usable_url_is_named_by_the_subject(url):
    contents = contents_of(in_base64(event_grid("in/a b.ndjson", url=url)))
    assert contents.created == (blob("in/a b.ndjson"),)


def test_the_url_of_a_hierarchical_account_and_of_an_emulator_name_the_blob():
    for start in ("https://store.dfs.core.windows.net", "http://127.0.0.1:10000/store"):
        body = in_base64(event_grid("spoiled", url=f"{start}/lake/in/a%20b.ndjson"))
        assert contents_of(body).created == (blob("in/a b.ndjson"),)


def test_several_events_of_azure_in_one_message_are_taken_one_by_one():
    deleted = {**event_grid("b"), "eventType": "Microsoft.Storage.BlobDeleted"}
    contents = contents_of(json.dumps([event_grid("a"), deleted, "nonsense"]))
    assert contents.created == (blob("a"),)
    assert contents.others == (NoticeKind.OTHER_EVENT, NoticeKind.UNREADABLE)


@pytest.mark.parametrize("key", ["in/a.ndjson", "in/a b+c é%20 💎#?.ndjson"])
def test_objects_of_google_are_named_by_attributes(key: str):
    """The name is written as it is."""
    contents = contents_of(google_body(key))
    assert contents.created == (created(key),)
    assert contents.others == ()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (google_body("a", event="OBJECT_DELETE"), NoticeKind.OTHER_EVENT),
        (google_body("a", event="OBJECT_ARCHIVE"), NoticeKind.OTHER_EVENT),
        (google_body("a", event="OBJECT_METADATA_UPDATE"), NoticeKind.OTHER_EVENT),
        (google_body(""), NoticeKind.UNREADABLE),
        ('{"attributes": {}, "data": "x"}', NoticeKind.UNREADABLE),
        ('{"attributes": {"eventType": "OBJECT_FINALIZE"}}', NoticeKind.UNREADABLE),
        (in_base64(event_grid("a", api="CreateFile")), NoticeKind.OTHER_EVENT),
        (
            in_base64({**event_grid("a"), "eventType": "Microsoft.Storage.DirectoryCreated"}),
            NoticeKind.OTHER_EVENT,
        ),
        (in_base64({**event_grid("a"), "subject": "/blobServices"}), NoticeKind.UNREADABLE),
        (in_base64({**event_grid("a"), "subject": None}), NoticeKind.UNREADABLE),
        (in_base64({**event_grid("a"), "eventType": 7}), NoticeKind.UNREADABLE),
        (in_base64("text"), NoticeKind.UNREADABLE),
        ("//79", NoticeKind.UNREADABLE),
        (TEST, NoticeKind.TEST),
        (sns_body(TEST), NoticeKind.TEST),
        (s3_body("a", event="ObjectRemoved:Delete"), NoticeKind.OTHER_EVENT),
        (event_bridge_body("a", kind="Object Deleted"), NoticeKind.OTHER_EVENT),
        (CONFIRMATION, NoticeKind.OTHER_EVENT),
        ("", NoticeKind.UNREADABLE),
        ("not JSON", NoticeKind.UNREADABLE),
        ("[" * 100_000, NoticeKind.UNREADABLE),
        ("[]", NoticeKind.UNREADABLE),
        ('{"Records": []}', NoticeKind.UNREADABLE),
        ('{"Records": [7]}', NoticeKind.UNREADABLE),
        ('{"Records": [{"eventName": "ObjectCreated:Put"}]}', NoticeKind.UNREADABLE),
        ('{"Records": [{"eventName": "ObjectCreated:Put", "s3": {}}]}', NoticeKind.UNREADABLE),
        (sns_body("not JSON"), NoticeKind.UNREADABLE),
        (sns_body(sns_body(sns_body(s3_body("a")))), NoticeKind.UNREADABLE),
    ],
)
def test_other_messages_are_told_apart(body: str, kind: NoticeKind):
    contents = contents_of(body)
    assert contents.created == ()
    assert contents.others == (kind,)
    assert contents.is_unreadable == (kind is NoticeKind.UNREADABLE)


def test_a_message_may_hold_several_things():
    records = [s3_record("a"), s3_record("b", event="ObjectRemoved:Delete"), "?"]
    contents = contents_of(json.dumps({"Records": records}))
    assert [each.key for each in contents.created] == ["a"]
    assert contents.others == (NoticeKind.OTHER_EVENT, NoticeKind.UNREADABLE)
    assert not contents.is_unreadable


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["Records", "s3", "eventName", "bucket", "object", "key", "name", "Event", "Type",
             "TopicArn", "Message", "source", "detail-type", "detail", "time", "eventTime",
             "eventType", "specversion", "type", "subject", "topic", "data", "url", "api",
             "attributes", "bucketId", "objectId", "size", "md5Hash"]
        ),
        inner | st.sampled_from(
            ["aws.s3", "Object Created", "Notification", "ObjectCreated:Put", "OBJECT_FINALIZE",
             '{"size": "7", "md5Hash": "?"}', "Microsoft.Storage.BlobCreated",
             "/blobServices/default/containers/c/blobs/b"]
        ),
        max_size=6,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=50)
@given(st.text() | JSON.map(json.dumps) | JSON.map(json.dumps).map(sns_body) | JSON.map(in_base64))
def test_no_message_is_an_error(body: str):
    contents = contents_of(body)
    assert contents.created or contents.others
    assert all(each.bucket and each.key for each in contents.created)
