"""Decoding an image file of any kind to 8-bit RGB or grey, and bringing it to one size."""

import io
import warnings
from typing import Any

import kornia_rs.io
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Image.init()
# PIL knows more kinds: some start other programs, none is usual for samples
KINDS = "AVIF BMP GIF JPEG JPEG2000 PNG PPM TIFF WEBP"
FORMATS = [kind for kind in KINDS.split() if kind in Image.OPEN]
LARGEST = 178_956_970  # pixels; PIL takes more for an attack on the memory
EXIF, ORIENTATION = b"Exif\x00\x00", 0x0112
SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of JPEG after which the size is stated
STANDALONE = {0x01, *range(0xD0, 0xD9)}  # markers without a length


class BadImage(Exception):
    """A file that holds no image which can be read; the message says why, in words."""


def decode(data: bytes, channels: int = 3) -> NDArray[np.uint8]:
    """Decodes the bytes of a file to `[H, W, channels]` uint8, upright as its EXIF orientation says.

    JPEG goes through kornia_rs, anything else and what that refuses through PIL. 16-bit grey is scaled to 8 bits, what
    is transparent lies on white, CMYK becomes RGB without a colour profile, and of several frames the first is taken.

    Args:
        channels: 3 for RGB; 1 for grey, as PIL's mode `L` weighs the colours.

    Raises:
        BadImage: empty, truncated or damaged, no image, larger than 179 million pixels, or of values whose black and
            white nobody knows (32 bits, floating numbers).
    """
    if not data:
        raise BadImage("the file is empty")
    pixels = _decode_jpeg(data)
    if pixels is None:
        pixels = _decode_with_pil(data)
    return pixels if channels == 3 else _grey(pixels)


def fit(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The central square of `[H, W, C]`, resized to `[size, size, C]`, antialiased; an image of that size stays."""
    height, width, channels = pixels.shape
    if height == width == size:
        return pixels
    side = min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    image = Image.fromarray(pixels if channels == 3 else pixels[..., 0])
    resized = image.resize((size, size), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
    return np.asarray(resized).reshape(size, size, channels)


def _decode_jpeg(data: bytes) -> NDArray[np.uint8] | None:
    """None where it is no JPEG, not grey or of three colours, or damaged: PIL then has its turn."""
    header = _jpeg_header(data)
    if header is None:
        return None
    height, width, components, exif = header
    if components not in (1, 3):
        return None
    _check_size(width, height)
    try:
        pixels: NDArray[np.uint8] = kornia_rs.io.decode_image_jpegturbo(data, "rgb")
    except Exception:
        return None
    return pixels if exif is None else _upright(pixels, _orientation(exif))


def _jpeg_header(data: bytes) -> tuple[int, int, int, bytes | None] | None:
    """Height, width, number of components and EXIF data."""
    if not data.startswith(b"\xff\xd8"):
        return None
    place, exif = 2, None
    while place + 9 < len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker in STANDALONE:
            place += 1 if marker == 0xFF else 2
            continue
        if marker in SIZES:
            sizes = data[place + 5 : place + 10]
            return int.from_bytes(sizes[:2]), int.from_bytes(sizes[2:4]), sizes[4], exif
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4])
        if marker == 0xE1 and data.startswith(EXIF, place + 4):
            exif = data[place + 4 : end]
        place = end
    return None


def _orientation(exif: bytes) -> int:
    found = Image.Exif()
    try:
        found.load(exif)
        return int(found.get(ORIENTATION, 1))
    except Exception:  # damaged beside an image that is not
        return 1


def _upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Undoes one of the eight orientations of EXIF; another number means none."""
    if not 2 <= orientation <= 8:
        return pixels
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _decode_with_pil(data: bytes) -> NDArray[np.uint8]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata; of sizes, which are checked here
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                _check_size(*image.size)
                image.load()
                return _rgb(image)
    except BadImage:
        raise
    except Image.UnidentifiedImageError as error:
        raise BadImage(f"no image of a kind that is known (it begins with {data[:8]!r})") from error
    except Image.DecompressionBombError as error:
        raise BadImage(_too_large("")) from error
    except MemoryError as error:
        raise BadImage("it does not fit the memory") from error
    except Exception as error:  # decoders fail in many ways
        raise BadImage(" ".join(str(error).split()) or type(error).__name__) from error


def _rgb(image: Any) -> NDArray[np.uint8]:
    try:
        image = ImageOps.exif_transpose(image)
    except Exception:  # damaged beside an image that is not
        image = image.copy()
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise BadImage("its values have 32 bits, and nobody knows which is white: make it an image of 8 or 16 bits")
        grey = ((values * 255 + 32767) // 65535).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    if image.mode == "F":
        raise BadImage("its values are floating numbers, and nobody knows which is white: make it one of 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.array(image.convert("RGB"))


def _grey(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    weighted = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((weighted + 0x8000) >> 16).astype(np.uint8)[..., None]


def _check_size(width: int, height: int) -> None:
    if width * height > LARGEST:
        raise BadImage(_too_large(f"{width}×{height} is "))


def _too_large(found: str) -> str:
    return f"{found}more than {LARGEST:,} pixels"
