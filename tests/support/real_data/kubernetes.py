"""The audit log of a Kubernetes API server: deep, with maps whose keys are data."""

from random import Random

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    ipv4,
    is_one_in,
    moment,
    uuid,
    word,
    zulu,
)


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_event(random) for _ in range(size)]


def _event(random: Random) -> Record:
    verb = random.choice(["get", "list", "watch", "create", "patch", "update", "delete"])
    resource = random.choice(["pods", "configmaps", "leases", "secrets"])
    namespace, name = random.choice(["kube-system", "default", "shop"]), word(random, 10)
    came = moment(random)
    is_change = verb in ("create", "update", "patch")
    event: Record = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse" if is_change else "Metadata",
        "auditID": uuid(random),
        "stage": random.choice(["RequestReceived", "ResponseComplete"]),
        "requestURI": f"/api/v1/namespaces/{namespace}/{resource}/{name}?timeout=10s",
        "verb": verb,
        "user": _user(random),
        "sourceIPs": [ipv4(random) for _ in range(random.choice([1, 1, 2]))],
        "userAgent": "kube-controller-manager/v1.29.1 (linux/amd64) kubernetes/bc401b9",
        "objectRef": {
            "resource": resource,
            "namespace": namespace,
            "name": name,
            "apiVersion": "v1",
            **({"subresource": "status"} if is_one_in(random, 5) else {}),
        },
        "requestReceivedTimestamp": zulu(came, digits=6),
        "stageTimestamp": zulu(came, digits=6),
        "annotations": {
            "authorization.k8s.io/decision": random.choice(["allow", "forbid"]),
            "authorization.k8s.io/reason": random.choice(["", 'RBAC: allowed by "x"']),
            **(
                {"pod-security.kubernetes.io/enforce-policy": "privileged:latest"}
                if is_one_in(random, 4)
                else {}
            ),
        },
    }
    if event["stage"] == "ResponseComplete":
        code = random.choice([200, 201, 404, 409])
        failed = {"status": "Failure", "reason": "NotFound"} if code >= 400 else {}
        event["responseStatus"] = {"metadata": {}, **failed, "code": code}
    if is_change:
        event["requestObject"] = _object(random, resource, namespace, name)
        event["responseObject"] = _object(random, resource, namespace, name)
    if is_one_in(random, 8):
        event["impersonatedUser"] = {"username": "ops", "groups": ["system:authenticated"]}
    return event


def _user(random: Random) -> Record:
    if is_one_in(random, 2):
        return {"username": "system:apiserver", "uid": uuid(random), "groups": ["system:masters"]}
    return {
        "username": "system:serviceaccount:shop:web",
        "uid": uuid(random),
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/credential-id": [f"JTI={uuid(random)}"],
            "authentication.kubernetes.io/pod-name": [f"web-{hexadecimal(random, 9)}"],
        },
    }


def _object(random: Random, resource: str, namespace: str, name: str) -> Record:
    at = moment(random)
    labels = {"app": "web", f"{word(random, 5)}.example.com/rev": hexadecimal(random, 6)}
    found: Record = {
        "kind": {"pods": "Pod", "configmaps": "ConfigMap", "leases": "Lease"}.get(
            resource, "Secret"
        ),
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uuid(random),
            "resourceVersion": str(random.randrange(10**9)),
            "generation": random.randrange(9),
            "creationTimestamp": random.choice([None, zulu(at)]),
            "labels": labels,
            "annotations": {f"{word(random, 6)}.io/{word(random, 4)}": "true"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
            "managedFields": [
                {
                    "manager": "kubelet",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": zulu(at),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": _owned_fields(random),
                }
            ],
        },
    }
    match resource:
        case "configmaps":
            found["data"] = {f"{word(random, 6)}.yaml": "a: 1\nb: {c: [1, 2]}\n"}
            found["immutable"] = is_one_in(random, 2)
        case "secrets":
            found["data"] = {word(random, 8): "c2VjcmV0"}
            found["type"] = "Opaque"
        case "leases":
            found["spec"] = {
                "holderIdentity": uuid(random),
                "leaseDurationSeconds": 40,
                "renewTime": zulu(at, digits=6),
            }
        case "pods":
            found["spec"] = _pod(random)
            found["status"] = {"phase": "Running", "podIP": ipv4(random), "startTime": zulu(at)}
    return found


def _owned_fields(random: Random) -> Record:
    """Return which fields are owned: each name is one of the object's, an element's or a key's."""
    keys: Record = {f'k:{{"type":"{word(random, 6)}"}}': {".": {}, "f:status": {}}}
    return {"f:status": {"f:conditions": {".": {}, **keys}, f"f:{word(random, 6)}": {}}}


def _pod(random: Random) -> Record:
    return {
        "containers": [
            {
                "name": "web",
                "image": f"registry.example.com/web:{hexadecimal(random, 7)}",
                "args": ["--port", "8080"],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "env": [
                    {"name": "MODE", "value": "prod"},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
                "resources": {
                    "limits": {"cpu": random.choice(["500m", "1"]), "memory": "128Mi"},
                    "requests": {"cpu": "100m"},
                },
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": random.choice([8080, "http"])},
                    "periodSeconds": 10,
                },
            }
        ],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "restartPolicy": "Always",
        "securityContext": {},
    }


KUBERNETES = Kind(
    name="kubernetes audit",
    records=records,
    written=as_lines("audit-2024-05-10T00-00-00.000.log", "audit.log"),
)
