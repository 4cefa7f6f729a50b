"""AWS CloudTrail: one document `{"Records": [...]}` per file, and a form for each API call."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.support.real_data.kind import (
    Kind,
    Record,
    halves,
    hexadecimal,
    ipv4,
    is_one_in,
    moment,
    squeezed,
    uuid,
    word,
    zulu,
)

ACCOUNT = "123456789012"


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_event(random) for _ in range(size)]


def _event(random: Random) -> Record:
    name = random.choice(list(CALLS))
    source, asked, answered = CALLS[name](random)
    event: Record = {
        "eventVersion": random.choice(["1.08", "1.09"]),
        "userIdentity": _identity(random),
        "eventTime": zulu(moment(random)),
        "eventSource": f"{source}.amazonaws.com",
        "eventName": name,
        "awsRegion": random.choice(["us-east-1", "eu-central-1"]),
        "sourceIPAddress": random.choice([ipv4(random), "AWS Internal"]),
        "userAgent": random.choice(["aws-cli/2.15.0 Python/3.11.6", "console.amazonaws.com"]),
        "requestParameters": asked,
        "responseElements": answered,
        "requestID": hexadecimal(random, 16).upper(),
        "eventID": uuid(random),
        "readOnly": answered is None,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": ACCOUNT,
        "eventCategory": "Management",
    }
    if is_one_in(random, 6):
        event["errorCode"] = "AccessDenied"
        event["errorMessage"] = f"User: arn:aws:iam::{ACCOUNT}:user/x is not authorized"
    if is_one_in(random, 3):
        event["additionalEventData"] = {
            "SignatureVersion": "SigV4",
            "bytesTransferredIn": random.choice([0, 0.0, 512]),
            "x-amz-id-2": hexadecimal(random, 20),
        }
    if is_one_in(random, 3):
        event["resources"] = [
            {"ARN": "arn:aws:s3:::b", "accountId": ACCOUNT, "type": "AWS::S3::Bucket"},
            {"type": "AWS::S3::Object", "ARNPrefix": "arn:aws:s3:::b/"},
        ]
    if is_one_in(random, 2):
        event["tlsDetails"] = {
            "tlsVersion": "TLSv1.3",
            "cipherSuite": "TLS_AES_128_GCM_SHA256",
            "clientProvidedHostHeader": "s3.amazonaws.com",
        }
    return event


def _identity(random: Random) -> Record:
    match random.choice(["IAMUser", "AssumedRole", "AWSService"]):
        case "IAMUser":
            return {
                "type": "IAMUser",
                "principalId": f"AIDA{word(random, 12).upper()}",
                "arn": f"arn:aws:iam::{ACCOUNT}:user/ana",
                "accountId": ACCOUNT,
                "accessKeyId": f"AKIA{word(random, 12).upper()}",
                "userName": "ana",
            }
        case "AssumedRole":
            return {
                "type": "AssumedRole",
                "principalId": "AROAX:session",
                "accountId": ACCOUNT,
                "sessionContext": {
                    "sessionIssuer": {"type": "Role", "userName": "deploy"},
                    "webIdFederationData": {},
                    "attributes": {
                        "creationDate": zulu(moment(random)),
                        "mfaAuthenticated": random.choice(["true", "false"]),
                    },
                },
            }
    return {"type": "AWSService", "invokedBy": "ec2.amazonaws.com"}


Call = tuple[str, Any, Any]


def _get_object(random: Random) -> Call:
    return "s3", {"bucketName": "b", "Host": "b.s3.amazonaws.com", "key": word(random, 8)}, None


def _assume_role(random: Random) -> Call:
    asked = {
        "roleArn": f"arn:aws:iam::{ACCOUNT}:role/deploy",
        "roleSessionName": word(random, 8),
        "durationSeconds": random.choice([3600, 900]),
    }
    credentials = {
        "accessKeyId": f"ASIA{word(random, 12).upper()}",
        "expiration": f"{moment(random):%b %-d, %Y %-I:%M:%S %p}",
    }
    return "sts", asked, {"credentials": credentials}


def _put_policy(random: Random) -> Call:
    policy: Any = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*"}]}
    # The same member is an object from one service and a string from another.
    if is_one_in(random, 2):
        policy = json.dumps(policy)
    return "s3", {"bucketName": "b", "policy": policy, "policyName": "p"}, None


def _tag(random: Random) -> Call:
    tags = random.choice([{"env": "prod", "team": "data"}, [{"key": "env", "value": "dev"}]])
    return "lambda", {"resource": "arn:aws:lambda:x", "tags": tags}, "null"


CALLS = {
    "GetObject": _get_object,
    "AssumeRole": _assume_role,
    "PutBucketPolicy": _put_policy,
    "TagResource": _tag,
}


def _written(every: Sequence[Record]) -> Mapping[str, bytes]:
    start = f"{ACCOUNT}_CloudTrail_us-east-1_20240510T00"
    names = (f"{start}05Z_a1.json.gz", f"{start}10Z_b2.json.gz")
    return {
        name: squeezed(name, json.dumps({"Records": part}, separators=(",", ":")).encode())
        for name, part in zip(names, halves(every), strict=True)
    }


CLOUDTRAIL = Kind(
    name="cloudtrail",
    records=records,
    written=_written,
    source={"format": "json", "records": "Records"},
)
