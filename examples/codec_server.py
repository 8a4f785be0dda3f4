"""Lets Temporal Web show jobs whose payloads are encrypted.

    LONGHAUL_CODEC_KEYS=… python -m examples.codec_server

Then enter http://127.0.0.1:8234 as the codec server in Temporal Web: the glasses in its top bar,
"Use my browser setting". The browser asks it, not Temporal, so it may run on the machine of the
person who looks. Whoever reaches it reads everything: it listens on this machine only, and answers
pages of one origin, http://localhost:8233 unless TEMPORAL_UI_ADDRESS names another. For more than
one person put it behind a login.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Sequence

import uvicorn
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads

from engine.codec import EncryptionCodec, keys_from_environment
from engine.setup_errors import SetupError

PORT = 8234
Turn = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


def codec_application(codec: EncryptionCodec, origin: str) -> Starlette:
    """The server.

    Args:
        origin: Where Temporal Web is, such as http://localhost:8233: pages of others are refused.
    """
    middleware = Middleware(
        CORSMiddleware,
        allow_origins=[origin],
        allow_methods=["POST"],
        allow_headers=["content-type", "x-namespace", "authorization"],
        allow_credentials=True,
    )
    routes = [
        Route("/decode", _payload_handler(codec.decode), methods=["POST"]),
        Route("/encode", _payload_handler(codec.encode), methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[middleware])


def _payload_handler(turn: Turn) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def answer(request: Request) -> JSONResponse:
        try:
            payloads = json_format.Parse(await request.body(), Payloads())
        except (json_format.ParseError, UnicodeDecodeError):
            return JSONResponse({"error": 'expected {"payloads": […]}'}, status_code=400)
        turned = Payloads(payloads=await turn(payloads.payloads))
        return JSONResponse(json_format.MessageToDict(turned))

    return answer


def main() -> None:
    """Serve until Ctrl-C."""
    try:
        keys = keys_from_environment()
    except SetupError as error:
        sys.exit(f"error: {error}")
    if not keys:
        sys.exit("error: LONGHAUL_CODEC_KEYS is not set; set it as the workers have it")
    origin = os.environ.get("TEMPORAL_UI_ADDRESS", "http://localhost:8233").rstrip("/")
    uvicorn.run(codec_application(EncryptionCodec(keys), origin), host="127.0.0.1", port=PORT)


if __name__ == "__main__":
    main()
