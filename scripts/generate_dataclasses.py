#!/usr/bin/env python3
"""Writes the dataclasses of the Python package from the JSON Schemas: python/tprimat/_generated, from schema/.

    scripts/generate_dataclasses.py            writes them
    scripts/generate_dataclasses.py --check    fails where they are out of date

One module for each schema; what several schemas define alike is in common.py. The same schemas give the same bytes.
"""

import json
import keyword
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS, PACKAGE = ROOT / "schema", ROOT / "python/tprimat/_generated"
OPTIONS = "options.py"  # is written by scripts/generate_options.py
WIDTH = 120
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
           "object": "dict[str, Any]"}
TAKEN = {"extra", "from_json", "to_json"}  # attributes that every Record has
# Classes that have more than their figures: what python/tprimat/views.py adds to them.
VIEWS = {"RunResult": "ResultView", "PlanComparison": "PlanView", "PlanReport": "PlanReportView",
         "PlanLine": "LayoutView", "Estimate": "EstimateView", "PublishedEntry": "EntryView", "Figure": "FigureView",
         "RunReport": "SuiteView", "RunOutcome": "OutcomeView", "ComparisonReport": "ComparisonView",
         "ModelGroup": "GroupView", "Contender": "ContenderView", "Pair": "PairView", "WhyReport": "WhyView"}


def load_schemas():
    return {path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(SCHEMAS.glob("*.schema.json"))}


def loosen(node):
    """The definition without what only says how strict its document is: a figure of a result file may be null."""
    if isinstance(node, dict):
        node = {key: loosen(each) for key, each in node.items() if key not in ("additionalProperties", "required")
                or isinstance(each, dict)}
        kinds = node.get("type")
        if isinstance(kinds, list):
            node["type"] = [each for each in kinds if each != "null"]
            node["type"] = node["type"][0] if len(node["type"]) == 1 else node["type"]
    return [loosen(each) for each in node] if isinstance(node, list) else node


def find_common(schemas):
    """The definitions that several schemas have; a name stands for one thing only. Of a definition that is stricter in
    one document than in another, the one that takes more holds."""
    places = {}
    for stem, schema in schemas.items():
        for name, definition in schema.get("$defs", {}).items():
            places.setdefault(name, []).append((stem, definition))
    for name, uses in places.items():
        if any(loosen(definition) != loosen(uses[0][1]) for _, definition in uses):
            sys.exit(f"error: {name} differs between the schemas of {', '.join(stem for stem, _ in uses)}\n"
                     "  give one of them another name")
    return {name: min((each for _, each in uses), key=strictness) for name, uses in places.items() if len(uses) > 1}


def strictness(definition):
    return len(definition.get("required", [])), -json.dumps(definition).count("null")


def names_in(node):
    """The definitions that a part of a schema refers to."""
    if isinstance(node, dict):
        here = {node["$ref"].rsplit("/", 1)[1]} if isinstance(node.get("$ref"), str) else set()
        return here.union(*(names_in(each) for each in node.values()))
    return set().union(*(names_in(each) for each in node)) if isinstance(node, list) else set()


def close_over(common, schemas):
    """What a common definition refers to is common too."""
    every = {name: each for schema in schemas.values() for name, each in schema.get("$defs", {}).items()}
    while missing := set().union(set(), *(names_in(each) for each in common.values())) - set(common):
        common |= {name: every[name] for name in missing}
    return common


def name_attribute(key):
    name = re.sub(r"\W", "_", key)
    return name + "_" if keyword.iskeyword(name) or name in TAKEN else name


def name_type(node):
    """The Python type of a schema, and whether null is a value of it."""
    if "$ref" in node:
        return node["$ref"].rsplit("/", 1)[1], False
    if "const" in node or "enum" in node:
        words = [node["const"]] if "const" in node else node["enum"]
        return "Literal[" + ", ".join(json.dumps(each) for each in words if each is not None) + "]", None in words
    for several in ("anyOf", "oneOf"):
        if several in node:
            found = [name_type(each) for each in node[several]]
            names = list(dict.fromkeys(name for name, _ in found if name != "None"))
            return (names[0] if len(names) == 1 else "Any"), any(null or name == "None" for name, null in found)
    kinds = node.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    rest = [each for each in kinds if each != "null"]
    null = len(rest) < len(kinds)
    if rest == ["array"]:
        return f"tuple[{join_null(*name_type(node.get('items', {})))}, ...]", null
    if rest == ["object"] and isinstance(node.get("additionalProperties"), dict):
        return f"dict[str, {join_null(*name_type(node['additionalProperties']))}]", null
    if rest == ["object"] and "properties" in node:
        sys.exit(f"error: an object without a name: {sorted(node['properties'])}\n  give it one under $defs")
    if null and not rest:
        return "None", True
    return (SCALARS[rest[0]] if len(rest) == 1 else "Any"), null


def join_null(name, null):
    return f"{name} | None" if null and name != "Any" else name


def wrap(text, indent, first=0):
    return textwrap.wrap(text, WIDTH - len(indent) - first, break_long_words=False, break_on_hyphens=False)


def write_docstring(text, indent):
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    text = text + " " if text.endswith('"') else text
    if len(indent) + len(text) + 6 <= WIDTH:
        return [f'{indent}"""{text}"""']
    lines = wrap(text, indent, 3)
    return [f'{indent}"""{lines[0]}', *(indent + each for each in lines[1:]), f'{indent}"""']


def write_annotation(name, kind, ending):
    """Long enumerations go over several lines."""
    line = f"    {name}: {kind}{ending}"
    if len(line) <= WIDTH:
        return [line]
    before, words, after = re.fullmatch(r"(.*?Literal\[)(.*?)(\].*)", kind).groups()
    inner = wrap(words, " " * 8)
    return [f"    {name}: {before}", *(f"        {each}" for each in inner), f"    {after}{ending}"]


def write_field(key, node, required):
    name = name_attribute(key)
    kind, null = name_type(node)
    given = [f'metadata={{"key": {json.dumps(key)}}}'] if name != key else []
    default = [] if required else ["default=None"]
    ending = f" = field({', '.join(default + given)})" if given else "" if required else " = None"
    lines = write_annotation(name, join_null(kind, null or not required), ending)
    return lines + (write_docstring(node["description"], "    ") if node.get("description") else [])


def write_class(name, node, about):
    bases = f"{VIEWS[name]}, Record" if name in VIEWS else "Record"
    lines = ["@dataclass(frozen=True, kw_only=True)", f"class {name}({bases}):",
             *write_docstring(node.get("description") or about, "    "), ""]
    required = node.get("required", [])
    for key, each in node["properties"].items():
        lines += write_field(key, each, key in required)
    return lines


def describe(name, schema):
    """A definition that has no description of its own is what the first property that refers to it says."""
    def uses(node):
        if isinstance(node, dict):
            for each in (node, node.get("items"), node.get("additionalProperties")):
                if isinstance(each, dict) and each.get("$ref") == f"#/$defs/{name}" and node.get("description"):
                    yield node["description"]
            for each in node.values():
                yield from uses(each)
    root = schema.get("items", {}).get("$ref") or schema.get("$ref")
    text = schema["description"] if root == f"#/$defs/{name}" else next(uses(schema), "")
    text = re.sub(r"; (absent|null): .*", "", text)  # of the property, not of what stands there
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else f"A part of the output of {schema['title']}."


def write_module(title, definitions, common, schema_of):
    body = []
    for name, node in definitions.items():
        body += ["", "", *write_class(name, node, describe(name, schema_of(name)))]
    text = "\n".join(body)
    typed = [word for word in ("Any", "Literal") if re.search(rf"\b{word}\b", text)]
    used = sorted(set().union(*(names_in(each) for each in definitions.values())) & set(common) - set(definitions))
    views = sorted(VIEWS[name] for name in definitions if name in VIEWS)
    lines = [f'"""{title}"""', "", "# Written by scripts/generate_dataclasses.py; do not edit.", "",
             "from __future__ import annotations", "",
             "from dataclasses import dataclass" + (", field" if " = field(" in text else "")]
    lines += [f"from typing import {', '.join(typed)}"] if typed else []
    lines += [""]
    lines += [f"from tprimat._generated.common import {', '.join(used)}"] if used else []
    lines += ["from tprimat.record import Record"]
    lines += [f"from tprimat.views import {', '.join(views)}"] if views else []
    return "\n".join(lines) + "\n" + text + "\n"


def sort_definitions(definitions):
    """Each after those that it refers to, else as the schema has them: type hints are read at run time."""
    done = {}

    def add(name):
        for each in sorted(names_in(definitions[name]) & set(definitions)):
            if each not in done and each != name:
                add(each)
        done.setdefault(name, definitions[name])

    for name in definitions:
        add(name)
    return done


def write_package():
    """The files by name."""
    schemas = load_schemas()
    common = close_over(find_common(schemas), schemas)
    files = {"__init__.py": '"""The dataclasses of the JSON that tprimat prints, a module for each schema."""\n\n'
                            "# Written by scripts/generate_dataclasses.py; do not edit.\n"}
    owner = {name: schema for schema in schemas.values() for name in schema.get("$defs", {})}
    if common:
        files["common.py"] = write_module("What several outputs of tprimat have in common.",
                                          sort_definitions(common), {}, owner.__getitem__)
    for stem, schema in schemas.items():
        own = {name: node for name, node in schema.get("$defs", {}).items() if name not in common}
        if own:
            files[f"{stem}.py"] = write_module(f"The output of {schema['title']}.", sort_definitions(own), common,
                                               lambda name, schema=schema: schema)
    return files


def main():
    files = write_package()
    present = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py") if path.name != OPTIONS}
    if "--check" in sys.argv:
        stale = sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))
        if stale:
            sys.exit(f"error: python/tprimat/_generated is out of date: {', '.join(stale)}\n"
                     "  run scripts/generate_dataclasses.py")
        return print(f"{len(files)} files are up to date")
    PACKAGE.mkdir(exist_ok=True)
    for name in present.keys() - files.keys():
        (PACKAGE / name).unlink()
    for name, text in files.items():
        (PACKAGE / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(files)} files to {PACKAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
