"""What every use of a data frame needs: Spark itself, and columns that Python can be handed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sunzi.errors import MissingExtraError, ParameterError
from sunzi.tables.terms import Terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ID_KINDS = ("binary", "string", "byte", "short", "integer", "long")
_UNGROUPED_KINDS = ("array", "map", "struct", "variant", "interval", "calendarinterval")


def need_spark() -> Any:
    """pyspark.sql, or an error that says which extra it comes with."""
    try:
        import pyspark.sql
    except ModuleNotFoundError:
        raise MissingExtraError("counting with Spark", "spark") from None
    return pyspark.sql


def plain_name(place: int) -> str:
    """A name for a column by its place: Spark cannot hand a column with a dot or a backtick in its name to Python."""
    return f"sunzi_column_{place}"


def plain_frame(df: DataFrame) -> DataFrame:
    """The same columns under plain names."""
    return df.toDF(*map(plain_name, range(len(df.columns))))


def chosen(terms: Terms, df: DataFrame) -> tuple[Terms, DataFrame]:
    """The columns that are counted, under plain names, each of a kind that serves."""
    _check_kinds(terms, df)
    plain = {name: plain_name(df.columns.index(name)) for name in terms.columns}
    identifier = None if terms.id_column is None else plain[terms.id_column]
    renamed = Terms(terms.plan, plain[terms.report_column], identifier, tuple(plain[name] for name in terms.by))
    return renamed, plain_frame(df).select(*renamed.columns)


def _check_kinds(terms: Terms, df: DataFrame) -> None:
    def require(name: str, good: bool, needed: str) -> None:
        if not good:
            kind = df.schema[name].dataType.simpleString()
            raise ParameterError(f"the column {name!r} must hold {needed}, it holds {kind}")

    def kind_of(name: str) -> str:
        return df.schema[name].dataType.typeName()

    require(terms.report_column, kind_of(terms.report_column) == "binary", "binary values")
    if terms.id_column is not None:
        require(terms.id_column, kind_of(terms.id_column) in _ID_KINDS, "bytes, texts or integers")
    for name in terms.by:
        unsorted = any(word in kind_of(name) for word in _UNGROUPED_KINDS)
        require(name, not unsorted, "values that can be told apart and sorted")
