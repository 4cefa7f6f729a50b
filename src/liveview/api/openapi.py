"""The OpenAPI document, made from the routes and the documents that they answer with. Pure."""

import json
import sys
from importlib.metadata import version as installed_version
from typing import Any

from pydantic import TypeAdapter

from liveview.api.parameters import LONGEST, NAME, TEXT, Parameter
from liveview.api.routes import OPENAPI, ROUTES, STREAM, Route
from liveview.model import Overview
from liveview.parts import Refusal

REFERENCE = "#/components/schemas/{model}"
FAULTS = {
    "400": "The request has a parameter or a name that it must not have.",
    "401": "The token is missing or wrong.",
    "404": "There is no pipeline, table or file of this name.",
    "405": "The API can only be read.",
    "500": "A fault of the program; its log has the details.",
    "503": "It cannot be told now: it is still being read, or a store does not answer.",
}
TITLE = "blizzard and penguin, live"


def document(version: str) -> dict[str, Any]:
    """Return the whole document."""
    schemas: dict[str, Any] = {}
    for kind in (*dict.fromkeys(route.kind for route in ROUTES), Refusal):
        schema = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode="serialization")
        schemas.update(schema.pop("$defs", {}))
        schemas.setdefault(kind.__name__, schema)
    paths = {route.path: {"get": _operation(route)} for route in ROUTES}
    paths[STREAM] = {"get": _stream()}
    paths[OPENAPI] = {"get": _itself()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": version,
            "description": "What both programs are doing, and what they have done. Read-only: "
            "every route takes GET and HEAD. Times are RFC 3339 in UTC, durations are in seconds, "
            "sizes in bytes. No answer holds anything of the data.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: _closed(schemas[name]) for name in sorted(schemas)},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Needed where metrics.token or metrics.token_file is set.",
                }
            },
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
        parameters.insert(0, _name(route.of[:-1]))
        name = f"{name}_one" if route.path.endswith("{name}") else name
    return {
        "operationId": name,
        "summary": route.what,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": route.what + ".",
                "content": _json(f"#/components/schemas/{route.kind.__name__}"),
            },
            **_refusals(*FAULTS),
        },
    }


def _stream() -> dict[str, Any]:
    return {
        "operationId": "live",
        "summary": "The overview, once and whenever it changes",
        "description": "`event: overview` with an Overview as its data, at most once a second; a "
        "comment every 15 seconds. There are at most 8 streams, and each ends after 10 minutes.",
        "responses": {
            "200": {
                "description": "Server-sent events.",
                "content": {
                    "text/event-stream": {
                        "schema": {"type": "string"},
                        "x-event-data": {
                            "overview": {"$ref": f"#/components/schemas/{Overview.__name__}"}
                        },
                    }
                },
            },
            **_refusals(*FAULTS),
        },
    }


def _itself() -> dict[str, Any]:
    return {
        "operationId": "openapi",
        "summary": "This document",
        "responses": {
            "200": {
                "description": "An OpenAPI document.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **_refusals("400", "401", "405"),
        },
    }


def _refusals(*codes: str) -> dict[str, Any]:
    content = _json(f"#/components/schemas/{Refusal.__name__}")
    return {code: {"description": FAULTS[code], "content": content} for code in codes}


def _json(reference: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": reference}}}


def _name(of: str) -> dict[str, Any]:
    return {
        "name": "name",
        "in": "path",
        "required": True,
        "description": f"The name of the {of}, as the overview has it.",
        "schema": {"type": "string", "pattern": NAME},
    }


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": LONGEST, "pattern": TEXT}
    if one.is_number:
        schema = {"type": "integer", "minimum": one.least, "maximum": one.most}
    elif one.required:
        schema["minLength"] = 1
    if one.default is not None:
        schema["default"] = one.default
    return {
        "name": one.name,
        "in": "query",
        "required": one.required,
        "description": one.what[0].upper() + one.what[1:] + ".",
        "schema": schema,
    }


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which every field is there, and no other is."""
    if schema.get("type") != "object" or "properties" not in schema:
        return schema
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}


if __name__ == "__main__":
    sys.stdout.write(text(installed_version("blizzard-penguin")))
