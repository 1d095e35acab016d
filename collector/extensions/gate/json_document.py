"""The result of a gate as JSON, and read back."""

from __future__ import annotations

from typing import Any

import msgspec

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.gate.model import GateResult
from locktop.collector.render import files
from locktop.collector.render.input_file import open_input
from locktop.collector.sanitize import clean

#: A gate of some hundred classes takes a thousandth of this.
_MAX_BYTES = 64 << 20


def encode(result: GateResult) -> bytes:
    """Return the document, with the exit status beside the fields of the result."""
    fields = {name: _clean(value) for name, value in msgspec.to_builtins(result).items()}
    return files.encoded_json({**fields, "status": result.status})


def _clean(value: Any) -> Any:
    """Return a value of JSON without control codes in its texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {name: _clean(part) for name, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list | tuple) else value


def read(path: str) -> GateResult:
    """Return the result in a file. Raises LocktopError."""
    with open_input(path) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise LocktopError(f"{path}: too large for the result of a gate")
    try:
        return msgspec.convert(_clean(msgspec.json.decode(data)), GateResult)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LocktopError(f"{path}: no result of `locktop gate`: {clean(str(error))}") from None
