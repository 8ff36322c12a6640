"""Answers of the API: JSON that no text can break, and one sentence for whatever went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import JSONResponse


class Json(JSONResponse):
    """JSON in ASCII: half of a surrogate pair, which JSON can name, cannot be sent as UTF-8."""

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def problem(sentence: str, status: int = 422, headers: Mapping[str, str] | None = None) -> Json:
    """What went wrong, in one sentence."""
    return Json({"error": sentence}, status, dict(headers or {}))


def misfit(error: RequestValidationError | ValidationError) -> str:
    """The first thing in a request that is not as it should be, in one sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "function-after", "request"))
    if first["type"] == "json_invalid":
        return "the request is not JSON"
    words = str(first["msg"]).removeprefix("Value error, ")
    return f"{place or 'the request'}: {words[:1].lower()}{words[1:]}"
