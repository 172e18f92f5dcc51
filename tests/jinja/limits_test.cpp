// Hostile templates end soon, in bounded memory, with an error.
#include "catch.hpp"
#include "render.hpp"

namespace {

std::string repeated(const std::string& part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

void refused(const std::string& source, const std::string& part) {
  const std::string text = test::render(source);
  INFO(source.substr(0, 200) << " gave " << text.substr(0, 300));
  CHECK(text.substr(0, 1) == "!");
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("recursion of macros and loops is bounded") {
  refused("\n{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "line 2: recursion > 64");
  refused("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion > 64");
  refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "recursion > 64");
  refused(
      "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ "
      "g() }}",
      "recursion > 64");
  CHECK(test::render("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% else %}end{% endif %}{% endmacro %}{{ f(60) }}") ==
        "end");
}

TEST_CASE("nesting is bounded") {
  for (const std::size_t n : {std::size_t{150}, std::size_t{60000}}) {
    refused("{{ " + repeated("(", n) + "1" + repeated(")", n) + " }}", "nested too deeply");
    refused("{{ " + repeated("[", n) + repeated("]", n) + " }}", "nested too deeply");
    refused("{{ " + repeated("{1:", n) + "1" + repeated("}", n) + " }}", "nested too deeply");
    refused("{{ " + repeated("not ", n) + "1 }}", "nested too deeply");
    refused("{{ " + repeated("-", n) + "1 }}", "nested too deeply");
    refused("{{ " + repeated("1 if 1 else ", n) + "1 }}", "nested too deeply");
    refused("{{ a" + repeated(".b", n) + " }}", "nested too deeply");
    refused("{{ a" + repeated("[0]", n) + " }}", "nested too deeply");
    refused("{{ a" + repeated("()", n) + " }}", "nested too deeply");
    refused("{{ 'a'" + repeated("|upper", n) + " }}", "nested too deeply");
    refused(repeated("{% if 1 %}", n) + repeated("{% endif %}", n), n < 1000 ? "nested too deeply" : "too long");
    refused(repeated("{% for x in y %}", n) + repeated("{% endfor %}", n), n < 1000 ? "nested too deeply" : "too long");
  }
  // Long, not deep.
  CHECK(test::render("{{ 1" + repeated(" + 1", 5000) + " }}") == "5001");
  CHECK(test::render("{{ 'a'" + repeated(" ~ 'a'", 5000) + " }}").size() == 5001);
  CHECK(test::render("{{ 0" + repeated(" or 0", 5000) + " or 7 }}") == "7");
  CHECK(test::render("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}e{% endif %}") == "e");
  CHECK(test::render("{{ " + repeated("(", 40) + "1" + repeated(")", 40) + " }}") == "1");
  // Values nested by the loop that makes them.
  refused("{% set ns = namespace(x=[]) %}{% for i in range(9000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
          "nested too deeply");
  refused(
      "{% set ns = namespace(x=[]) %}{% for i in range(9000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
      "nested too deeply");
  refused(
      "{% set ns = namespace(x=[]) %}{% set ns.x = [1] %}{% for i in range(9000) %}{% set ns.x = ns.x|map('string') "
      "%}{% endfor %}{{ ns.x|list }}",
      "nested too deeply");
  refused("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "nested too deeply");
  CHECK(test::render("{% set ns = namespace(x=[]) %}{% for i in range(9000) %}{% set ns.x = [ns.x] %}{% endfor %}ok") ==
        "ok");
}

TEST_CASE("ranges are bounded") {
  for (const char* range : {"range(10**9)", "range(100001)", "range(0, 2**62)", "range(2**62, 0, -1)",
                            "range(-9223372036854775807, 9223372036854775807)"})
    refused("{{ " + std::string(range) + " }}", "range > limit");
  refused("{{ range(0, 1, 0) }}", "must not be zero");
  CHECK(test::render("{{ range(100000)|length }}{{ range(0, 2**62, 2**61)|list|length }}") == "1000002");
}

TEST_CASE("steps are bounded") {
  const std::string loop = "{% for i in range(100000) %}", end = "{% endfor %}";
  refused(loop + loop + loop + end + end + end, "fuel exhausted");
  refused(
      "{% set x = range(100000)|list %}{% for i in x %}{% for j in x|sort|reverse|map('string')|list %}{% endfor %}{% "
      "endfor %}",
      "fuel exhausted");
  refused(
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "fuel exhausted");
  refused("{% set a = 'a' * 9000000 %}{% for i in range(1000) %}{{ a.count('a') }}{% endfor %}", "fuel exhausted");
}

TEST_CASE("texts and values are bounded") {
  const std::string sixteen = "output > 16 MiB";
  refused("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", sixteen);
  refused("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", sixteen);
  refused("{{ 'a' * 10**9 }}", sixteen);
  refused("{{ 'a' * 10**18 }}", sixteen);
  refused("{{ 'abc'|center(10**12) }}", sixteen);
  refused("{{ 'abc'.ljust(10**12) }}{{ '' }}", sixteen);
  refused("{{ 'a'.zfill(2**40) }}", sixteen);
  refused("{{ '%999999999d' % 1 }}", sixteen);
  refused("{{ '%*d' % (10**9, 1) }}", sixteen);
  refused("{{ '{:999999999}'.format(1) }}", sixteen);
  refused("{{ 'a'|indent(10**9, true) }}", sixteen);
  refused("{% set a = 'a' * 5000 %}{{ a.replace('a', a) }}", sixteen);
  refused("{% set a = 'a' * 5000 %}{{ a.replace('', a) }}", sixteen);
  refused("{% set a = 'a' * 5000 %}{{ a.join(a) }}", sixteen);
  refused("{% set a = 'a' * 5000 %}{{ a|join(a) }}", sixteen);
  refused("{% set a = 'a' * 9000000 %}{{ a }}{{ a }}", sixteen);
  refused("{% set a = 'a' * 100000 %}{% for i in range(1000) %}{{ a }}{% endfor %}", sixteen);
  refused("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
          "");
  refused("{{ ([1] * 10**9)|length }}", "");
  refused("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "");
  refused(
      "{% set a = 'a' * 9000000 %}{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = ns.x + [a + "
      "'b'] %}{% endfor %}",
      "");
}

TEST_CASE("arithmetic never leaves 64 bits and never divides by zero") {
  for (const char* expression :
       {"1//0", "1%0", "1/0", "1.0//0", "1.0%0", "5 is divisibleby 0", "5 is divisibleby(0)", "5 is divisibleby 0"})
    refused("{{ " + std::string(expression) + " }}",
            "zero" + std::string(std::string_view(expression).find("**") != std::string_view::npos ? "" : ""));
  for (const char* expression :
       {"(-9223372036854775807 - 1) // -1", "9223372036854775807 + 1", "-9223372036854775807 - 2",
        "9223372036854775807 * 2", "2 ** 63", "10 ** 19", "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1)|abs", "99999999999999999999", "1e30|int", "'99999999999999999999'|int"})
    refused("{{ " + std::string(expression) + " }}", "overflow");
  CHECK(test::render(
            "{{ (-9223372036854775807 - 1) % -1 }}{{ -7 // 2 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ 2 ** 62 }}{{ 2 ** -1 }}") ==
        "0-42-246116860184273879040.5");
}

TEST_CASE("sources that are no template") {
  CHECK(test::render("") == "");
  refused(std::string(10 << 20, 'a'), "too long");
  refused("\xFF{{ 1 }}", "not valid UTF-8");
  CHECK(test::render(std::string("a\0b", 3)) == std::string("a\0b", 3));
  refused(std::string("{{ \0 }}", 7), "unexpected char");
  refused("{{ raise_exception('a\\x1b[2Jb') }}", "a\x1b[2Jb");  // printed escaped by main()
  for (const char* name : {"lipsum", "self", "__import__", "os", "config"})
    CHECK(test::render("[{{ " + std::string(name) + " }}]") == "[]");
  refused("{{ lipsum() }}", "'lipsum' is undefined");
  refused("{{ ''.__class__.__mro__ }}", "");
}
