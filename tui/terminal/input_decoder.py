"""The input of the terminal as text for Textual's parser, whatever its bytes are."""

from __future__ import annotations

from codecs import getincrementaldecoder

#: The begin of a mouse report in the form of X10. Three bytes follow: buttons, column, row.
_REPORT = b"\x1b[M"
_REPORT_BYTES = len(_REPORT) + 3
#: X10 adds this number to each of the three values.
_OFFSET = 32
_MOTION, _WHEEL, _RELEASE = 32, 64, 3


class InputDecoder:
    """Decodes UTF-8. A byte that is no UTF-8 becomes U+FFFD.

    A mouse report in the form of X10 becomes a report in the form SGR, which Textual knows. The
    three bytes of X10 may be letters, or parts of a UTF-8 character.
    """

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._rest = b""  # the begin of a report, perhaps
        self._returned = 0  # characters of the rest that the caller has

    def decode(self, data: bytes) -> str:
        """Return the text of ``data``, the next bytes of the input.

        A report without its end is kept for the next call. A lone escape is returned at once,
        because it may be a key.
        """
        data, returned = self._rest + data, self._returned
        text, position = "", 0
        while (begin := data.find(_REPORT, position)) >= 0 and len(data) - begin >= _REPORT_BYTES:
            end = begin + _REPORT_BYTES
            text += self._decoder.decode(data[position:begin]) + _sgr_report(*data[end - 3 : end])
            position = end
        if begin >= 0:
            text += self._decoder.decode(data[position:begin])
            self._rest, self._returned = data[begin:], 0 if begin else returned
        else:
            text += self._decoder.decode(data[position:])
            self._rest = next(
                (rest for rest in (b"\x1b[", b"\x1b") if data[position:].endswith(rest)), b""
            )
            self._returned = len(self._rest)
        return text[returned:]


def _sgr_report(button: int, column: int, row: int) -> str:
    """Return the report in the form SGR."""
    button = max(0, button - _OFFSET)
    is_release = button & (_WHEEL | _MOTION | _RELEASE) == _RELEASE
    # X10 does not say which button the user released.
    number = button & ~_RELEASE if is_release else button
    # A column or a row beyond the range of a byte is 0.
    column, row = max(1, column - _OFFSET), max(1, row - _OFFSET)
    return f"\x1b[<{number};{column};{row}{'m' if is_release else 'M'}"
