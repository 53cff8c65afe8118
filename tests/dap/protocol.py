"""What is wrong with a message of the Debug Adapter Protocol, by protocol.json (made by make_protocol.py)."""

import json
import os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "protocol.json")) as _file:
    DEFINITIONS = json.load(_file)

TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
# Open enumerations that an adapter may add to.
EXTENDED = {"filter", "reason", "presentationHint", "message", "kind", "category"}
REFERENCES = {"variablesReference", "sourceReference", "frameId"}


def wrong(schema, value, where):
    """Lines that say what is wrong; empty: nothing."""
    if "$ref" in schema:
        return wrong(DEFINITIONS[schema["$ref"].rsplit("/", 1)[1]], value, where)
    if "oneOf" in schema:
        tried = [wrong(part, value, where) for part in schema["oneOf"]]
        return [] if any(not faults for faults in tried) else min(tried, key=len)
    types = schema.get("type", list(TYPES))
    types = [types] if isinstance(types, str) else types
    if not any(TYPES[name](value) for name in types):
        return ["{}: {!r} is no {}".format(where, value, "|".join(types))]
    faults = []
    name = where.rsplit(".", 1)[-1]
    if "enum" in schema and value not in schema["enum"]:
        faults.append("{}: {!r} is not one of {}".format(where, value, schema["enum"]))
    if "open_enum" in schema and name not in EXTENDED and value not in schema["open_enum"]:
        faults.append("{}: {!r} is not one of {}".format(where, value, schema["open_enum"]))
    if isinstance(value, str):
        faults += ["{}: half a surrogate pair".format(where)] if any("\ud800" <= c <= "\udfff" for c in value) else []
    elif isinstance(value, int) and not isinstance(value, bool):
        most = 2 ** 31 - 1 if name in REFERENCES else schema.get("maximum", 2 ** 53 - 1)
        if not schema.get("minimum", -2 ** 53) <= value <= most:
            faults.append("{}: {} is out of its range".format(where, value))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            faults += wrong(schema.get("items", {}), item, "{}[{}]".format(where, index))
    elif isinstance(value, dict):
        faults += wrong_object(schema, value, where)
    return faults


def wrong_object(schema, value, where):
    properties = schema.get("properties", {})
    faults = ["{}: no {}".format(where, name) for name in schema.get("required", []) if name not in value]
    more = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            faults += wrong(properties[name], item, "{}.{}".format(where, name))
        elif name.startswith("__"):
            continue
        elif more is False:
            faults.append("{}: the protocol has no {}".format(where, name))
        elif isinstance(more, dict):
            faults += wrong(more, item, "{}.{}".format(where, name))
    return faults


def title(word):
    return word[:1].upper() + word[1:]


def definition_of(message):
    """The definition that a message must match; None: the protocol has none of that name."""
    kind = message.get("type")
    if kind == "event":
        return DEFINITIONS.get(title(str(message.get("event"))) + "Event")
    if kind == "request":
        return DEFINITIONS.get(title(str(message.get("command"))) + "Request")
    if kind == "response":
        if message.get("success") is False:
            return DEFINITIONS["ErrorResponse"]
        return DEFINITIONS.get(title(str(message.get("command"))) + "Response")
    return None


def faults_of(message):
    if not isinstance(message, dict):
        return ["{!r} is no message".format(message)]
    definition = definition_of(message)
    if not definition:
        return ["the protocol has no such message: {!r}".format(message)[:300]]
    return wrong(definition, message, str(message.get("event") or message.get("command")))
