"""The routes over which a tenant uploads recordings of events, sees and forgets them."""

import asyncio
from http import HTTPStatus

from headstart_server import metrics
from headstart_server.asgi import send_json, send_whole
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.fetcher import MediaFetcher, check_recording, suffix_of
from headstart_server.request_context import RequestContext
from headstart_server.routes import UPLOADS, Route
from headstart_server.uploads import Uploads


class UploadRoutes:
    """Answers requests whose tenant is known. Used from one event loop only."""

    def __init__(self, uploads: Uploads, fetcher: MediaFetcher, decoder: MediaDecoder) -> None:
        self._uploads, self._fetcher, self._decoder = uploads, fetcher, decoder
        metrics.UPLOAD_BYTES.set_function(lambda: uploads.num_bytes)

    async def answer(self, context: RequestContext, route: Route, body: bytes) -> None:
        send, tenant = context.send, context.tenant
        name = context.scope["path"].rpartition("/")[2]
        if route.method == "POST":
            suffix = suffix_of(context.query("format"))
            check_recording(body, suffix)
            name = self._uploads.add(tenant, body, suffix)
            content = {"id": name, "object": "headstart.events", "bytes": len(body)}
            location = [(b"location", f"{UPLOADS}/{name}".encode())]
            await send_json(send, HTTPStatus.CREATED, content, location)
        elif route.method == "DELETE":
            self._uploads.remove(tenant, name)
            await send_json(send, HTTPStatus.OK, {"id": name, "deleted": True})
        else:
            fetched = await asyncio.to_thread(self._fetcher.upload, tenant, name)
            picture = await self._decoder.filmstrip(tenant, fetched)
            await send_whole(send, HTTPStatus.OK, b"image/png", picture)
