#!/usr/bin/env python3
"""Make protocol.json from the schema that the Debug Adapter Protocol publishes: make_protocol.py debugAdapterProtocol.json

What is kept are the facts: names, types, what is required, the values of enumerations.  allOf is resolved, so that a
property that the protocol does not have can be told (names that begin with "__" are a client's own business).
protocol.LICENSE is the licence of what it is made from.
"""

import json
import os
import sys

OPEN = {"AttachRequestArguments", "LaunchRequestArguments", "RestartArguments"}  # each adapter's own
KEPT = {"type", "items", "enum", "minimum", "maximum", "oneOf", "additionalProperties"}


def flat(schema, all_of):
    """The properties and the required names, those of allOf included."""
    properties, required = {}, []
    for part in schema.get("allOf", [schema]):
        if "$ref" in part:
            part = all_of[part["$ref"].rsplit("/", 1)[1]]
            if "allOf" in part:
                inner, needs = flat(part, all_of)
                properties.update(inner)
                required += needs
                continue
        properties.update(part.get("properties", {}))
        required += part.get("required", [])
    return properties, required


def reduced(schema, all_of, is_open=False):
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    properties, required = flat(schema, all_of)
    if properties:
        made = {"type": "object", "properties": {name: reduced(value, all_of) for name, value in properties.items()}}
        if required:
            made["required"] = sorted(set(required))
        if not is_open:
            made["additionalProperties"] = False
            made["patternProperties"] = {"^__": {}}
        return made
    made = {key: value for key, value in schema.items() if key in KEPT}
    if "_enum" in schema:
        made["open_enum"] = schema["_enum"]
    if "items" in made:
        made["items"] = reduced(made["items"], all_of)
    if "oneOf" in made:
        made["oneOf"] = [reduced(part, all_of) for part in made["oneOf"]]
    return made


def main():
    with open(sys.argv[1]) as file:
        source = json.load(file)["definitions"]
    made = {name: reduced(schema, source, name in OPEN) for name, schema in sorted(source.items())}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "protocol.json")
    with open(path, "w") as file:
        lines = ["{}: {}".format(json.dumps(name), json.dumps(made[name], sort_keys=True)) for name in sorted(made)]
        file.write("{" + ",\n".join(lines) + "}\n")


main()
