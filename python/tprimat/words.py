"""Keyword options as words of the command line."""

from __future__ import annotations

import difflib
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Union

from tprimat.errors import InputError, Problem

Place = Union[str, "os.PathLike[str]"]
Amount = Union[float, int, str]
Whole = Union[int, str]
One = Union[str, int, float, "os.PathLike[str]"]
Values = Union[One, Iterable[One], Mapping[str, Any]]


class CallOptions(TypedDict, total=False):
    """What every call takes."""

    # The configuration file; without it ./config.yaml, else the built-in default
    config: Place
    # Whether what the program tells on stderr appears, as it comes
    progress: bool
    # Seconds after which the program is stopped; without it, none
    time_limit: float


def make_words(command: str, options: Mapping[str, Any]) -> list[str]:
    """--kebab-case for snake_case. True is a flag; None and False leave an option out. The words of a list go where the
    option takes a list, else the option is repeated; a mapping is a list of NAME=VALUE."""
    from tprimat._generated.options import SEPARATORS

    known = SEPARATORS[command]
    words: list[str] = []
    for name, value in options.items():
        if name not in known:
            raise InputError(Problem(f"tprimat.{command.split()[0]} has no option '{name}'", name,
                                     suggest(name, known)))
        if value is None or value is False:
            continue
        words += write_option(name, value, known[name])
    return words


def suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 2)
    near += [each for each in known if name in each.split("_") and each not in near]
    return "did you mean " + " or ".join(f"'{each}'" for each in near[:2]) + "?" if near else \
        "its options are " + ", ".join(known)


def write_option(name: str, value: Any, separator: str | None) -> list[str]:
    option = "--" + name.replace("_", "-")
    if separator == "?":
        return [option] if value is True else [f"{option}={write_value(name, value)}"]
    if separator is None:
        if value is not True:
            raise InputError(Problem(f"option '{name}' is a flag: True or False, not {value!r}", name, ""))
        return [option]
    if value is True:
        raise InputError(Problem(f"option '{name}' needs a value", name, ""))
    values = list_values(name, value)
    if separator:
        return write_word(option, separator.join(values)) if values else []
    return [word for each in values for word in write_word(option, each)]


def write_word(option: str, value: str) -> list[str]:
    """A value that begins like an option is none."""
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def list_values(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}={write_value(name, each)}" for key, each in value.items()]
    if isinstance(value, (str, bytes, numbers.Number, os.PathLike)) or not isinstance(value, Iterable):
        return [write_value(name, value)]
    return [write_value(name, each) for each in value]


def write_value(name: str, value: Any) -> str:
    """As YAML and the command line write it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return str(int(value))  # 15e12 tokens
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(write_value(name, each) for each in value) + "]"
    if isinstance(value, os.PathLike):
        return write_path(name, value)
    if isinstance(value, (str, numbers.Number, Mapping)):
        return str(value)
    raise InputError(Problem(f"{name} is {value!r}, of type {type(value).__name__}", name,
                             "give it a text, a number or a path"))


def write_path(name: str, value: Any) -> str:
    """What is a text or a path."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise InputError(Problem(f"{name} is {value!r}, of type {type(value).__name__}", name,
                                 "give it a text or a path"))
    return text
