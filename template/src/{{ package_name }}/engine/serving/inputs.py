"""What a request may hold: image files or an array of pixels; everything else is refused with a reason."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import anyio
import numpy as np
from fastapi import HTTPException, Request
from numpy.typing import NDArray
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect
from starlette.types import Message

from ..cores import usable_cores
from ..images.decoding import BadImage, decode, fit

FIELD = "images"  # the name of the part of a form, and the key of a JSON object
RAW = ("application/octet-stream", "image/")
MEDIA = "image/png, image/jpeg or another image type, multipart/form-data, or application/json"
DRAINED = 8  # times the largest body that is read to its end, so that the sender comes to read the answer


class Limits(NamedTuple):
    """Bytes of a body, images of a request."""

    body: int
    images: int


def array_shape(shape: tuple[int, int, int]) -> tuple[int, ...]:
    """How an image is nested in JSON: `(H, W)` in grey, `(H, W, C)` in colour."""
    channels, height, width = shape
    return (height, width) if channels == 1 else (height, width, channels)


class Inputs:
    """Makes images of requests.

    Args:
        shape: `(C, H, W)` of what the network takes.
    """

    def __init__(self, shape: tuple[int, int, int], limits: Limits) -> None:
        channels, *size = shape
        self.size = tuple(size)
        self.array_shape = array_shape(shape)
        self.limits = limits
        self.decoders = anyio.CapacityLimiter(usable_cores())

    async def body(self, request: Request) -> bytes:
        """Reads the body; one that is too large is dropped while it comes."""
        most = self.limits.body
        too_large = HTTPException(413, f"the body is larger than {most:,} bytes")
        if request.headers.get("expect") == "100-continue" and int(request.headers.get("content-length", 0)) > most:
            raise too_large
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                elif size > DRAINED * most:
                    break
        except ClientDisconnect as error:
            raise HTTPException(400, "the body ended early") from error
        if size > most:
            raise too_large
        return b"".join(parts)

    async def images(self, request: Request, body: bytes) -> NDArray[np.uint8]:
        """The images of a request, `[N, C, H, W]`."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
            raise HTTPException(415, f"the body must come as it is, not in the content encoding {coding}")
        if media == "application/json":
            return await self._in_thread(self._pixels, body)
        if media == "multipart/form-data":
            return await self._in_thread(self._decoded, await self._files(request, body))
        if media.startswith(RAW):
            return await self._in_thread(self._decoded, [("the body", body)])
        raise HTTPException(415, f"the media type must be {MEDIA} (got {media or 'none'})")

    async def _in_thread(self, work: Callable[..., NDArray[np.uint8]], *arguments: Any) -> NDArray[np.uint8]:
        return await anyio.to_thread.run_sync(partial(work, *arguments), limiter=self.decoders)

    async def _files(self, request: Request, body: bytes) -> list[tuple[str, bytes]]:
        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        form = Request(request.scope, receive).form(max_files=self.limits.images, max_fields=self.limits.images)
        async with form as parts:
            files = []
            for name, part in parts.multi_items():
                if name != FIELD or not isinstance(part, UploadFile):
                    raise HTTPException(422, f"the form may hold files called {FIELD} and nothing else (got {name!r})")
                files.append((part.filename or f"file {len(files) + 1}", await part.read()))
        return files

    def _decoded(self, files: list[tuple[str, bytes]]) -> NDArray[np.uint8]:
        self._check_number(len(files))
        images = []
        for name, content in files:
            try:
                images.append(self.read(content))
            except BadImage as error:
                raise HTTPException(422, f"{name}: {error}") from error
        return np.stack(images).transpose(0, 3, 1, 2)

    def _pixels(self, body: bytes) -> NDArray[np.uint8]:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is no JSON: {error}") from error
        if not isinstance(content, dict) or set(content) != {FIELD} or not isinstance(content[FIELD], list):
            raise HTTPException(422, f'the body must be {{"{FIELD}": [...]}} with one array for each image')
        self._check_number(len(content[FIELD]))
        return np.stack([self._array(number, image) for number, image in enumerate(content[FIELD])])

    def _array(self, number: int, image: Any) -> NDArray[np.uint8]:
        try:
            pixels = np.asarray(image)
        except ValueError as error:  # of rows that differ in length, or nest too deep
            raise HTTPException(422, f"{FIELD}[{number}] is no array of numbers of shape {self.array_shape}") from error
        if pixels.dtype.kind not in "iuf":
            raise HTTPException(422, f"{FIELD}[{number}] is no array of numbers of shape {self.array_shape}")
        if pixels.shape != self.array_shape:
            raise HTTPException(422, f"{FIELD}[{number}] has the shape {pixels.shape}, and must have {self.array_shape}")
        if not ((pixels >= 0) & (pixels <= 255) & (pixels == np.floor(pixels))).all():  # NaN is none of these
            raise HTTPException(422, f"{FIELD}[{number}] must hold whole numbers from 0 to 255, and nothing else")
        return pixels.astype(np.uint8)

    def _check_number(self, number: int) -> None:
        if number == 0:
            raise HTTPException(422, "the request holds no image")
        if number > self.limits.images:
            raise HTTPException(413, f"the request holds {number} images, and at most {self.limits.images} are taken")
