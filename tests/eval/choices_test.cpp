// Questions from lines of JSON, and ids of choices split into what they share and what they do not.
#include "eval/choices.hpp"

#include "base/error.hpp"
#include "catch.hpp"

namespace quern::tests {

TEST_CASE("questions in the forms of hellaswag, ARC and others", "[eval]") {
  const auto read = [](const char* line) { return eval::parse_question(line, "file:1"); };
  const eval::ChoiceQuestion plain = read(R"({"query": "q", "choices": ["a", "b"], "gold": 1})");
  CHECK(plain.query == "q");
  CHECK(plain.choices == std::vector<std::string>{"a", "b"});
  CHECK(plain.right == 1);
  CHECK(read(R"({"ctx": "c", "endings": ["a", "b", "c", "d"], "label": "3", "ind": 4})").right == 3);
  CHECK(read(R"({"question": "c", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "B"})").right == 1);
  CHECK(read(R"({"question": "c", "choices": [{"text": "a", "label": "1"}, {"text": "b", "label": "2"}], "answer": "1"})").right == 0);
}

TEST_CASE("what is wrong with a question is said with its line", "[eval]") {
  for (const char* line : {"{", "[]", "{}", R"({"query": 1, "choices": ["a", "b"], "gold": 0})",
                           R"({"query": "q", "gold": 0})", R"({"query": "q", "choices": ["a"], "gold": 0})",
                           R"({"query": "q", "choices": ["a", ""], "gold": 0})", R"({"query": "q", "choices": ["a", "b"]})",
                           R"({"query": "q", "choices": ["a", "b"], "gold": 2})", R"({"query": "q", "choices": ["a", "b"], "gold": -1})",
                           R"({"query": "q", "choices": ["a", "b"], "gold": 0.5})", R"({"query": "q", "choices": ["a", "b"], "gold": "99999999999"})",
                           R"({"query": "q", "choices": {"text": ["a", "b"], "label": ["A"]}, "gold": "A"})",
                           R"({"query": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "gold": "C"})"}) {
    INFO(line);
    const std::string text = std::string("\n\n") + line + "\n";
    try {
      eval::parse_questions(text, "file");
      FAIL("no error");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
      CHECK(std::string(error.what()).find("file:3") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(eval::parse_questions("\n \n", "file"), base::Error);
}

TEST_CASE("the shared prefix ends where the text does, or before where the choices' tokens differ", "[eval]") {
  const eval::ChoiceIds plain = eval::split_choices({{1, 2, 3, 4}, {1, 2, 3, 5, 6}}, 2);
  CHECK(plain.prefix == std::vector<std::int32_t>{1, 2});
  CHECK(plain.continuations[1] == std::vector<std::int32_t>{3, 5, 6});
  CHECK(plain.scored == std::vector<std::size_t>{0, 0});
  // The text's last token merged with what follows in one of them.
  const eval::ChoiceIds merged = eval::split_choices({{1, 9, 4}, {1, 2, 3, 5}}, 3);
  CHECK(merged.prefix == std::vector<std::int32_t>{1});
  CHECK(merged.scored == std::vector<std::size_t>{1, 2});
  // Every continuation keeps a token.
  CHECK(eval::split_choices({{1, 2}, {1, 2, 3}}, 2).continuations[0].size() == 1);
}

TEST_CASE("acc and acc_norm", "[eval]") {
  eval::ChoiceReport report;
  eval::ChoiceIds item;
  item.lengths = {10, 2};
  item.right = 0;
  const std::vector<double> scores = {-5, -3};
  eval::add_choice(report, item, scores);
  CHECK(report.acc.mean() == 0);
  CHECK(report.acc_norm.mean() == 1);
}

}  // namespace quern::tests
