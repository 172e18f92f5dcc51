// Marks follow the bytes of what people wrote through every operation.
#include "catch.hpp"
#include "render.hpp"

namespace {

// The rendered text with its untrusted bytes in angle quotes: "a<user>b" -> "a{user}b".
std::string shown(std::string_view source, std::string_view variables) {
  const quern::base::MarkedText text = test::render_marked(source, variables);
  std::string out;
  std::size_t at = 0;
  for (const auto& range : text.untrusted) {
    REQUIRE(range.begin < range.end);
    REQUIRE(range.end <= text.text.size());
    out += text.text.substr(at, range.begin - at) + "{" + text.text.substr(range.begin, range.end - range.begin) + "}";
    at = range.end;
  }
  return out + text.text.substr(at);
}

constexpr std::string_view kVariables =
    R"({"u": "ab,c", "w": " x\ny ", "l": ["p", "q"], "d": {"k": "v"}, "n": 5, "z": "\u00e9\u00df"})";

}  // namespace

TEST_CASE("marks stay with their bytes") {
  struct Case {
    const char* source;
    const char* want;
  };
  for (const Case& c : {
           Case{"a{{ u }}b", "a{ab,c}b"},
           {"{{ 'x' + u + 'y' }}{{ 'x' ~ u }}", "x{ab,c}yx{ab,c}"},
           {"{{ u[1:3] }}{{ u[::-1] }}{{ u[0] }}", "{b,c,baa}"},
           {"{{ (u ~ 'T')|upper }}", "{AB,C}T"},
           {"{{ ('T' ~ z)|upper }}", "T{\u00c9SS}"},
           {"[{{ w|trim }}]{{ ('<' ~ w ~ '>').strip('<> ') }}", "[{x\ny}]{x\ny}"},
           {"{{ u.split(',')|join('-') }}", "{ab}-{c}"},
           {"{{ u.replace(',', 'T') }}{{ 'aTb'.replace('T', u) }}", "{ab}T{c}a{ab,c}b"},
           {"{{ l|join(', ') }}{{ ', '.join(l) }}", "{p}, {qp}, {q}"},
           {"{{ [l, 1] }}", "[['{p}', '{q}'], 1]"},
           {"{{ d|tojson }}", "{\"{k}\": \"{v}\"}"},
           {"{{ w|tojson }}{{ z|tojson(ensure_ascii=true) }}", "\"{ x\\ny }\"\"{\\u00e9\\u00df}\""},
           {"{{ '<%s|%5s>' % (u, 'T') }}{{ '{}{}'.format('T', u) }}", "<{ab,c}|    T>T{ab,c}"},
           {"{{ u|safe + '<' }}{{ '<'|safe + u }}", "{ab,c}&lt;<{ab,c}"},
           {"{{ w|indent(2, true) }}", "  { x}\n  {y }"},
           {"{{ u|title }}{{ u|capitalize }}{{ u|center(6) }}", "{Ab,cAb,c} {ab,c} "},
           {"{{ u|truncate(2, true, '', 0) }}{{ u|list }}", "{ab}['{a}', '{b}', '{,}', '{c}']"},
           {"{{ n }}{{ n|string }}{{ u|length }}", "554"},
           {"{% set x %}T{{ u }}{% endset %}{{ x }}{% filter upper %}t{{ u }}{% endfilter %}", "T{ab,c}T{AB,C}"},
           {"{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(u) }}{{ m('t') }}", "<{ab,c}><t>"},
           {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "{k}={v}"},
           {"{% for c in u %}{{ c }}.{% endfor %}", "{a}.{b}.{,}.{c}."},
           {"{{ u.partition(',')[0] }}{{ u.rsplit(',', 1)[1] }}{{ w.splitlines() }}", "{abc}['{ x}', '{y }']"},
           {"{{ [u, 't']|sort|join }}{{ [u]|map('upper')|first }}", "{ab,c}t{AB,C}"},
           {"{{ u|default('t') }}{{ missing|default(u) }}{{ (u ~ 't')|e }}", "{ab,cab,cab,c}t"},
           {"{{ namespace(a=u).a }}{{ dict(k=u)['k'] }}", "{ab,cab,c}"},
           {"{{ u|replace('b', '<')|urlencode }}", "{a}%3C{%2Cc}"},
           {"{{ u.zfill(6) }}{{ u.ljust(5, '.') }}", "00{ab,cab,c}."},
       }) {
    INFO(c.source);
    CHECK(shown(c.source, kVariables) == c.want);
  }
}

TEST_CASE("trusted variables are the template's own words") {
  using namespace quern::jinja;
  const Template::Variables variables = {{"bos_token", Data::of("<s>", Trust::trusted)},
                                         {"user", Data::of("<s>", Trust::untrusted)}};
  const quern::base::MarkedText text =
      Template("{{ bos_token }}{{ user }}", "t").render(variables, test::render_options());
  REQUIRE(text.untrusted.size() == 1);
  CHECK(text.text == "<s><s>");
  CHECK(text.untrusted[0].begin == 3);
}
