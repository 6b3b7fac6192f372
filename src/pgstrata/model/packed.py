"""Evidence that is kept packed by gzip."""

import gzip
import io
import zlib

from pgstrata.errors import ParseError
from pgstrata.model import sizes


def unpack(packed: bytes, name: str) -> bytes:
    """What was packed, empty for nothing; ParseError where it is damaged or larger than `sizes` allows."""
    most = min(sizes.UNPACKED, max(sizes.UNPACKED_AT_LEAST, sizes.UNPACKED_RATIO * len(packed)))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ParseError(f"it cannot be unpacked: {error}", where=name) from error
    if len(content) > most:
        raise ParseError(f"unpacked it is larger than {most >> 20} MiB", where=name)
    return content
