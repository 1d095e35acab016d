"""The JSON Schema of a snapshot, and docs/snapshot.md, both made from the document's types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from locktop.collector.render.documents.snapshot_document import FORMAT, VERSION, Document
from locktop.collector.render.documents.snapshot_fields import Address

_HEAD = f"""\
# Snapshots

`locktop snapshot -p PID` writes what one scan showed, as JSON or (`--format msgpack`) as msgpack.
`snapshot`, `check` and `callers` read such a file. The format is `{FORMAT}`,
version {VERSION}. Later versions may add keys; the keys of this page keep their meaning.

Times are seconds. Addresses are hexadecimal texts. `null` means "not measured". A reader
needs the keys with `*`; each other key has a default. `locktop snapshot --schema` prints the JSON
Schema.

This page is made by `make snapshot-reference` from the types in `collector/render`.
"""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    return msgspec.json.schema(Document, schema_hook=_own_type)


def schema_text() -> str:
    """Return the JSON Schema as text."""
    return json.dumps(schema(), indent=1) + "\n"


def _own_type(kind: type) -> dict[str, Any]:
    return {"type": "string", "pattern": "^-?0x[0-9a-f]+$" if kind is Address else "^[0-9]+$"}


def markdown() -> str:
    """Return docs/snapshot.md: one table for each object of the document."""
    return "".join([_HEAD, *_tables(schema()["$defs"])])


def _tables(objects: dict[str, Any]) -> Iterator[str]:
    """Yield the tables, an object before the objects that it contains."""
    order = [Document.__name__]
    for name in order:
        yield f"\n## {_title(name)}\n\n{_one_line(objects[name].get('description', ''))}\n\n"
        yield "| key | type | meaning |\n|---|---|---|\n"
        required = set(objects[name].get("required", ()))
        for key, schema in objects[name]["properties"].items():
            star = "\\*" if key in required else ""
            kind = _type(schema, objects)
            yield f"| `{key}`{star} | {kind} | {_one_line(schema.get('description', ''))} |\n"
            order += [part for part in _parts(schema) if part in objects and part not in order]


def _parts(schema: Any) -> Iterator[str]:
    """Yield the names of the objects that a part of the schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if not name.endswith("Entry") and not name.endswith("Interval"):
                return
            yield name
        for part in schema.values():
            yield from _parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _parts(part)


def _type(schema: dict[str, Any], objects: dict[str, Any]) -> str:
    """Return the type of a key in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        values = objects[name].get("enum")
        return ", ".join(f"`{value}`" for value in values) if values else _link(name)
    if "anyOf" in schema:
        return " or ".join(_type(part, objects) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema['items'], objects)}"
    if kind == "object":
        return f"object of {_type(schema['additionalProperties'], objects)}"
    if kind == "string" and "0x" in schema.get("pattern", ""):
        return "address"
    return {"string": "text", "integer": "integer", "null": "null", "boolean": "true or false"}.get(
        str(kind), str(kind)
    )


def _title(name: str) -> str:
    words = name.removesuffix("Entry")
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in words).strip()
    return spaced.capitalize() if name != Document.__name__ else "The document"


def _link(name: str) -> str:
    title = _title(name)
    return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
