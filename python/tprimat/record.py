"""What the dataclasses of tprimat's JSON share: they are read from it and written to it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union

Self = TypeVar("Self", bound="Record")


class DataError(ValueError):
    """JSON that is not what the schema promises: written by an older program, or by another one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object. Properties that this version does not know are kept in `extra`, and written back."""

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls: type[Self], data: Any) -> Self:
        """From a parsed JSON object."""
        return read_record(cls, data, cls.__name__)

    def to_json(self) -> dict[str, Any]:
        """An object that json.dumps takes. What is not known is left out, or null where the schema wants it."""
        shape = shape_of(type(self))
        values = {name: getattr(self, name) for name in shape.keys}
        return {shape.keys[name]: as_json(value) for name, value in values.items()
                if value is not None or name in shape.required} | dict(self.extra)

    def __str__(self) -> str:
        """For people: what is known, one line each."""
        shown = known_values(self)
        width = max(map(len, shown), default=0)
        lines = [type(self).__name__]
        for name, value in shown.items():
            several = value if is_records(value) else ()
            lines.append(f"  {name:<{width}}  {f'{len(several)}:' if several else summarise(value)}")
            lines += [f"    {summarise(each)}" for each in several[:SHOWN]]
            lines += [f"    and {len(several) - SHOWN} more"] if len(several) > SHOWN else []
        return "\n".join(lines)


def known_values(record: Record) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in shape_of(type(record)).keys}
    return {name: value for name, value in values.items() if value not in (None, "", (), {})}


@dataclasses.dataclass(frozen=True)
class Shape:
    """The attributes of a record: their JSON keys, which differ where a key is a word of Python, and types."""

    keys: dict[str, str]
    types: dict[str, Any]
    required: frozenset[str]


SHAPES: dict[Any, Shape] = {}


def shape_of(kind: type[Any]) -> Shape:
    if kind not in SHAPES:
        fields = [each for each in dataclasses.fields(kind) if each.name != "extra"]
        SHAPES[kind] = Shape({each.name: each.metadata.get("key", each.name) for each in fields},
                             typing.get_type_hints(kind),
                             frozenset(each.name for each in fields if each.default is dataclasses.MISSING))
    return SHAPES[kind]


def read_record(kind: type[Self], data: Any, place: str) -> Self:
    if not isinstance(data, dict):
        raise DataError(f"{place} is not an object")
    shape = shape_of(kind)
    values: dict[str, Any] = {}
    for name, key in shape.keys.items():
        if key in data:
            values[name] = read_value(shape.types[name], data[key], f"{place}.{key}")
        elif name in shape.required and not accepts_none(shape.types[name]):
            raise DataError(f"{place}.{key} is missing")
        else:
            values[name] = None
    known = set(shape.keys.values())
    return kind(**values, extra={key: value for key, value in data.items() if key not in known})


def accepts_none(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def read_value(kind: Any, value: Any, place: str) -> Any:
    """The value as the attribute's type wants it: a tuple for a list, a float for a whole number."""
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        known = next(each for each in typing.get_args(kind) if each is not type(None))
        return None if value is None else read_value(known, value, place)
    if origin is tuple:
        return read_list(typing.get_args(kind)[0], value, place)
    if origin is dict:
        return read_map(typing.get_args(kind)[1], value, place)
    if isinstance(kind, type) and issubclass(kind, Record):
        return read_record(kind, value, place)
    return read_scalar(kind, value, place)


def read_map(kind: Any, value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{place} is not an object")
    return {key: read_value(kind, each, f"{place}.{key}") for key, each in value.items()}


def read_list(kind: Any, value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise DataError(f"{place} is not a list")
    return tuple(read_value(kind, each, f"{place}[{n}]") for n, each in enumerate(value))


def read_scalar(kind: Any, value: Any, place: str) -> Any:
    """A word that a newer program added to an enumeration passes."""
    expected = type(typing.get_args(kind)[0]) if typing.get_origin(kind) is Literal else kind
    if expected is float and type(value) is int:
        try:
            return float(value)
        except OverflowError as error:
            raise DataError(f"{place} is too large") from error
    if type(value) is not expected:
        raise DataError(f"{place} is {value!r}, not of type {expected.__name__}")
    return value


SHOWN = 12  # of a list


def is_records(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], Record)


def summarise(value: Any) -> str:
    """On one line."""
    if isinstance(value, Record):
        if type(value).__str__ is not Record.__str__:
            return str(value).split("\n")[0]
        return ", ".join(f"{name} {summarise(each)}" for name, each in known_values(value).items())
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {summarise(each)}" for key, each in value.items())
    if isinstance(value, tuple):
        rest = f" and {len(value) - SHOWN} more" if len(value) > SHOWN else ""
        return ", ".join(map(summarise, value[:SHOWN])) + rest
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:.4g}"


def as_json(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    return value
