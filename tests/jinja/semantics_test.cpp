// What templates rely on, as jinja2 3.1.6 does it (scripts: tests/tools/template_fuzz.py compares at random).
#include "catch.hpp"
#include "render.hpp"

namespace {

struct Case {
  const char* source;
  const char* want;
};

constexpr const char* kVariables =
    R"({"s": "Hi", "n": 3, "f": 1.0, "l": [1, 2, 3], "d": {"a": 1, "items": 2, "b": {"c": "x"}},
  "nil": null, "m": {"content": "  body  "}, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";

void check(const Case& c) {
  INFO(c.source);
  CHECK(test::render(c.source, kVariables) == c.want);
}

bool fails(const char* source, const char* part) {
  const std::string text = test::render(source, kVariables);
  INFO(source << " gave " << text);
  CHECK(text.substr(0, 1) == "!");
  CHECK(text.find(part) != std::string::npos);
  return true;
}

}  // namespace

TEST_CASE("filters and tests bind tighter than operators") {
  for (const Case& c : {Case{"{{ 'a' + m.content | trim + 'c' }}", "abodyc"},
                        {"{{ not x is defined }}", "True"},
                        {"{{ 1 + 2 is number }}", "2"},
                        {"{{ -3|abs }}", "3"},
                        {"{{ 2 ** 3 ** 2 }}", "64"},
                        {"{{ -2 ** 2 }}", "4"},
                        {"{{ 1 ~ 2 * 3 }}", "16"},
                        {"{{ 1 < 2 < 3 }}|{{ 3 > 2 > 2 }}", "True|False"},
                        {"{{ 7 // 2 * 2 % 5 }}", "1"},
                        {"{{ 1 in [1] and not 2 in [1] }}", "True"},
                        {"{{ 2 not in l }}", "False"},
                        {"{{ 'a' 'b' \"c\" }}", "abc"},
                        {"{{ 'x' if false }}|{{ 'x' if false else 'y' if false else 'z' }}", "|z"},
                        {"{{ 1, 2 }}", "(1, 2)"},
                        {"{{ () }}", "()"}})
    check(c);
}

TEST_CASE("white space around tags") {
  for (const Case& c : {Case{"a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc"},
                        {"a {%- if true -%} b {%- endif -%} c", "abc"},
                        {"  {%+ if true %}x{% endif +%}\n y", "  x\n y"},
                        {"{{ 1 }}\n{{ 2 }}\n", "1\n2"},
                        {"{{ 1 -}}\n {{- 2 }}", "12"},
                        {"{# c #}\n  {#- d -#}  x", "x"},
                        {"x  {# c #}\n", "x  "},
                        {"a\r\nb\rc\n\n", "a\nb\nc\n"},
                        {"{% raw %}{{ x }}{% endraw %}\n!", "{{ x }}!"},
                        {"a {%- raw -%}  {% y %}  {%- endraw -%}  b", "a{% y %}b"},
                        {"  {% set a = 1 %}  {{ a }}", "  1"},
                        {"\n", ""},
                        {"", ""},
                        {"{% if true -%}\n\n  x{% endif %}", "x"},
                        {"{{ {'a': {}} }}", "{'a': {}}"},
                        {"a\t{%- if 1 %}b{% endif %}", "ab"}})
    check(c);
}

TEST_CASE("string literals are Python's") {
  for (const Case& c : {Case{"{{ 'a\\nb\\x41\\u00e9\\q\\'\\101' }}", "a\nbA\u00e9\\q'A"},
                        {"{{ 'a\\\nb' }}", "ab"},
                        {"{{ 'a\nb' }}", "a\nb"},
                        {"{{ 'a\r\nb' }}", "a\nb"},
                        {"{{ \"it's\" }}", "it's"},
                        {"{{ 1_000 + 0x1F + 0b11 + 0o17 }}", "1049"},
                        {"{{ 1e3 }}|{{ 2.5 }}|{{ 1_0.5e-1 }}", "1000.0|2.5|1.05"}})
    check(c);
}

TEST_CASE("scopes") {
  for (const Case& c :
       {Case{"{% set x = 0 %}{% for i in l %}{% set x = i %}{% endfor %}{{ x }}", "0"},
        {"{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "1"},
        {"{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "6"},
        {"{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{% set x = 2 %}{{ f() }}", "12"},
        {"{% with x = 1, y = 2 %}{{ x + y }}{% endwith %}{{ x is defined }}", "3False"},
        {"{% set x %} a{{ n }} {% endset %}[{{ x }}]", "[ a3 ]"},
        {"{% set x | trim | upper %} a {% endset %}{{ x }}", "A"},
        {"{% filter upper %}a{{ s }}{% endfilter %}", "AHI"},
        {"{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}", "123"},
        {"{% set a, b = 1, [2] %}{{ a }}{{ b }}", "1[2]"},
        {"{% for a, b in d.items() %}{{ a }};{% endfor %}", "a;items;b;"},
        {"{% for i in l if i != 2 %}{{ loop.index }}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "11,23"},
        {"{% generation %}{{ s }}{% endgeneration %}", "Hi"},
        {"{% block b %}x{% endblock b %}", "x"}})
    check(c);
}

TEST_CASE("loops") {
  for (const Case& c :
       {Case{"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
        {"{% for i in l %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "13"},
        {"{% for i in l %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% else %}e{% endfor %}", "1"},
        {"{% for i in l %}{% break %}{% else %}e{% endfor %}{% for i in l %}{% continue %}{% else %}e{% endfor %}", "ee"},
        {"{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ "
         "loop.length }} {% endfor %}",
         "103TrueFalse3 212FalseFalse3 321FalseTrue3 "},
        {"{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}", "<1>2 1<2>3 2<3> "},
        {"{% for i in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}{% endfor %}", "aTruebTrueaFalse"},
        {"{% for i in [1, [2, [3]]] recursive %}{{ i if i is number else '(' ~ loop(i) ~ ')' }}{{ loop.depth }}{% "
         "endfor %}",
         "11(22(33)2)1"},
        {"{% for i in l|select('odd') %}{{ i }}{{ loop.last }}{{ loop.length }}{% endfor %}", "1False23True2"},
        {"{% for c in 'ab' %}{{ c }}.{% endfor %}", "a.b."},
        {"{% for i in range(10, 0, -4) %}{{ i }} {% endfor %}", "10 6 2 "}})
    check(c);
}

TEST_CASE("attributes, items, undefined values") {
  for (const Case& c :
       {Case{"{{ d.a }}{{ d['a'] }}{{ d.b.c }}", "11x"},
        {"{{ d['items'] }}", "2"},
        {"{{ d.items is callable }}", "True"},
        {"[{{ missing }}{{ d.missing }}{{ d['x'] }}{{ l[9] }}]", "[]"},
        {"{{ missing is defined }}{{ missing|length }}{{ missing|default('D') }}{{ nil|default('D') }}{{ "
         "nil|default('D', true) }}",
         "False0DNoneD"},
        {"{{ nil.foo is defined }}{{ nil }}", "FalseNone"},
        {"{% for i in missing %}x{% endfor %}{{ 'y' if missing else 'n' }}", "n"},
        {"{{ d.__class__ }}|{{ s.__globals__ }}", "|"},
        {"{{ l[-1] }}{{ l[1:] }}{{ l[::-1] }}{{ s[0] }}{{ s[-1:] }}", "3[2, 3][3, 2, 1]Hi"},
        {"{{ messages[0]['role'] }}{{ messages[-1].content }}{{ messages[0].get('x') }}{{ messages[0].get('x', 'y') }}",
         "userbNoney"},
        {"{{ l.0 }}", "1"},
        {"{{ missing == other }}{{ missing == none }}", "TrueFalse"}})
    check(c);
  fails("{{ missing.x }}", "'missing' is undefined");
  fails("{{ missing + 'a' }}", "'missing' is undefined");
  fails("{{ missing.x is defined }}", "'missing' is undefined");
  fails("{{ d.b.y.z }}", "has no attribute 'y'");
  fails("{{ l.append(4) }}", "unsafe");
  fails("{{ d.pop('a') }}", "unsafe");
  fails("{{ d.update({}) }}", "unsafe");
  fails("{{ nope() }}", "'nope' is undefined");
  fails("{{ s() }}", "not callable");
}

TEST_CASE("printing is Python's") {
  for (const Case& c :
       {Case{"{{ true }} {{ none }} {{ f }} {{ 1e20 }} {{ 1e16 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1/3 }}",
             "True None 1.0 1e+20 1e+16 0.0001 1e-05 -0.0 0.3333333333333333"},
        {"{{ ['a', \"it's\", 1.5, none, {'k': (1,)}] }}", "['a', \"it's\", 1.5, None, {'k': (1,)}]"},
        {"{{ ['\\n\\t\\\\\\x00\u00e9'] }}", "['\\n\\t\\\\\\x00\u00e9']"},
        {"{{ 'a' ~ none ~ 1 ~ [] }}", "aNone1[]"},
        {"{{ range(3) }}{{ d.keys() }}{{ namespace(a=1) }}",
         "range(0, 3)dict_keys(['a', 'items', 'b'])<Namespace {'a': 1}>"},
        {"{{ [missing] }}", "[Undefined]"}})
    check(c);
  fails("{{ 'a' + 1 }}", "can only concatenate str (not \"int\") to str");
  fails("{{ 1 + 'a' }}", "unsupported operand type(s) for +: 'int' and 'str'");
  fails("{{ 1 < 'a' }}", "not supported between");
  fails("{{ 1 in 2 }}", "not iterable");
}

TEST_CASE("markup escapes what is added to it") {
  for (const Case& c :
       {Case{"{{ '<'|safe }}{{ '<'|safe + '<' }}{{ '<' + '&'|safe }}{{ '<'|safe ~ '<' }}", "<<&lt;&lt;&<<"},
        {"{{ '<a>'|safe|upper + '\"' }}", "<A>&#34;"},
        {"{{ '<'|e }}{{ '<'|e|e }}", "&lt;&lt;"}})
    check(c);
}

TEST_CASE("tests of kind") {
  for (const Case& c :
       {Case{"{{ s is sequence }}{{ l is sequence }}{{ d is sequence }}{{ 1 is sequence }}", "TrueTrueTrueFalse"},
        {"{{ s is iterable }}{{ d is mapping }}{{ l is mapping }}{{ true is number }}{{ true is integer }}",
         "TrueTrueFalseTrueFalse"},
        {"{{ nil is none }}{{ f is float }}{{ 4 is even }}{{ 4 is divisibleby 3 }}{{ 3 is odd }}{{ 1 is eq 1.0 }}{{ "
         "'a' is in 'abc' }}",
         "TrueTrueTrueFalseTrueTrueTrue"}})
    check(c);
}

TEST_CASE("macros and calls") {
  for (const Case& c :
       {Case{"{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=4, a=5) }}{{ f() }}",
             "1213542"},
        {"{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, x=2) }}", "(1,){'x': 2}"},
        {"{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in{% endcall %}", "<in>"},
        {"{% macro f() %}{{ caller('x') }}{% endmacro %}{% call(v) f() %}{{ v }}{{ s }}{% endcall %}", "xHi"},
        {"{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"},
        {"{% macro f(x) %}{% if x is defined %}D{% else %}U{% endif %}{% endmacro %}{{ f() }}{{ f(none) }}", "UD"},
        {"{% macro f(a) %}{% endmacro %}{{ f.name }}{{ f.arguments }}", "f('a',)"},
        {"{% set f = dict %}{{ f(a=1, **{'b': 2}) }}", "{'a': 1, 'b': 2}"}})
    check(c);
  fails("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "takes not more than 1 argument(s)");
  fails("{% macro f(a) %}{% endmacro %}{{ f(x=2) }}", "takes no keyword argument 'x'");
}

TEST_CASE("formatting") {
  for (const Case& c :
       {Case{"{{ '%s=%05.2f|%-4d|%x|%%' % ('a', 3.14159, 7, 255) }}", "a=03.14|7   |ff|%"},
        {"{{ '%s' % [1, 'a'] }}{{ '%r'|format('x') }}{{ '%(k)s'|format(k='v') }}", "[1, 'a']'x'v"},
        {"{{ '{} {1}'.replace('1', '').format(1, 2) }}|{{ '{:>5}|{:<3}|{:^5}|{:05.1f}|{:,}'.format('a', 'b', 'c', "
         "2.55, 1234567) }}|{{ '{a[k]}{0!r}'.format('z', a={'k': 1}) }}",
         "1 2|    a|b  |  c  |002.5|1,234,567|1'z'"},
        {"{{ strftime_now('%d %b %Y %H:%M %%') }}", "15 Jan 2026 12:00 %"}})
    check(c);
  fails("{{ '%d' % 'a' }}", "number is required");
  fails("{{ '%s %s' % 'a' }}", "not enough arguments");
  fails("{{ '%s' % (1, 2) }}", "not all arguments");
}

TEST_CASE("JSON") {
  for (const Case& c : {Case{"{{ d|tojson }}", "{\"a\": 1, \"items\": 2, \"b\": {\"c\": \"x\"}}"},
                        {"{{ [1.0, true, none, '\u00e9<\\n\"']|tojson }}", "[1.0, true, null, \"\u00e9<\\n\\\"\"]"},
                        {"{{ '\u00e9\U0001f600'|tojson(ensure_ascii=true) }}", "\"\\u00e9\\ud83d\\ude00\""},
                        {"{{ {'b': [1, []], 'a': {}}|tojson(indent=1, sort_keys=true) }}",
                         "{\n \"a\": {},\n \"b\": [\n  1,\n  []\n ]\n}"},
                        {"{{ {1: 2, none: 3}|tojson(separators=(',', ':')) }}", "{\"1\":2,\"null\":3}"}})
    check(c);
  fails("{{ missing|tojson }}", "Object of type Undefined is not JSON serializable");
  fails("{{ l|map('string')|tojson }}", "Object of type generator is not JSON serializable");
}

TEST_CASE("errors name the line, and the message that was at hand") {
  fails("a\n\n{{ missing.x }}", "line 3");
  fails(
      "{% for m in messages %}\n{% if m.role == 'assistant' %}{{ raise_exception('no ' + m.role) }}{% endif %}{% "
      "endfor %}",
      "line 2, at messages[1]: no assistant");
  fails("{{ 1|nope }}", "unknown filter 'nope'");
  fails("{{ 1|uper }}", "did you mean 'upper'");
  fails("{{ 1 is nope }}", "unknown test 'nope'");
  fails("{% if %}", "line 1");
  fails("{% for x in y %}", "expected 'endfor' or 'else'");
  fails("{{ 'a }}", "string");
  fails("{% break %}", "outside loop");
  fails("{% nope %}", "unknown statement 'nope'");
  for (const char* source :
       {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% from 'x' import y %}"})
    fails(source, "not supported");
}
