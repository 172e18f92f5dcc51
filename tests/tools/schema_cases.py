"""Cases in the style of the JSON Schema Test Suite for every keyword that STRUCTURED_OUTPUT.md lists: what the grammar of
a schema accepts is valid by the jsonschema package, and of the valid instances it accepts all but those that the page
says are not written (marked). Keywords that are not supported are errors that name them and their place."""
import json
import pathlib
import tempfile

from harness import QUERN, check, need, run

need("jsonschema")
import jsonschema  # noqa: E402


class Unwritten:
    """A valid instance that is not in the subset that quern writes."""

    def __init__(self, value):
        self.value = value


U = Unwritten
D4 = "http://json-schema.org/draft-04/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
OBJ = {"a": 1, "b": 2}
# (schema, instances); whether they are valid is asked of jsonschema.
CASES = [
    ({"type": "integer"}, [1, 0, -5, 10 ** 14, 1.5, "1", None, True, [], {}]),
    ({"type": "number"}, [1, 1.5, -0.25, 1e10, "1", None, False]),
    ({"type": "string"}, ["", "foo", "\u00e9\U0001f600\"\\/\b\f\n\r\t\u0001", 1, None, ["a"]]),
    ({"type": "boolean"}, [True, False, 0, 1, "true", None]),
    ({"type": "null"}, [None, 0, "", False, []]),
    ({"type": "array"}, [[], [1], [[]], {}, "x", None]),
    ({"type": "object"}, [{}, {"a": 1}, {"a": {"b": []}}, [], None, "x"]),
    ({"type": ["integer", "string"]}, [1, "a", 1.5, None, {}, []]),
    ({"type": ["array", "object", "null"]}, [[], {}, None, 1, "a", True]),
    ({"type": "string", "nullable": True}, ["a", U(None)]),
    ({"enum": [1, 2, 3]}, [1, 2, 3, 4, "1", None]),
    ({"enum": [6, "foo", [], True, {"foo": 12}]}, [6, "foo", [], True, {"foo": 12}, {"foo": 13}, {}, False, 1, None]),
    ({"enum": [None, "a\nb", "\"", "\\"]}, [None, "a\nb", "\"", "\\", "ab", ""]),
    ({"enum": [0, 1, "x", "yy"], "type": "string", "maxLength": 1}, ["x", "yy", 0, 1]),
    ({"enum": [False, 0]}, [False, 0, True, 1]),
    ({"const": 2}, [2, 5, "2"]),
    ({"const": {"foo": "bar", "baz": [1, {"x": None}]}}, [{"foo": "bar", "baz": [1, {"x": None}]}, {"foo": "bar"}, [1]]),
    ({"const": "hello\u2028"}, ["hello\u2028", "hello"]),
    ({"const": None}, [None, 0]),
    ({"type": "integer", "minimum": 5}, [5, 6, 1000, 4, 0, -5, -6]),
    ({"type": "integer", "minimum": -5}, [-5, -4, 0, 7, -6, -50]),
    ({"type": "integer", "maximum": 3}, [3, 2, 0, -100, 4, 30]),
    ({"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 12}, [9, 10, 11, 12, 100, 1, -10]),
    ({"type": "integer", "minimum": 95, "maximum": 1012}, [95, 99, 100, 999, 1000, 1012, 1013, 94, 9, 10000]),
    ({"type": "integer", "minimum": -12, "maximum": -9}, [-13, -12, -10, -9, -8, 9, 10]),
    ({"type": "integer", "minimum": 1.5, "maximum": 2.5}, [1, 2, 3]),
    ({"type": "integer", "minimum": 9007199254740993, "maximum": 9007199254740995}, [9007199254740992, 9007199254740993, 9007199254740994, 9007199254740995, 9007199254740996]),
    ({"$schema": D4, "type": "integer", "minimum": 1, "exclusiveMinimum": True}, [1, 2, 0]),
    ({"$schema": D4, "type": "integer", "maximum": 3, "exclusiveMaximum": False}, [3, 4]),
    ({"type": "number", "minimum": 1.1}, [1.1, 2.6, 0.6, -1.1, 11]),
    ({"type": "number", "maximum": 3.0}, [2.6, 3.0, 3.5, -7.25]),
    ({"type": "number", "exclusiveMinimum": 0}, [0, 0.001, -0.001, 1]),
    ({"type": "number", "exclusiveMaximum": 3.0, "minimum": -1.5}, [2.2, 2.99, 3.0, 3.5, -1.5, -1.51]),
    ({"type": "number", "minimum": 0.1, "maximum": 0.2}, [0.1, 0.15, 0.2, 0.21, 0.09, 1]),
    ({"type": "integer", "multipleOf": 2}, [10, 7, 0, -4, 1000000]),
    ({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 30}, [0, 7, 14, 28, 35, 8, -7]),
    ({"type": "string", "minLength": 2}, ["foo", "fo", "f", "\U0001f4a9", "\U0001f4a9\U0001f4a9"]),
    ({"type": "string", "maxLength": 2}, ["f", "fo", "foo", "\U0001f4a9\U0001f4a9", ""]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["", "a", "ab", "abc", "abcd", "\u00e9\u00e9"]),
    ({"type": "string", "pattern": "^a*$"}, ["", "aaa", "abc", "b"]),
    ({"type": "string", "pattern": "a+"}, ["xxaayy", "a", "xx", ""]),
    ({"type": "string", "pattern": "^\\d{3}-[A-Z]$"}, ["123-A", "12-A", "123-a", "0123-A"]),
    ({"type": "string", "pattern": "foo$"}, ["foo", "xfoo", "foox"]),
    ({"type": "string", "pattern": "^(\\([0-9]{3}\\))?[0-9]{3}-[0-9]{4}$"}, ["555-1212", "(888)555-1212", "(888)5551212"]),
    ({"type": "string", "pattern": "^[^\"\\\\]{1,2}$"}, ["a", "\"", "\\", "ab", "abc"]),
    ({"type": "string", "format": "date"}, ["1963-06-19", "2020-02-29", "2021-02-29", "1963-6-19", "2020-13-01", "2020-04-31"]),
    ({"type": "string", "format": "ipv4"}, ["192.168.0.1", "256.0.0.1", "1.2.3", "0.0.0.0", "01.2.3.4"]),
    ({"type": "string", "format": "ipv6"}, ["::1", "12345::", "1:2:3:4:5:6:7:8", "::42:ff:1", ":2:3:4:5:6:7:8"]),
    ({"type": "string", "format": "uuid"}, ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380"]),
    ({"properties": {"foo": {"type": "integer"}, "bar": {"type": "string"}}}, [{"foo": 1, "bar": "baz"}, {"foo": "x"}, {"bar": 2}, {}, {"bar": "x"}, U({"quux": []}), U([]), U(12)]),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, [{"a": 1}, {}, {"a": "x"}, {"b": 1}]),
    ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]}, [{"b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}, U({"b": 1, "a": 1})]),
    ({"type": "object", "required": ["foo\nbar", "q\"q", "b\\c"]}, [{"foo\nbar": 1, "q\"q": 2, "b\\c": 3}, {"foo\nbar": 1}]),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}, [{"a": 1}, {}, {"b": 1}, {"a": 1, "b": 1}]),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "boolean"}}, [{"a": 1}, {"a": 1, "x": True}, {"x": 12}, {"a": 1, "x": True, "y": False}]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"x": 1}, {"x": 1, "y": 2}, {"x": "s"}]),
    ({"type": "object", "patternProperties": {"^f.*o$": {"type": "integer"}}, "additionalProperties": False}, [{"foo": 1}, {"foo": 1, "foooooo": 2}, {"foo": "bar"}, {"x": 1}, {}]),
    ({"type": "object", "properties": {"foo": {"type": "array", "maxItems": 3}, "bar": {"type": "array"}}, "patternProperties": {"f.o": {"minItems": 2}}, "additionalProperties": {"type": "integer"}},
     [{"foo": [1, 2]}, {"foo": [1, 2, 3, 4]}, {"foo": []}, {"fxo": [1, 2]}, {"quux": 3}, {"quux": "foo"}]),
    ({"type": "object", "propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "integer"}}, [{"f": 1, "foo": 2}, {"foo": 1, "foobar": 2}, {}]),
    ({"type": "object", "propertyNames": {"pattern": "^a+$"}, "additionalProperties": {"type": "integer"}}, [{"a": 1, "aa": 2}, {"aaA": 1}]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}, "additionalProperties": False, "minProperties": 2}, [{"a": None, "b": None}, {"a": None, "c": None}, {"b": None}, {}, {"a": None, "b": None, "c": None}]),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}, [{}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}]),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False}, [{"a": 1}, {}, {"b": 1}]),
    ({"type": "array", "items": {"type": "integer"}}, [[1, 2, 3], [1, "x"], [], {"a": 1}]),
    ({"type": "array", "items": False}, [[], [1]]),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, [[1, "foo"], ["foo", 1], [1], [], U([1, "foo", True])]),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "string"}}, [[1, "a", "b"], [1, 2], [1], ["a"]]),
    ({"type": "array", "prefixItems": [{}, {}, {}], "items": False}, [[], [1], [1, 2, 3], [1, 2, 3, 4]]),
    ({"$schema": D7, "type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}, [[1, "a"], [1], [1, "a", 2], ["a"]]),
    ({"$schema": D7, "type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}}, [[1, True], [1, 2], [1]]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, [[1, 2], [1], []]),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[1], [1, 2], [1, 2, 3], []]),
    ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}, [["a"], ["a", "b"], ["c", "a", "b"], ["a", "a"], ["b", "a", "b"], []]),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 1}, [[1], [], [1, 1]]),
    ({"anyOf": [{"type": "integer"}, {"minimum": 2, "type": "number"}]}, [1, 2.5, 3, 1.5, "a"]),
    ({"type": "string", "anyOf": [{"maxLength": 2}, {"minLength": 4}]}, ["ab", "abc", "abcd", 3]),
    ({"anyOf": [{"type": "object", "properties": {"bar": {"type": "integer"}}, "required": ["bar"]}, {"type": "object", "properties": {"foo": {"type": "string"}}, "required": ["foo"]}]},
     [{"bar": 2}, {"foo": "baz"}, {"foo": 2}, {"bar": "quux"}]),
    ({"allOf": [{"properties": {"bar": {"type": "integer"}}, "required": ["bar"]}, {"properties": {"foo": {"type": "string"}}, "required": ["foo"]}]}, [{"bar": 2, "foo": "baz"}, {"foo": "baz"}, {"bar": 2}, U({"foo": "baz", "bar": 2})]),
    ({"type": "integer", "allOf": [{"maximum": 30}, {"minimum": 20}]}, [25, 35, 19, 20, 30]),
    ({"allOf": [{"type": "string", "minLength": 2}, {"type": "string", "pattern": "^a"}], "maxLength": 3}, ["ab", "a", "abc", "abcd", "bb"]),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a", 1.5, None]),
    ({"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 10}]}, [5, 6, 10, 9, -3]),
    ({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "integer"}}, "required": ["k", "x"]}, {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}]},
     [{"k": "a", "x": 1}, {"k": "b"}, {"k": "a"}, {"k": "c"}, {}]),
    ({"$ref": "#/$defs/c", "$defs": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/a"}, "c": {"$ref": "#/$defs/b"}}}, [5, "a"]),
    ({"$ref": "#/definitions/a~1b%25", "definitions": {"a/b%": {"type": "integer"}}}, [5, "a"]),
    ({"properties": {"foo": {"$ref": "#"}}, "additionalProperties": False, "type": "object"}, [{"foo": {}}, {"foo": {"foo": {}}}, {"bar": False}, {"foo": {"bar": False}}]),
    ({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": ["object", "null"], "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}}},
     [{"v": 1, "next": {"v": 2, "next": None}}, {"v": 1, "next": 3}]),
    ({"$ref": "#foo", "$defs": {"A": {"$anchor": "foo", "type": "integer"}}}, [1, "a"]),
    ({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 2}, ["ab", "abc", 1]),
    (True, [1, "a", {}, [], None, True]),
    ({}, [1.5, "a", {"b": [None]}, [], None, True]),
    ({"type": "object", "properties": {"a": True, "b": False}, "additionalProperties": False}, [{"a": [1]}, {"b": 1}, {}]),
    ({"title": "t", "description": "d", "default": 3, "examples": [1], "$comment": "c", "deprecated": True, "readOnly": True, "writeOnly": False, "type": "integer", "contentEncoding": "x", "x-own": {}}, [3, "a"]),
]
REFUSED = {"not": {}, "if": {}, "dependentRequired": {}, "dependentSchemas": {}, "dependencies": {}, "contains": {}, "minContains": 1, "maxContains": 1,
           "unevaluatedItems": False, "$dynamicRef": "#x", "$recursiveRef": "#", "patternPropertys": {}}
REFUSED_SCHEMAS = [({"type": "number", "multipleOf": 0.01}, "multipleOf"), ({"type": "integer", "multipleOf": 5000}, "multipleOf"), ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
                   ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"), ({"type": "string", "format": "regex"}, "format"), ({"$ref": "http://example.com/x"}, "$ref"),
                   ({"type": "string", "pattern": "(?=a)b"}, "look-ahead"), ({"type": "strin"}, "type"), ({"type": "string", "minLength": -1}, "minLength"), ({"required": "a"}, "required"), ({"$ref": "#/$defs/none"}, "none"),
                   ({"$ref": "#"}, "#"), ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "no text matches"), ({"type": "integer", "minimum": 5, "maximum": 4}, "no text matches"), (False, "no text matches"), (3, "")]


def main():
    bad, n_valid, n_invalid, n_unwritten = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        schema_path, lines = pathlib.Path(name) / "schema.json", pathlib.Path(name) / "lines.jsonl"
        formats = jsonschema.FormatChecker(["date", "ipv4", "ipv6", "uuid"])
        for schema, instances in CASES:
            kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
            valid = kind(schema, format_checker=formats)
            schema_path.write_text(json.dumps(schema))
            texts = []
            for instance in instances:
                value = instance.value if isinstance(instance, Unwritten) else instance
                is_valid = valid.is_valid(value) or (value is None and isinstance(schema, dict) and schema.get("nullable") is True)
                for style in ({}, {"separators": (",", ":")}, {"indent": 1}):
                    text = json.dumps(value, ensure_ascii=False, **style)
                    compact = "enum" in json.dumps(schema) or "const" in json.dumps(schema)  # their values are written compactly
                    texts.append((text, is_valid, isinstance(instance, Unwritten) or (compact and "separators" not in style)))
            lines.write_text("".join(json.dumps(text) + "\n" for text, _, _ in texts))
            result = run(QUERN, "grammar", "-jf", schema_path, "--check-lines", lines, expect=None)
            check(result.returncode in (0, 1), f"{json.dumps(schema)}: {result.stderr.decode()}")
            answers = result.stdout.decode().splitlines()
            check(len(answers) == len(texts), f"{json.dumps(schema)}: {answers}")
            for (text, is_valid, free), answer in zip(texts, answers):
                fits = answer.endswith(" fits")
                if fits and not is_valid:
                    bad.append(f"{json.dumps(schema)} takes {text}, which is not valid")
                if is_valid and not fits and not free:
                    bad.append(f"{json.dumps(schema)} does not take {text}: {answer}")
                n_valid += is_valid
                n_invalid += not is_valid
                n_unwritten += is_valid and not fits
        for keyword, value in REFUSED.items():
            for schema, place in (({keyword: value}, "#"), ({"type": "object", "properties": {"p": {"type": ["object", "array"], keyword: value}}}, "#/properties/p")):
                result = run(QUERN, "grammar", "-j", json.dumps(schema), expect=None)
                error = result.stderr.decode()
                if result.returncode != 3 or f"{place}/{keyword}" not in error or f'"{keyword}"' not in error or error.count("\n") != 1:
                    bad.append(f"{json.dumps(schema)}: exit {result.returncode} {error}")
        for schema, words in REFUSED_SCHEMAS:
            result = run(QUERN, "grammar", "-j", json.dumps(schema), "--sample", 1, expect=None)
            error = result.stderr.decode()
            if result.returncode != 3 or words not in error or error.count("\n") != 1:
                bad.append(f"{json.dumps(schema)}: exit {result.returncode} {error}")
    check(not bad, f"{len(bad)} cases\n" + "\n".join(bad))
    print(f"schema_cases: {len(CASES)} schemas, {n_valid} valid texts ({n_unwritten} of them not written), {n_invalid} invalid ones refused, {2 * len(REFUSED)} keywords and {len(REFUSED_SCHEMAS)} schemas refused by name")


main()
