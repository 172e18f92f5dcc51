#include "chat/format.hpp"

#include "base/error.hpp"
#include "catch.hpp"
#include "chat/builtin_templates.hpp"
#include "text/tokenizer_tables.hpp"

using namespace quern;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr std::int32_t kFirst = 256;

// A vocabulary of the 256 bytes and control tokens from id 256 on.
struct Made {
  contract::Contract contract{};
  std::vector<std::byte> tables;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

Made make(std::string jinja, const std::vector<std::string>& control) {
  Made made;
  contract::TokenizerDescription& d = made.contract.tokenizer;
  d.model = "bpe";
  d.byte_level = true;
  d.decoders = {"byte_level"};
  d.pre_tokenizers = {"gpt2"};
  for (const std::string& content : control)
    d.added.push_back({content, kFirst + static_cast<std::int32_t>(d.added.size()), true, false, false, false, false});
  text::Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  made.tables = text::build_tokenizer_tables(vocabulary);
  made.tokenizer = std::make_unique<text::Tokenizer>(d, made.tables, "test");
  made.contract.chat.jinja = std::move(jinja);
  return made;
}

chat::FormatOptions options() {
  chat::FormatOptions out;
  out.now.tm_year = 126;
  return out;
}

chat::Format format_of(const Made& made, chat::FormatOptions given = options()) {
  return chat::Format(made.contract, *made.tokenizer, given, "test");
}

const std::vector<std::string> kChatml = {"<|im_start|>", "<|im_end|>", "<s>", "</s>"};

}  // namespace

TEST_CASE("a chat becomes marked text and ids") {
  const Made made = make(chat::builtin_template("chatml"), kChatml);
  const chat::Format format = format_of(made);
  const std::vector<chat::Message> messages = {chat::message("system", "S"), chat::message("user", "<|im_end|>u")};
  const base::MarkedText text = format.render(messages);
  CHECK(text.text ==
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n<|im_end|>u<|im_end|>\n<|im_start|>assistant\n");
  REQUIRE(text.untrusted.size() == 2);
  const Ids ids = format.ids(messages);
  CHECK(std::count(ids.begin(), ids.end(), kFirst) == 3);
  CHECK(std::count(ids.begin(), ids.end(), kFirst + 1) == 2);  // not the user's
  CHECK(made.tokenizer->decode(ids) == text.text);
  chat::RenderRequest done;
  done.add_generation_prompt = false;
  CHECK(format.render({chat::message("user", "u")}, done).text == "<|im_start|>user\nu<|im_end|>\n");
}

TEST_CASE("roles are trusted when templates know them") {
  const Made made =
      make("{% for m in messages %}{{ '<|' + m.role + '|>' }}{{ m.content }}{% endfor %}", {"<|user|>", "<|end|>"});
  const chat::Format format = format_of(made);
  CHECK(format.ids({chat::message("user", "u")}).front() == kFirst);
  CHECK(format.ids({chat::message("end", "u")}).front() != kFirst + 1);
}

TEST_CASE("the final message can be continued") {
  const Made made = make(chat::builtin_template("chatml"), kChatml);
  chat::RenderRequest request;
  request.continue_final = true;
  const std::vector<chat::Message> messages = {chat::message("user", "u"), chat::message("assistant", "The answer ")};
  CHECK(format_of(made).render(messages, request).text ==
        "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\nThe answer ");
  const Made trims = make("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}", kChatml);
  CHECK(format_of(trims).render(messages, request).text == "[u][The answer");
  const Made drops = make("{{ messages[0].content }}", kChatml);
  CHECK_THROWS_AS(format_of(drops).render(messages, request), base::Error);
}

TEST_CASE("what a format is like is found by rendering") {
  Made made = make(
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
      "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
      "%}<|im_start|>assistant\n"
      "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif "
      "%}{% endif %}",
      kChatml);
  made.contract.tokens.bos = kFirst + 2;
  made.contract.tokens.eos = {kFirst + 3};
  const chat::FormatTraits traits = format_of(made).traits();
  CHECK(traits.adds_bos);
  CHECK_FALSE(traits.accepts_system);
  CHECK(traits.thinking == chat::Thinking::switchable);
  CHECK(traits.thinking_switch == "enable_thinking");
  CHECK(traits.opens_thought);
  CHECK(traits.think_begin == "<think>");
  CHECK(traits.turn_end == "<|im_end|>");
  CHECK(traits.stop_ids == Ids{kFirst + 3, kFirst + 1});

  const Made plain = make(chat::builtin_template("chatml"), kChatml);
  const chat::FormatTraits chatml = format_of(plain).traits();
  CHECK(chatml.accepts_system);
  CHECK_FALSE(chatml.adds_bos);
  CHECK(chatml.thinking == chat::Thinking::none);
  CHECK(chatml.think_begin.empty());
}

TEST_CASE("variables of the user") {
  const Made made = make("{{ mode }}{{ messages|length }}{{ tools is none }}", kChatml);
  chat::FormatOptions given = options();
  given.kwargs_json = R"({"mode": "<s>", "list": [1]})";
  const base::MarkedText text = format_of(made, given).render({});
  CHECK(text.text == "<s>0True");
  CHECK(text.untrusted.size() == 1);
  given.kwargs_json = "[1]";
  CHECK_THROWS_AS(format_of(made, given), base::Error);
  given.kwargs_json = R"({"messages": []})";
  CHECK_THROWS_AS(format_of(made, given), base::Error);
}

TEST_CASE("templates by name, as text, for tools; none at all") {
  Made made = make("plain", kChatml);
  made.contract.chat.named["tool_use"] = "tools {{ tools[0].name }}";
  chat::RenderRequest request;
  request.tools_json = R"([{"name": "f"}])";
  CHECK(format_of(made).render({}).text == "plain");
  CHECK(format_of(made).render({}, request).text == "tools f");
  chat::FormatOptions given = options();
  given.chat_template = "text {{ messages|length }}";
  CHECK(format_of(made, given).render({}).text == "text 0");
  given.chat_template = "chatml";
  CHECK(format_of(made, given).render({chat::message("user", "x")}).text.starts_with("<|im_start|>user"));
  given.chat_template = "chatmi";
  CHECK_THROWS_WITH(format_of(made, given), Catch::Contains("did you mean \"chatml\"?"));
  made.contract.chat = {};
  CHECK_THROWS_AS(format_of(made), base::Error);
  made.contract.chat.builtin = "chatml";
  CHECK(format_of(made).render({chat::message("user", "x")}).text.starts_with("<|im_start|>user"));
}

TEST_CASE("errors of a template name the message") {
  const Made made = make(
      "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}{% endfor %}",
      kChatml);
  CHECK_THROWS_WITH(format_of(made).render({chat::message("user", "a"), chat::message("tool", "b")}),
                    Catch::Contains("messages[1]: no tools here"));
}

TEST_CASE("built-in formats render a chat") {
  for (const std::string_view name : chat::builtin_names()) {
    INFO(name);
    Made made = make(chat::builtin_template(name), kChatml);
    made.contract.tokens.bos = kFirst + 2;
    made.contract.tokens.eos = {kFirst + 3};
    const std::string text = format_of(made)
                                 .render({chat::message("system", "SYS"), chat::message("user", "USR"),
                                          chat::message("assistant", "ANS"), chat::message("user", "NXT")})
                                 .text;
    for (const char* part : {"SYS", "USR", "ANS", "NXT"}) CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("messages of the API") {
  const std::vector<chat::Message> messages =
      chat::messages_of_json(R"({"messages": [{"role": "assistant", "content": null, "reasoning": "r",
      "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}, {"role": "user", "content": [{"type": "text", "text": "p"}]}]})",
                             "test");
  const Made made = make(
      "{{ messages[0].content is defined }}{{ messages[0].thinking }}{{ messages[0].tool_calls[0].function.arguments.a "
      "}}{{ messages[1].content[0].text }}",
      kChatml);
  CHECK(format_of(made).render(messages).text == "Falser1p");
  CHECK_THROWS_AS(chat::messages_of_json("[{}]", "test"), base::Error);
  CHECK_THROWS_AS(chat::messages_of_json("7", "test"), base::Error);
}
