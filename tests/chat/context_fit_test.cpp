// Conversations that outgrow the context: whole turns, tokens, and the middle of an answer.
#include "chat/context_fit.hpp"

#include "base/error.hpp"
#include "chat/chat_cases.hpp"

namespace quern::tests {

namespace {

using chat::ContextFit;
using chat::FitResult;
using chat::Message;
using engine::OverflowPolicy;

std::vector<Message> without_turns(const chat::Conversation& c, std::size_t n_turns) {
  std::vector<Message> messages = c.messages();
  messages.erase(messages.begin() + 1, messages.begin() + 1 + static_cast<std::ptrdiff_t>(2 * n_turns));
  return messages;
}

}  // namespace

TEST_CASE("policy error refuses, and names both numbers", "[overflow]") {
  ContextFit fit({OverflowPolicy::error, 0, 4}, 100);
  chat::Conversation c = chat_of(3);  // 8 + 3 * 28 + 1 = 93 tokens
  CHECK(fit.fit(c.messages(), 1, rendered).ids == rendered(c.messages()));
  c.add(said("user", "12345"));
  try {
    fit.fit(c.messages(), 1, rendered);
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    CHECK(std::string(error.what()).find("100 tokens, context is 100") != std::string::npos);
  }
  CHECK(fit.fit_answer(c.messages(), rendered(c.messages()), 0, rendered).ids.empty());
}

TEST_CASE("policy truncate drops the oldest whole turns after the system message", "[overflow]") {
  ContextFit fit({OverflowPolicy::truncate, 0, 4}, 200);
  chat::Conversation c = chat_of(6);  // 177 tokens
  FitResult result = fit.fit(c.messages(), 10, rendered);
  CHECK(result.ids == rendered(c.messages()));
  CHECK_FALSE(result.report);
  c.add(said("user", "another one"));  // 190: not with room for 11
  CHECK(fit.fit(c.messages(), 10, rendered).ids.size() == 190);
  result = fit.fit(c.messages(), 11, rendered);
  REQUIRE(result.report);
  CHECK(result.report->n_turns == 2);  // until a quarter is free
  CHECK(result.report->n_new == 56);
  CHECK(result.report->first == 9);  // the next user message opens like the dropped one
  CHECK(result.ids == rendered(without_turns(c, 2)));
  CHECK(engine::overflow_text(*result.report).find("dropped 56 tokens (the 2 oldest turns)") != std::string::npos);
  CHECK(fit.n_dropped_messages() == 4);

  // It grows: the same turns stay away, without a word, until it is full again.
  c.add(said("assistant", text_of(random_ids(12, 95, 90))));
  c.add(said("user", "so"));
  result = fit.fit(c.messages(), 11, rendered);
  CHECK_FALSE(result.report);
  CHECK(result.ids == rendered(without_turns(c, 2)));
  c.add(said("assistant", text_of(random_ids(50, 95, 91))));
  c.add(said("user", "so"));
  result = fit.fit(c.messages(), 11, rendered);
  REQUIRE(result.report);
  CHECK(result.report->n_dropped > result.report->n_new);
  CHECK(result.ids.size() <= 150);

  // An edit among the dropped turns, or a chat that fits again, brings them back.
  c.edit(2, "edited");
  result = fit.fit(c.messages(), 11, rendered);
  CHECK(result.report);
  CHECK(result.report->n_dropped == result.report->n_new);
  c.keep_first(5);
  result = fit.fit(c.messages(), 11, rendered);
  CHECK_FALSE(result.report);
  CHECK(result.ids == rendered(c.messages()));
  CHECK(fit.n_dropped_messages() == 0);
}

TEST_CASE("the last turn is never dropped: a message that cannot fit is refused", "[overflow]") {
  ContextFit fit({OverflowPolicy::truncate, 0, 4}, 100);
  chat::Conversation c = chat_of(4);
  c.add(said("user", std::string(95, 'x')));
  CHECK_THROWS_AS(fit.fit(c.messages(), 1, rendered), base::Error);
  c.undo();
  c.add(said("user", std::string(80, 'x')));  // fits, though not with a quarter free
  CHECK(fit.fit(c.messages(), 1, rendered).ids.size() == 91);
}

TEST_CASE("tools and answers go with the turn they belong to", "[overflow]") {
  ContextFit fit({OverflowPolicy::truncate, 0, 4}, 100);
  chat::Conversation c;
  c.set_system("s");
  for (int i = 0; i < 3; ++i) {
    c.add(said("user", std::string(10, 'u')));
    c.add(said("assistant", std::string(5, 'c')));
    c.add(said("tool", std::string(5, 't')));
    c.add(said("assistant", std::string(10, 'a')));
  }
  c.add(said("user", "end"));
  const FitResult result = fit.fit(c.messages(), 1, rendered);
  std::vector<Message> kept = c.messages();
  kept.erase(kept.begin() + 1, kept.begin() + 9);
  CHECK(result.ids == rendered(kept));
  CHECK(result.report->n_turns == 2);
}

TEST_CASE("an answer that fills the context drops turns and goes on", "[overflow]") {
  ContextFit fit({OverflowPolicy::truncate, 0, 4}, 100);
  chat::Conversation c = chat_of(2);
  c.add(said("user", "go on"));
  const Ids prompt = fit.fit(c.messages(), 1, rendered).ids;  // 8 + 56 + 7 + 1 = 72
  const Ids answer = random_ids(29, 95, 44);
  FitResult result = fit.fit_answer(c.messages(), joined_ids(prompt, answer), answer.size(), rendered);
  REQUIRE(result.report);
  CHECK(result.ids == joined_ids(rendered(without_turns(c, 1)), answer));
  // Until only the turn itself is left.
  const Ids longer = random_ids(57, 95, 45);
  result = fit.fit_answer(c.messages(), joined_ids(rendered(without_turns(c, 1)), longer), longer.size(), rendered);
  CHECK(result.ids == joined_ids(rendered(without_turns(c, 2)), longer));
  const Ids longest = random_ids(85, 95, 46);
  result = fit.fit_answer(c.messages(), joined_ids(rendered(without_turns(c, 2)), longest), longest.size(), rendered);
  CHECK(result.ids.empty());
}

TEST_CASE("shift and sinks drop tokens, in prompts and in answers alike", "[overflow]") {
  for (const OverflowPolicy policy : {OverflowPolicy::shift, OverflowPolicy::sinks}) {
    ContextFit fit({policy, 0, 4}, 100);
    fit.set_keep(8);  // the system message
    const std::size_t keep = policy == OverflowPolicy::shift ? 8 : 4;
    chat::Conversation c = chat_of(5);
    c.add(said("user", "go on"));
    const FitResult first = fit.fit(c.messages(), 5, rendered);
    REQUIRE(first.report);
    CHECK(first.report->first == keep);
    CHECK(first_ids(first.ids, keep) == first_ids(rendered(c.messages()), keep));
    const Ids answer = random_ids(101 - first.ids.size(), 95, 12);
    const FitResult middle = fit.fit_answer(c.messages(), joined_ids(first.ids, answer), answer.size(), rendered);
    REQUIRE(middle.report);
    // The next turn renders everything, and finds the same tokens dropped.
    c.add(said("assistant", text_of(answer)));
    c.add(said("user", "x"));
    const FitResult next = fit.fit(c.messages(), 5, rendered);
    CHECK_FALSE(next.report);
    CHECK(first_ids(next.ids, middle.ids.size()) == middle.ids);
  }
}

}  // namespace quern::tests
