"""Whether JSON is as its schema says: the words of JSON Schema that schema/ uses, and no others. Where Python has
jsonschema, it judges too."""

import json
import pathlib

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "schema"
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const", "required", "properties",
         "additionalProperties", "propertyNames", "items", "anyOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def load(name):
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


def names():
    return {path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()}


def is_of_type(value, kind):
    if kind == "integer":
        return type(value) is int
    if kind == "number":
        return type(value) in (int, float)
    return type(value) is TYPES[kind]


def faults(schema, value, root, where):
    """Sentences, one for each place where the value is not as the schema says."""
    assert set(schema) <= KNOWN, f"{where}: unknown words in the schema: {set(schema) - KNOWN}"
    if reference := schema.get("$ref"):
        if reference.startswith("#/$defs/"):
            yield from faults(root["$defs"][reference.removeprefix("#/$defs/")], value, root, where)
        else:
            yield from faults(load(reference), value, load(reference), where)
    if choices := schema.get("anyOf"):
        if all(list(faults(each, value, root, where)) for each in choices):
            yield f"{where}: none of {len(choices)} choices"
    kinds = schema.get("type", [])
    if kinds and not any(is_of_type(value, each) for each in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{where}: {value!r:.80} is not of type {kinds}"
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not in the list"
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            yield from faults(schema["items"], each, root, f"{where}[{number}]")
    if isinstance(value, dict):
        yield from faults_of_members(schema, value, root, where)


def faults_of_members(schema, value, root, where):
    yield from (f"{where}: lacks {key}" for key in schema.get("required", []) if key not in value)
    for key in value if "propertyNames" in schema else ():
        yield from faults(schema["propertyNames"], key, root, f"{where}: key")
    further = schema.get("additionalProperties", True)
    for key, each in value.items():
        if key in schema.get("properties", {}):
            yield from faults(schema["properties"][key], each, root, f"{where}.{key}")
        elif isinstance(further, dict):
            yield from faults(further, each, root, f"{where}.{key}")
        elif not further:
            yield f"{where}.{key}: not in the schema"


def faults_of_library(schema, value):
    try:
        import jsonschema
        import referencing
    except ImportError:
        return []
    registry = referencing.Registry().with_resources(
        (f"{name}.schema.json", referencing.Resource.from_contents(load(f"{name}.schema.json"))) for name in names())
    jsonschema.Draft202012Validator.check_schema(schema)
    return [f"jsonschema: {error.json_path}: {error.message:.200}"
            for error in jsonschema.Draft202012Validator(schema, registry=registry).iter_errors(value)]


def validate(name, value):
    schema = load(f"{name}.schema.json")
    return [*faults(schema, value, schema, name), *faults_of_library(schema, value)]
