"""The built page, from `client_dir`: nothing outside it, nothing hidden in it."""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath
from typing import Final

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

mimetypes.init()  # at import: it reads files, which no event loop should wait for
mimetypes.add_type("text/javascript", ".js")  # some machines say text/plain

FOREVER: Final = "public, max-age=31536000, immutable"  # names with a hash of their content in them
EACH_TIME: Final = "no-cache"  # ask whether it is still the same
_NOT_BUILT: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>veldt: the page is not built</title>
<h1>The player's page is not built</h1>
<p>The service runs, but its page is missing. Build it with
<code>make setup</code> (or <code>npm ci &amp;&amp; npm run build</code> in <code>web_client</code>)
and load this again. <code>VELDT_CLIENT_DIR</code> names another folder.</p>
</html>
"""


class PlayerPage(StaticFiles):
    """Files of the build; `/` is `index.html`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, html=True, check_dir=False)
        self._index = directory / "index.html"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application; mounted at the root, behind every route."""
        if scope["type"] != "http":
            return
        await super().__call__(scope, receive, send)

    async def check_config(self) -> None:
        """A missing folder is a page that is not built, which `get_response` says."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file with its caching, or 404."""
        if _hidden(path):
            raise HTTPException(404)
        try:
            response = await super().get_response(path, scope)
        except ValueError:  # a NUL or a lone surrogate: no file has such a name
            raise HTTPException(404) from None
        except HTTPException as error:
            if path != "." or error.status_code != 404:
                raise
            if await anyio.to_thread.run_sync(self._index.is_file):
                raise
            return HTMLResponse(_NOT_BUILT, 503, {"Cache-Control": "no-store"})
        hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = FOREVER if hashed else EACH_TIME
        return response


def _hidden(path: str) -> bool:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return path != "." and any(part.startswith(".") for part in parts)
