"""Lists of records, and tables of them for pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tprimat.errors import MissingComponent, Problem

if TYPE_CHECKING:
    import pandas

Item = TypeVar("Item")


def make_frame(rows: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise MissingComponent(Problem("this Python has no pandas", "to_pandas", "pip install pandas")) from error
    return pandas.DataFrame(list(rows))


class Records(tuple[Item, ...], Generic[Item]):
    """A tuple of results, published rows or the like, which is also a table."""

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each."""
        from tprimat.views import rows_of

        return make_frame(rows_of(self))

    def __str__(self) -> str:
        return "\n".join(map(str, self))
