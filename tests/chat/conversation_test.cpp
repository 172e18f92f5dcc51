// What a person does to a conversation, and its JSON.
#include "chat/conversation.hpp"

#include "base/error.hpp"
#include "chat/chat_cases.hpp"
#include "chat/conversation_json.hpp"

namespace quern::tests {

namespace {

using chat::Conversation;
using chat::Message;
using Words = std::vector<std::string>;

Conversation turns(std::size_t n, bool system = true) {
  Conversation c;
  if (system) c.set_system("be brief");
  for (std::size_t i = 0; i < n; ++i) {
    c.add(said("user", "question " + std::to_string(i)));
    c.add(said("assistant", "answer " + std::to_string(i), "thought " + std::to_string(i)));
  }
  return c;
}

Words contents(const Conversation& c) {
  Words words;
  for (const Message& m : c.messages()) words.push_back(m.content.text);
  return words;
}

}  // namespace

TEST_CASE("messages are edited, removed, taken back and asked again", "[conversation]") {
  Conversation c = turns(2);
  CHECK(contents(c) == Words{"be brief", "question 0", "answer 0", "question 1", "answer 1"});
  c.edit(2, "other");
  CHECK(contents(c) == Words{"be brief", "other", "answer 0", "question 1", "answer 1"});
  c.edit(3, "put into its mouth");
  CHECK_FALSE(c.messages()[2].reasoning_content);
  c.erase(3);
  CHECK(contents(c) == Words{"be brief", "other", "question 1", "answer 1"});
  c.regenerate();
  CHECK(contents(c) == Words{"be brief", "other", "question 1"});
  c.regenerate();
  CHECK(c.size() == 3);
  CHECK(c.undo() == "question 1");
  CHECK(c.undo() == "other");
  CHECK(contents(c) == Words{"be brief"});
  CHECK_THROWS_AS(c.undo(), base::Error);
  CHECK_THROWS_AS(c.regenerate(), base::Error);
  CHECK(contents(c) == Words{"be brief"});
}

TEST_CASE("an answer grows as it comes", "[conversation]") {
  Conversation c = turns(0);
  c.add(said("user", "?"));
  c.add(said("assistant", ""));
  c.append("", "hm");
  c.append("yes");
  c.append(", no", "m");
  CHECK(c.messages().back() == said("assistant", "yes, no", "hmm"));
}

TEST_CASE("the system message comes, changes and goes", "[conversation]") {
  Conversation c = turns(1, false);
  CHECK(c.system() == nullptr);
  c.set_system("a");
  REQUIRE(c.system() != nullptr);
  c.set_system("b");
  CHECK(c.system()->content.text == "b");
  CHECK(c.size() == 3);
  c.clear(true);
  CHECK(contents(c) == Words{"b"});
  c.set_system("");
  CHECK(c.empty());
  c = turns(3);
  c.clear(false);
  CHECK(c.empty());
}

TEST_CASE("a branch is a copy that goes its own way", "[conversation]") {
  const Conversation c = turns(3);
  Conversation branch = c.branch(3);
  CHECK(contents(branch) == Words{"be brief", "question 0", "answer 0"});
  branch.add(said("user", "elsewhere"));
  CHECK(c == turns(3));
  CHECK(c.branch(7) == c);
  CHECK(c.branch(0).empty());
}

TEST_CASE("numbers of no message are refused and change nothing", "[conversation]") {
  Conversation c = turns(2);
  for (const std::size_t n : {std::size_t{0}, std::size_t{6}, SIZE_MAX}) {
    CHECK_THROWS_AS(c.edit(n, "x"), base::Error);
    CHECK_THROWS_AS(c.erase(n), base::Error);
    if (n != 0) CHECK_THROWS_AS(c.branch(n), base::Error);
  }
  CHECK(c == turns(2));
  Conversation none;
  CHECK_THROWS_AS(none.edit(1, "x"), base::Error);
}

TEST_CASE("token spans are true until their message or one before it changes", "[conversation]") {
  const auto spanned = [] {
    Conversation c = turns(2);
    c.set_spans({{0, 5}, {5, 9}, {9, 20}, {20, 24}, {24, 31}});
    return c;
  };
  const auto n_spans = [](const Conversation& c) {
    std::size_t n = 0;
    while (c.span(n)) ++n;
    return n;
  };
  Conversation c = spanned();
  CHECK(n_spans(c) == 5);
  CHECK(c.span(2)->size() == 11);
  c.edit(3, "x");
  CHECK(n_spans(c) == 2);
  c = spanned();
  c.erase(2);
  CHECK(n_spans(c) == 1);
  c = spanned();
  c.add(said("user", "x"));
  CHECK(n_spans(c) == 5);
  c = spanned();
  c.append("more");
  CHECK(n_spans(c) == 4);
  c.undo();
  CHECK(n_spans(c) == 3);
  c.set_system("x");
  CHECK(n_spans(c) == 0);
}

TEST_CASE("a conversation survives its JSON byte for byte", "[conversation]") {
  Conversation c = turns(2);
  c.set_settings(R"({"temperature": 0.1, "top_k": 40, "stop": ["a", "b"], "nested": {"x": null}})");
  c.set_spans({{0, 5}, {5, 9}, {9, 9}});
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  c.add(said("user", all));
  c.add(said("assistant", "quotes \" \\ \n\t\x7f \xe2\x82\xac <|im_end|>", "\xff\xfe"));
  c.add(said("", ""));
  Message calls = said("assistant", "<|call|>f()<|end|>");
  calls.content.untrusted = {{8, 11}};  // the model's own tokens around it
  calls.fields_json = R"({"tool_calls": [{"function": {"name": "f"}}]})";
  c.add(calls);
  const std::string json = chat::write_conversation(c);
  const Conversation read = chat::read_conversation(json, "x").conversation;
  CHECK(read.messages() == c.messages());
  CHECK(read.span(1) == c.span(1));
  CHECK(read.span(2) == c.span(2));
  CHECK_FALSE(read.span(3));
  CHECK(chat::write_conversation(read) == json);
  CHECK(json.find("<|im_end|>") != std::string::npos);  // people can read it
  const Conversation none;
  CHECK(chat::read_conversation(chat::write_conversation(none), "x").conversation == none);
}

TEST_CASE("branches are written beside the conversation", "[conversation]") {
  const Conversation c = turns(3);
  std::vector<Conversation> branches = {c.branch(3), turns(5, false), Conversation()};
  branches[1].set_spans({{0, 4}});
  const std::string json = chat::write_conversation(c, branches);
  const chat::WrittenConversation read = chat::read_conversation(json, "x");
  CHECK(read.conversation == c);
  CHECK(read.branches == branches);
  CHECK(chat::write_conversation(read.conversation, read.branches) == json);
  CHECK(chat::write_conversation(c) == chat::write_conversation(c, {}));
  CHECK(chat::write_conversation(c).find("branches") == std::string::npos);
}

TEST_CASE("settings are an object of the caller's", "[conversation]") {
  Conversation c;
  std::string deep = "{\"a\": ";
  for (int i = 0; i < 124; ++i) deep += "[";
  deep += std::string(124, ']') + "}";
  c.set_settings(deep);
  CHECK(chat::read_conversation(chat::write_conversation(c), "x").conversation.settings().size() > 240);
  for (const char* bad : {"", "[]", "1", "{", "{}, \"messages\": []", "{} }"}) {
    c.set_settings(bad);
    CHECK_THROWS_AS(chat::write_conversation(c), base::Error);
  }
  c.set_settings("{\"a\": " + std::string(127, '[') + std::string(127, ']') + "}");
  CHECK_THROWS_AS(chat::write_conversation(c), base::Error);  // else the file could not be read again
}

TEST_CASE("JSON that is no conversation is refused", "[conversation]") {
  const auto refused = [](const std::string& messages, const std::string& rest = ", \"settings\": {}") {
    INFO(messages << rest);
    CHECK_THROWS_AS(chat::read_conversation("{\"messages\": " + messages + rest + "}", "x"), base::Error);
  };
  const std::string m = R"("role": "user", "content": "a")";
  CHECK_NOTHROW(chat::read_conversation("{\"messages\": [{" + m + "}], \"settings\": {}}", "x"));
  refused("{}");
  refused("[1]");
  refused("[{\"role\": \"user\"}]");
  refused("[{\"content\": \"user\"}]");
  refused("[{" + m + ", \"other\": 1}]");
  refused("[{\"role\": 1, \"content\": \"a\"}]");
  refused("[{\"role\": \"user\", \"content\": {\"hex\": \"0\"}}]");
  refused("[{\"role\": \"user\", \"content\": {\"hex\": \"0g\"}}]");
  refused("[{\"role\": \"user\", \"content\": {\"hex\": \"00\", \"x\": 1}}]");
  refused("[{" + m + ", \"fields\": {}}]");
  refused("[{" + m + ", \"fields\": \"[]\"}]");
  refused("[{" + m + ", \"fields\": \"{\"}]");
  for (const char* ranges : {"[[0, 4]]", "[[1, 1]]", "[[1, 2], [1, 3]]", "[[2, 3], [0, 1]]", "[1]", "{}", "[[0, 99999999999]]"})
    refused(std::string(R"([{"role": "user", "content": {"text": "abc", "trusted": )") + ranges + "}}]");
  for (const char* span : {"[1]", "[2, 1]", "[-1, 3]", "[0, 1.5]", "[0, 1, 2]", "{}", "[0, 99999999999999999]", "null"})
    refused("[{" + m + ", \"tokens\": " + span + "}]");
  refused("[{" + m + ", \"tokens\": [0, 5]}, {" + m + ", \"tokens\": [4, 6]}]");
  refused("[{" + m + "}, {" + m + ", \"tokens\": [4, 6]}]");
  for (const char* branches : {"{}", "1", "[{}]", "[1]", "[[1]]", "[[{\"role\": \"user\"}]]"})
    refused("[]", std::string(", \"branches\": ") + branches + ", \"settings\": {}");
  refused("[]", "");
  refused("[]", ", \"settings\": []");
  refused("[]", ", \"settings\": {}, \"more\": 1");
}

}  // namespace quern::tests
