#!/usr/bin/env python3
"""Random expressions and small templates, rendered by jinja2 and by quern: the same text, or an error in both.

usage: template_fuzz.py BUILD_DIR [CASES [SEED]]      (2000 cases, seed 1)

A third of the cases are put together of what chat templates of released models do with messages, tools and documents.
"""
import copy
import datetime
import json
import random
import re
import sys
import tempfile
import urllib.parse

import harness

harness.need("jinja2")
import jinja2  # noqa: E402
import jinja2.ext  # noqa: E402
from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402

CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1

VARIABLES = {
    "s": "Hello World", "t": "  a,b,, c\n", "u": "Z\u00fcrich \u4f60\u597d \U0001f600", "e": "", "n": 7, "m": -3, "z": 0, "f": 2.5, "g": -0.1,
    "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "lm": [1, "x", None, 2.0, [1]], "le": [],
    "d": {"a": 1, "b": [1, 2], "items": "I", "c": {"x": "y"}}, "de": {},
    "ld": [{"k": "v", "n": 2}, {"k": "w", "n": 1}, {"k": "V"}], "q": "it's \"q\" <b>&\\ \t", "digits": "0042",
    "big": 123456789012345678901234567890, "low": -9223372036854775809, "words": "well-known e-mail -- a_b's twenty-one--ten \u00e9t\u00e9-l\u00e0 x  y\tz",
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "enable_thinking": False,
    "documents": [{"title": "T", "text": "one\ntwo"}, {"title": "U", "text": "", "id": 7}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a \"city\"\nin short", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Z\u00fcrich <b>"}, "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
                                         "days": {"type": "array", "items": {"type": "integer"}}, "items": {"type": ["string", "null"]},
                                         "deep": {"type": "object", "properties": {"x": {"type": "number", "default": 1.5}}, "required": ["x"]}}, "required": ["city"]}}},
              {"type": "function", "function": {"name": "bare", "description": "", "parameters": {"type": "object", "properties": {}}}}],
    "messages": [
        {"role": "system", "content": " Be brief. \n"}, {"role": "user", "content": "Hi <b>\nthere"},
        {"role": "assistant", "content": "<think>\nadd \u00e9\n</think>\n\n2", "tool_calls": [
            {"id": "abcDEF123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Z\u00fcrich", "n": 1, "l": [1, {"a": None}], "t": True, "f": 0.5}}},
            {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
        {"role": "tool", "name": "get_weather", "tool_call_id": "abcDEF123", "content": "{\"t\": 21.5}"}, {"role": "tool", "tool_call_id": "x", "content": "ok"},
        {"role": "user", "content": [{"type": "text", "text": "Part one. "}, {"type": "image"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "reasoning_content": " because \n", "prefix": False}],
}
# What templates ask of a message m, a tool t, a tool call c, and of all of them.
OF_MESSAGE = r"""m.role; m['role']; m.content; m['content']; m.get('name'); m.get('name', 'none'); m.name; m.tool_calls; m['tool_calls']; m.reasoning_content; m.thinking
m.content is string; m.content is none; m.content is not none and m.content|length > 0; m.content is mapping; m.content is iterable; m.content is sequence and m.content is not string; m.name is defined
m.content|trim; m.content|string; m.content|string|trim; m.content if m.content is string else ''; (m.content or '')|string; m.content|tojson; m|tojson; m.content|default('none', true); m.content|length
m.role == 'user'; m.role != 'assistant'; m.role in ['user', 'tool']; m.role not in ('system', 'tool'); 'tool_calls' in m; m.role|upper; m.role|title; m.role[0]; m.role[:1]|upper; m.role|capitalize
(m.content|string).split('</think>')[-1]; (m.content|string).split('</think>', 1)[0].rstrip('\n').split('<think>')[-1].lstrip('\n'); (m.content|string).strip('\n'); '</think>' in (m.content|string)
(m.content|string).startswith('<think>'); (m.content|string).replace('<', '&lt;'); (m.content|string).splitlines()|length; (m.content|string).split()|join('_'); (m.content|string).partition('</think>')[2]; (m.content|string).rsplit('\n', 1)[-1]
(m.content|string).removeprefix('<think>').removesuffix('2'); (m.content|string)|indent(2); (m.content|string)|indent(2, true); (m.content|string)|truncate(9); (m.content|string)|wordwrap(7); (m.content|string).find('think'); (m.content|string)|replace('\n', ' ')
m.content|selectattr('type', 'equalto', 'text')|map(attribute='text')|join(''); m.content|map(attribute='type')|join(','); m.content[0].text; m.content[0]['text']|default('?'); m.content[-1].type; (m.tool_calls or [])|length; m.tool_calls[0].function.name
m.tool_calls|map(attribute='function.name')|list; (m.tool_calls or [])|map(attribute='id')|join('|'); m.get('tool_calls', [])|length; m.items()|list|length; m|length; m.keys()|list; m.values()|map('string')|list|length; m|items|list|length; m|dictsort|first
loop.index; loop.index0; loop.first; loop.last; loop.length; loop.revindex; loop.previtem.role if not loop.first; loop.nextitem.role if loop.nextitem; loop.previtem is defined; loop.cycle('a', 'b'); loop.changed(m.role); loop.index is odd; loop.index0 % 2 == 0
messages[loop.index0 - 1].role; messages[loop.index0 + 1].role; messages[loop.index0 + 1] is defined; (loop.last or messages[loop.index0 + 1].role != 'tool'); 'x' ~ m.content; '<|' + m.role + '|>'; '<|' ~ m.role ~ '|>\n' ~ m.content; "%s: %s" % (m.role, m.content); "{}={!r}".format(m.role, m.content)
{'user': 'Human', 'assistant': 'AI'}.get(m.role, m.role|upper); {'user': 1}[m.role]; dict(m, role='x').role; dict(m, **{'content': 'y'}).content; dict(role=m.role); ['a', m.role]|join; [m.role] + ['b']; m.role ~ loop.index; (m.role, loop.index)|list; namespace(x=m.role).x
m.content|safe; (m.content|string|e); (m.content|string)|urlencode; m.role|center(9); m.role|list|join('.'); m.role|reverse; m.role|wordcount; m.content|striptags; m.role|replace('s', 'z', 1); m.role * 2""".replace("\n", "; ").split("; ")
OF_TOOL = r"""t|tojson; t|tojson(indent=2); t|tojson(indent=4); t|tojson(ensure_ascii=false); t|tojson(separators=(',', ':')); t|tojson(sort_keys=true); t.function.name; t.function.description; t.function.parameters|tojson; t.function is defined; (t.function or t).name; t.type|default('function')
t.function.parameters.properties|items|list|length; t.function.parameters.properties.items()|map('first')|join(', '); t.function.parameters.properties|dictsort|map('first')|list; t.function.parameters.properties['items'].type; t.function.parameters.items; t.function.parameters.required|join(','); t.function.parameters.required is defined and 'city' in t.function.parameters.required
t.function.description.replace('\n', '\n// '); t.function.description|default('none')|tojson; t.function.description|wordwrap(11, wrapstring='\n// '); t.function.description.split('\n')|first; t.function.parameters.properties.city.description|upper; t.function.parameters.properties.unit.enum|join('" | "'); t.function.parameters.properties.unit['default']|tojson
t.function.parameters.properties.deep.properties.x.default; (t.function.parameters.properties.unit.enum or [])|map('tojson')|join(', '); t.function.parameters.properties.values()|map(attribute='type')|list; t.function.parameters.properties|length > 2; t is mapping; t.function.parameters.properties.days['items'].type ~ '[]'; t.get('function', t).name; t['function']['name']; loop.index; loop.last""".replace("\n", "; ").split("; ")
OF_CALL = r"""c.function.name; c.function.arguments|tojson; c.function.arguments is string; c.function.arguments if c.function.arguments is string else c.function.arguments|tojson; c.function.arguments|items|list; c.function.arguments.items()|list|length; c.id; c.id[-9:]; c.id|length == 9; c|tojson; (c.function|tojson)[:-1]; c.type ~ ':' ~ c.id; c.function.arguments.keys()|list; c.function.arguments.city; c['function']['arguments']['l']; c.function|dictsort
c.function.arguments|string; c.function.arguments|length; c.function.arguments is mapping; c.function.name|replace('_', '.'); loop.first; loop.index0; c.function.arguments.l[1].a is none; c.function.arguments.f + 1""".replace("\n", "; ").split("; ")
OF_ALL = r"""messages|length; messages[0].role; messages[-1]['role']; messages[1:]|length; messages[::-1]|map(attribute='role')|list; messages|map(attribute='role')|join(','); messages|selectattr('role', 'equalto', 'user')|list|length; messages|rejectattr('role', 'in', ['system', 'tool'])|map(attribute='role')|list; (messages|last).role; (messages|first)['content']|trim
messages|groupby('role')|map('first')|list; messages|map(attribute='name', default='?')|list; messages|selectattr('tool_calls', 'defined')|list|length; messages|selectattr('content', 'string')|map(attribute='content')|map('trim')|list; messages|map(attribute='content')|select('string')|map('length')|sum; messages|map('length')|max; messages|sort(attribute='role')|map(attribute='role')|unique|list
tools|length; tools is not none and tools|length > 0; tools|map(attribute='function')|select('defined')|map(attribute='name')|list; tools|tojson; tools[0].function.parameters.properties|tojson(indent=2); documents|map(attribute='title')|join('/'); documents[1]|items|list; documents|selectattr('id', 'defined')|list; strftime_now('%d %b %Y'); strftime_now('%Y-%m-%d %H:%M:%S'); strftime_now('%A, %B %-d, %Y'); strftime_now('%j %U %y %p %I')
bos_token + 'x'; bos_token ~ eos_token; bos_token is defined; pad_token is defined; pad_token|default(eos_token); enable_thinking is defined and not enable_thinking; enable_thinking is false; add_generation_prompt and messages[-1].role != 'assistant'; big; big|tojson; [big, low]; {'n': big}|tojson(indent=1); big is number; big is integer; big > 1e29; low < -5; big == big; big ~ ''; low|abs; big|int; '%d' % big; big in [1, big]; big|float
range(messages|length)|list; range(0, 10, 3)|list; namespace(a=1).a; 'a' if messages else 'b'; [] or ['x']; none or 'y'; not messages; 1 + 2 * 3 - 4 // 3; 2 ** 3; 7 % 3; (7 / 2)|round|int; -7 // 2; words|wordwrap(5); words|wordwrap(8, false); words|wordwrap(6, true, '/', false); words|wordwrap(1); q|wordwrap(3)|tojson; joiner('|')() ~ 'x'; cycler('a', 'b').next()""".replace("\n", "; ").split("; ")


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    class TemplateDict:
        def __call__(self, *args, **kwargs):
            return dict(*args, **kwargs)
    env.globals.update(raise_exception=raise_exception, dict=TemplateDict(), strftime_now=datetime.datetime(2026, 1, 15, 12).strftime)
    return env


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.names = list(VARIABLES) + ["missing"]

    def pick(self, *choices):
        return self.rng.choice(choices)

    def string(self):
        return self.pick("'a'", "'b'", "' '", "','", "''", "'l'", "'Hello'", "'%s|%s'", "'x\\ny'", "'\\u00e9'", "\"q'\"", "'k'", "'n'", "'aXb'", "'-'", "'{}'", "'A b c'")

    def number(self):
        return self.pick("0", "1", "2", "3", "-1", "-2", "5", "10", "2.5", "0.5", "1e3", "1_000", "0x1f", "100")

    def literal(self):
        return self.pick(self.string(), self.number(), "true", "false", "none", "[]", "{}", "[1, 2, 3]", "['a', 'b']", "(1, 2)", "{'k': 1}", "{'a': 'b', 'n': 2}")

    def expr(self, depth):
        if depth <= 0:
            return self.pick(self.literal(), self.rng.choice(self.names), self.rng.choice(self.names))
        kind = self.rng.random()
        sub = lambda: self.expr(depth - 1)  # noqa: E731
        if kind < 0.14:
            return f"({sub()} {self.pick('+', '-', '*', '/', '//', '%', '~', '~', '+', '**')} {sub()})"
        if kind < 0.20:
            return f"({sub()} {self.pick('==', '!=', '<', '<=', '>', '>=', 'in', 'not in')} {sub()})"
        if kind < 0.24:
            return f"({sub()} {self.pick('and', 'or')} {sub()})"
        if kind < 0.27:
            return f"({self.pick('not ', '-', '+')}{sub()})"
        if kind < 0.31:
            return f"({sub()} if {sub()} else {sub()})" if self.rng.random() < 0.8 else f"({sub()} if {sub()})"
        if kind < 0.34:
            return self.pick(f"[{sub()}, {sub()}]", f"({sub()}, {sub()})", f"{{{self.string()}: {sub()}, {self.string()}: {sub()}}}", f"[{sub()}]")
        if kind < 0.40:
            return f"{self.sub(depth)}[{self.pick(sub(), self.number(), self.string())}]"
        if kind < 0.46:
            part = lambda: self.pick("", "", "1", "-1", "2", "-2", "0", "10", "-10", "n")  # noqa: E731
            return f"{self.sub(depth)}[{part()}:{part()}{self.pick('', ':', ':2', ':-1', ':-2', ':' + part())}]"
        if kind < 0.50:
            return f"{self.sub(depth)}.{self.pick('a', 'b', 'items', 'k', 'x', 'missing', 'n', 'c', 'upper', 'count')}"
        if kind < 0.62:
            return f"{self.sub(depth)}.{self.method(depth)}"
        if kind < 0.70:
            return f"({sub()} is {self.pick('', '', 'not ')}{self.test(depth)})"
        return f"({self.sub(depth)}|{self.filter(depth)})"

    def sub(self, depth):
        text = self.expr(depth - 1)
        return text if text[0] in "([{'\"" or text.isidentifier() else f"({text})"

    def method(self, depth):
        s, x, n = self.string(), self.expr(depth - 2), self.number()
        return self.rng.choice([
            "upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()", f"strip({s})", f"rstrip({s})", f"lstrip({s})",
            f"split({s})", "split()", f"split({s}, {n})", f"rsplit({s}, 1)", "rsplit()", "splitlines()", "splitlines(true)", f"replace({s}, {s})",
            f"replace({s}, {self.string()}, {n})", f"startswith({s})", f"endswith({s})", f"startswith(({s}, 'H'))", f"find({s})", f"rfind({s})",
            f"index({s})", f"count({s})", f"count({x})", f"index({x})", f"join({x})", f"partition({s})", f"rpartition({s})", "isdigit()", "isalpha()", "isalnum()",
            "isspace()", "islower()", "isupper()", "istitle()", f"zfill({n})", f"ljust({n})", f"rjust({n}, '*')", f"center({n})", f"removeprefix({s})",
            f"removesuffix({s})", "swapcase()", "casefold()", "expandtabs(4)", f"format({x}, {n})", "items()", "keys()", "values()", f"get({s})",
            f"get({s}, {x})", "copy()", f"append({x})", f"pop()", f"find({s}, {n})", f"find({s}, {n}, {self.number()})", "isdecimal()", "isidentifier()", "isascii()",
        ])

    def test(self, depth):
        x = self.expr(depth - 2)
        return self.rng.choice([
            "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "iterable", "sequence",
            "callable", "lower", "upper", "odd", "even", f"divisibleby({self.number()})", f"eq({x})", f"ne({x})", f"lt({x})", f"gt {self.number()}", f"in({x})", f"equalto({x})",
            f"ge({x})", "escaped"])

    def filter(self, depth):
        s, x, n = self.string(), self.expr(depth - 2), self.number()
        return self.rng.choice([
            "upper", "lower", "title", "capitalize", "trim", f"trim({s})", f"replace({s}, {self.string()})", f"replace({s}, {x}, 1)", "length", "count", "first", "last",
            "list", "reverse|list", "string", "join", f"join({s})", f"join({s}, attribute='k')", "sort", "sort(reverse=true)", "sort(case_sensitive=true)",
            "sort(attribute='n')", "sort(attribute='k')", "unique|list", "min", "max", "sum", "sum(attribute='n')", f"default({x})", f"default({x}, true)", "d('D')",
            "int", f"int({n})", "float", f"float({n})", "abs", "round", f"round({n})", "round(1, 'ceil')", "round(0, 'floor')", "tojson", "tojson(indent=2)",
            "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "items|list", "dictsort", "dictsort(by='value')", "dictsort(reverse=true)",
            f"map('upper')|list", "map(attribute='k')|list", "map(attribute='n', default=0)|list", "map('string')|join('.')", "select|list", "reject|list",
            "select('string')|list", "reject('none')|list", "selectattr('k')|list", "selectattr('n', 'defined')|list", "rejectattr('n', 'undefined')|list",
            f"selectattr('k', 'eq', {s})|list", f"selectattr('n', '>', 1)|list", "batch(2)|list", "batch(2, 'f')|list", "slice(2)|list", "slice(2, 'f')|list", "groupby('k')|list",
            "groupby('n', default=9)|map('first')|list", "indent", "indent(2, true)", "indent(2, blank=true)", f"truncate({n})", "truncate(5, true)", "truncate(5, false, '', 0)",
            "center(20)", f"format({x})", f"format({x}, {n})", "safe", "escape", "e", "safe|upper", "wordcount", "urlencode", "striptags", "filesizeformat",
            "forceescape", "attr('upper')", "attr('a')", f"safe + {s}", "string|length", "xmlattr",
        ])

    def statement(self, depth):
        x = lambda d=2: self.expr(d)  # noqa: E731
        v = self.pick("v", "w", "n")
        body = lambda: self.template(depth - 1)  # noqa: E731
        kind = self.rng.randrange(16)
        dash = lambda: self.pick("", "", "-", "+")  # noqa: E731
        o, c = "{%" + dash(), dash() + "%}"
        if kind == 0:
            return f"{o} set {v} = {x()} {c}"
        if kind == 1:
            return f"{o} if {x()} {c}{body()}{{% elif {x()} %}}{body()}{{%- else %}}{body()}{{% endif {c}"
        if kind in (2, 3):
            loop = self.pick("loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.revindex", "loop.revindex0", "loop.previtem", "loop.nextitem",
                             "loop.cycle('o', 'e')", "loop.changed(v)", "loop.depth", "loop")
            return f"{o} for v in {x()}{self.pick('', '', ' if v', ' if v is string')} {c}{{{{ {loop} }}}}{body()}{self.pick('', '', '{% continue %}', '{% break %}', '{% if v %}{% continue %}{% endif %}')}{{{{ v }}}}{{% else %}}E{{% endfor {c}"
        if kind == 4:
            return f"{o} for k, v in {self.pick('d', 'de', 'c')}.items() {c}{{{{ k }}}}={{{{ v }}}},{body()}{{% endfor {c}"
        if kind == 5:
            return f"{o} set ns = namespace(a={x()}, b=0) {c}{{% for v in {x()} %}}{{% set ns.b = ns.b + 1 %}}{{% set ns.a = {x()} %}}{{% endfor %}}{{{{ ns.a }}}}|{{{{ ns.b }}}}"
        if kind == 6:
            return f"{o} macro mac(p, q={x()}) {c}[{{{{ p }}}}|{{{{ q }}}}{self.pick('', '|{{ varargs }}', '|{{ kwargs }}')}{body()}]{{% endmacro {c}{{{{ mac({self.pick('', x(), x() + ', ' + x(), 'q=' + x(), x() + ', r=1', '1, 2, 3')}) }}}}"
        if kind == 7:
            return f"{o} set {v}{self.pick('', '|upper', '|trim|length')} {c}{body()}{{% endset {c}{{{{ {v} }}}}"
        if kind == 8:
            return f"{o} filter {self.pick('upper', 'trim', 'indent', 'title|trim')} {c}{body()}{{% endfilter {c}"
        if kind == 9:
            return f"{o} with {v} = {x()} {c}{body()}{{{{ {v} }}}}{{% endwith {c}"
        if kind == 10:
            return f"{{#{dash()} comment {{{{ x }}}} {dash()}#}}"
        if kind == 11:
            return f"{o} raw {c}{{{{ raw }}}} {{% x %}}\n{o} endraw {c}"
        if kind == 12:
            return f"{o} macro cal() {c}<{{{{ caller({self.pick('', '1')}) }}}}>{{% endmacro {c}{{% call({self.pick('', 'a=2')}) cal() %}}{body()}{{% endcall {c}"
        if kind == 13:
            return f"{o} for v in [[1, [2]], [3]] recursive {c}{{{{ v if v is number else loop(v) }}}}{{{{ loop.depth }}}}{{% endfor {c}"
        if kind == 14:
            return f"{o} set v, w = {self.pick(x() + ', ' + x(), x(), '(1, 2)')} {c}{{{{ v }}}}{{{{ w }}}}"
        return f"{o} print {x()} {c}"

    def of(self, *pools):
        pool = self.rng.choice(pools)
        one = self.rng.choice(pool)
        return one if self.rng.random() < 0.85 else f"({one} if {self.rng.choice(pool)} else {self.string()})"

    def chat_body(self, depth, *pools):
        parts = []
        for _ in range(self.rng.randrange(1, 4)):
            o, c = self.pick("{%", "{%-"), self.pick("%}", "-%}")
            kind = self.rng.random()
            if kind < 0.45 or depth <= 0:
                parts.append(f"{{{{{self.pick('', '-')} {self.of(*pools)} {self.pick('', '-')}}}}}")
            elif kind < 0.65:
                parts.append(f"{o} if {self.of(*pools)} {c}{self.chat_body(depth - 1, *pools)}{self.pick('', '{% else %}no', '{%- elif ' + self.of(*pools) + ' -%}' + self.chat_body(depth - 1, *pools))}{o} endif {c}")
            elif kind < 0.75:
                name = self.pick("x", "content", "y")
                parts.append(f"{o} set {name} = {self.of(*pools)} {c}{{{{ {name} }}}}")
            elif kind < 0.8:
                parts.append(f"{o} set x {c}{self.chat_body(depth - 1, *pools)}{o} endset {c}{{{{ x|trim }}}}")
            elif kind < 0.85:
                parts.append(f"{{{{ mac({self.of(*pools)}, {self.of(*pools)}) }}}}")
            else:
                parts.append(self.chat_loop(depth - 1, *pools))
            parts.append(self.data())
        return "".join(parts)

    def chat_loop(self, depth, *pools):
        o, c = self.pick("{%", "{%-"), self.pick("%}", "-%}")
        which = self.rng.randrange(5)
        if which == 0 or (which > 2 and OF_MESSAGE not in pools):
            source = self.pick("messages", "messages", "messages[1:]", "messages[::-1]", "messages|rejectattr('role', 'equalto', 'system')", "messages if m.role != 'tool'", "messages if m.content is string")
            return f"{o} for m in {source} {c}{self.chat_body(depth, OF_MESSAGE, OF_MESSAGE, *pools)}{self.pick('', '{% break %}', '{%- continue %}', '{% if loop.index > 2 %}{% break %}{% endif %}')}{o} endfor {c}"
        if which == 1:
            return f"{o} for t in tools {c}{self.chat_body(depth, OF_TOOL, OF_TOOL, *pools)}{self.pick('', '{% if not loop.last %}, {% endif %}')}{o} endfor {c}"
        if which == 2:
            return f"{o} for k, v in {self.pick('documents[0].items()', 'tools[0].function.parameters.properties|items', 'tools[0].function.parameters.properties|dictsort', 'd.items()')} {c}{{{{ k }}}}: {{{{ v{self.pick('', '|tojson', '|string', ' is mapping', '.type')} }}}}{self.data()}{o} else {c}none{o} endfor {c}"
        return f"{o} for c in m.tool_calls{self.pick('', ' or []')} {c}{self.chat_body(depth, OF_CALL, OF_CALL, *pools)}{o} endfor {c}"

    def chat_template(self):
        parts = [self.pick("", "{%- set ns = namespace(x=0, last=-1) -%}\n", "{% set ns = namespace() %}"),
                 "{%- macro mac(a, b='B') -%}" + self.pick("[{{ a }}|{{ b }}]", "{% if a is string %}{{ a|trim }}{% else %}{{ a|tojson }}{% endif %}", "{{ a ~ b }}") + "{%- endmacro -%}\n"]
        for _ in range(self.rng.randrange(1, 4)):
            parts.append(self.pick(self.chat_loop(2, OF_ALL), self.chat_body(1, OF_ALL)))
            parts.append(self.data())
        return "".join(parts)

    def data(self):
        return self.pick("", "text", "\n", "  ", " \n  ", "\n\n", "a\n  ", "\t", "x ", "\r\n", "{ }", "%}")

    def template(self, depth):
        parts = [self.data()]
        for _ in range(self.rng.randrange(1, 3)):
            if depth > 0 and self.rng.random() < 0.6:
                parts.append(self.statement(depth))
            else:
                dash = self.pick("", "", "-")
                parts.append(f"{{{{{dash} {self.expr(2)} {self.pick('', '', '-')}}}}}")
            parts.append(self.data())
        return "".join(parts)


def reference(env, source):
    """The text, or None for an error."""
    try:
        return env.from_string(source).render(**copy.deepcopy(VARIABLES))  # `list|indent` changes the list
    except RecursionError:
        raise
    except Exception:
        return None


BARE_METHOD = re.compile(r"\.(upper|count)\b(?!\()|attr\('upper'\)")


# What is no template's business: addresses, more than 64 bits, generators as text.
def comparable(source, text):
    if BARE_METHOD.search(source):  # the length of a method's text, and the like
        return False
    plain = urllib.parse.unquote(text).lower()
    return not any(mark in plain for mark in (" object at 0x", "<generator", "method ", "<function", "<class"))


def quern(source, folder):
    path = folder + "/t.jinja"
    with open(path, "w", newline="") as out:
        out.write(source)
    result = harness.run(harness.QUERN, "template", "--file", path, "--vars", folder + "/vars.json", "--now", "2026-01-15T12:00:00", expect=None, timeout=60)
    if result.returncode == 0:
        return result.stdout.decode()
    if result.returncode != 3:
        harness.fail(f"exit {result.returncode} for {source!r}: {result.stderr.decode(errors='replace')[-500:]}")
    return None, result.stderr.decode(errors="replace").strip()


MARK = "\x01\x02"


def differences(batch, folder):
    """Of (source, text) pairs that jinja2 renders, those that quern renders otherwise. Many a process."""
    joined = MARK.join("{% with %}" + source + "{% endwith %}" for source, _ in batch)
    got = quern(joined, folder)
    if isinstance(got, str) and got.split(MARK) == [text for _, text in batch]:
        return []
    if len(batch) == 1:
        # jinja2 folds a slice of a constant that has none to an undefined value, of a variable to an error.
        # Integers of the data beyond 64 bits are not reckoned with here.
        if isinstance(got, tuple) and ("cannot be sliced" in got[1] or "beyond 64 bits" in got[1]):
            return []
        return [(batch[0][0], batch[0][1], got)]
    half = len(batch) // 2
    return differences(batch[:half], folder) + differences(batch[half:], folder)


def main():
    import warnings
    warnings.simplefilter("ignore")
    env, rng = environment(), random.Random(SEED)
    generator, found, counts = Generator(rng), [], [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/vars.json", "w") as out:
            json.dump(VARIABLES, out)
        batch = []
        for i in range(CASES):
            kind = i % 3
            source = ("{{ " + generator.expr(rng.randrange(1, 4)) + " }}" if kind == 0 else generator.template(2) if kind == 1
                      else generator.chat_template())
            want = reference(env, "{% with %}" + source + "{% endwith %}")
            if want is None:
                counts[1] += 1
                if rng.random() < 0.15:  # an error in both
                    counts[2] += 1
                    got = quern(source, folder)
                    if isinstance(got, str):
                        found.append((source, None, got))
                continue
            if not comparable(source, want):
                continue
            counts[0] += 1
            batch.append((source, want))
            if len(batch) == 40:
                found += differences(batch, folder)
                batch = []
        found += differences(batch, folder) if batch else []
    for source, want, got in found[:20]:
        print(f"{source!r}\n  jinja2 {want!r}\n  quern  {got!r}")
    harness.check(not found, f"{len(found)} of {counts[0] + counts[2]} differ (seed {SEED})")
    print(f"template_fuzz: {counts[0]} texts equal, {counts[2]} of {counts[1]} errors are errors here too (seed {SEED})")


main()
