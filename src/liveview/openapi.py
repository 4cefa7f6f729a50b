"""The OpenAPI document, made from the routes and the documents that they answer with. Pure."""

import json
from typing import Any

from pydantic import TypeAdapter

from liveview.model import Refusal
from liveview.routes import LONGEST, NAME, OPENAPI, OVERVIEW, ROUTES, STREAM, TEXT, Parameter, Route

REFERENCE = "#/components/schemas/{model}"
FAULTS = {
    "400": "The request has a parameter or a name that it must not have.",
    "401": "The token is missing or wrong.",
    "404": "There is no pipeline, table or file of this name.",
    "405": "The API can only be read.",
    "500": "A fault of the program; its log has the details.",
    "503": "It cannot be told now: it is still being read, or a store does not answer.",
}
INFO = {
    "title": "blizzard and penguin, live",
    "description": "What both programs are doing, and what they have done. Read-only: "
    "every route takes GET and HEAD. Times are RFC 3339 in UTC, durations are in seconds, "
    "sizes in bytes. No answer holds anything of the data.",
}
TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Needed where metrics.token or metrics.token_file is set.",
}


def document(version: str) -> dict[str, Any]:
    """Return the whole document."""
    schemas: dict[str, Any] = {}
    for kind in (*dict.fromkeys(route.document for route in ROUTES), Refusal):
        schema = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode="serialization")
        schemas.update(schema.pop("$defs", {}))
        schemas.setdefault(kind.__name__, schema)
    paths = {route.path: _operation(route) for route in ROUTES}
    overview = next(route.document for route in ROUTES if route.path == OVERVIEW)
    data = {"overview": _reference(overview.__name__)}
    paths[STREAM] = _get(
        "live",
        "The overview, once and whenever it changes",
        "Server-sent events.",
        {"text/event-stream": {"schema": {"type": "string"}, "x-event-data": data}},
        description="`event: overview` with an Overview as its data, at most once a second; a "
        "comment every 15 seconds. There are at most 8 streams, and each ends after 10 minutes.",
    )
    itself = {"application/json": {"schema": {"type": "object"}}}
    paths[OPENAPI] = _get(
        "openapi", "This document", "An OpenAPI document.", itself, faults=("400", "401", "405")
    )
    return {
        "openapi": "3.1.0",
        "info": {**INFO, "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: _closed(schemas[name]) for name in sorted(schemas)},
            "securitySchemes": {"token": TOKEN},
        },
        "security": [{}, {"token": []}],
    }


def text(version: str) -> str:
    """Return the document as it is stored and served."""
    return json.dumps(document(version), indent=2, ensure_ascii=False) + "\n"


def _operation(route: Route) -> dict[str, Any]:
    name = route.path.removeprefix("/api/v1/").replace("/{name}", "").replace("/", "_")
    parameters = [_parameter(one) for one in route.parameters]
    if route.of is not None:
        described = f"The name of the {route.of[:-1]}, as the overview has it."
        schema = {"type": "string", "pattern": NAME}
        parameters.insert(0, _described("name", "path", described, schema, required=True))
        name = f"{name}_one" if route.path.endswith("{name}") else name
    content = _json(route.document.__name__)
    return _get(name, route.what, f"{route.what}.", content, parameters=parameters)


def _get(
    name: str,
    summary: str,
    answer: str,
    content: dict[str, Any],
    faults: tuple[str, ...] = tuple(FAULTS),
    **more: object,
) -> dict[str, Any]:
    refusals = {code: {"description": FAULTS[code], "content": _json("Refusal")} for code in faults}
    responses = {"200": {"description": answer, "content": content}, **refusals}
    return {"get": {"operationId": name, "summary": summary, **more, "responses": responses}}


def _json(kind: str) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(kind)}}


def _reference(kind: str) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=kind)}


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": LONGEST, "pattern": TEXT}
    if one.least is not None:
        schema = {"type": "integer", "minimum": one.least, "maximum": one.most}
    elif one.required:
        schema["minLength"] = 1
    if one.default is not None:
        schema["default"] = one.default
    described = f"{one.what[0].upper()}{one.what[1:]}."
    return _described(one.name, "query", described, schema, required=one.required)


def _described(
    name: str, place: str, described: str, schema: dict[str, Any], *, required: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": described,
        "schema": schema,
    }


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which every field is there, and no other is."""
    if schema.get("type") != "object" or "properties" not in schema:
        return schema
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}
