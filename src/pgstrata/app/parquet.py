"""pyarrow, an optional extra."""

from __future__ import annotations

from typing import Any

from pgstrata.errors import UsageError


def require_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; UsageError where they are not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "writing Parquet needs pyarrow, which is not installed",
            where="--format parquet",
            remedy="install pgstrata with its extra (pip install 'pgstrata[parquet]'), or export CSV",
        ) from None
    return pa, parquet
