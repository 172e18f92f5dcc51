// Lines of JSON -> questions.
#include <algorithm>
#include <initializer_list>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "eval/choices.hpp"

namespace quern::eval {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMostChoices = 256;

struct Labelled {
  std::vector<std::string> texts, labels;  // labels: empty without any
};

const Json* find_any(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto found = object.find(key); found != object.end()) return &*found;
  return nullptr;
}

const Json& need_any(const Json& object, std::initializer_list<const char*> keys, const std::string& where,
                     const char* what) {
  if (const Json* found = find_any(object, keys)) return *found;
  std::vector<std::string_view> names(keys.begin(), keys.end());
  base::reject(where, cat("no ", what), {}, cat("one of the keys ", base::join(names)));
}

std::string text_of(const Json& value, const std::string& where, const char* what) {
  if (!value.is_string()) base::reject(where, cat(what, " is not a text"), value.type_name(), "a string");
  return value.get<std::string>();
}

Labelled read_choices(const Json& value, const std::string& where) {
  Labelled out;
  if (value.is_object()) {  // {"text": [...], "label": [...]}
    const Json &texts = need_any(value, {"text"}, where, "text of the choices"),
               &labels = need_any(value, {"label"}, where, "label of the choices");
    if (!texts.is_array() || !labels.is_array() || texts.size() != labels.size())
      base::reject(where, "text and label of the choices are not two lists of one length");
    for (const Json& text : texts) out.texts.push_back(text_of(text, where, "a choice"));
    for (const Json& label : labels) out.labels.push_back(text_of(label, where, "a label"));
  } else {
    if (!value.is_array()) base::reject(where, "choices are not a list", value.type_name(), "a list");
    for (const Json& choice : value) {
      const bool labelled = choice.is_object();
      out.texts.push_back(text_of(labelled ? need_any(choice, {"text"}, where, "text of a choice") : choice, where, "a choice"));
      if (labelled) out.labels.push_back(text_of(need_any(choice, {"label"}, where, "label of a choice"), where, "a label"));
    }
    if (!out.labels.empty() && out.labels.size() != out.texts.size()) base::reject(where, "some choices have labels, others have none");
  }
  if (out.texts.size() < 2 || out.texts.size() > kMostChoices)
    base::reject(where, "wrong number of choices", cat(out.texts.size()), cat("2 to ", kMostChoices));
  return out;
}

std::size_t read_right(const Json& value, const Labelled& choices, const std::string& where) {
  const auto among = [&](const std::string& word) {
    return static_cast<std::size_t>(std::find(choices.labels.begin(), choices.labels.end(), word) - choices.labels.begin());
  };
  std::string word = value.is_string() ? value.get<std::string>() : value.is_number_integer() ? value.dump() : "";
  if (word.empty()) base::reject(where, "the right choice is neither a number nor a label", value.type_name());
  if (!choices.labels.empty()) {
    if (const std::size_t index = among(word); index < choices.labels.size()) return index;
    base::reject(where, "the right choice is none of the labels", base::printable(word, 40));
  }
  const bool digits = word.size() < 5 && word.find_first_not_of("0123456789") == std::string::npos;
  const std::size_t index = digits ? std::stoul(word) : choices.texts.size();
  if (index >= choices.texts.size())
    base::reject(where, "the right choice is out of range", base::printable(word, 40), cat("0 to ", choices.texts.size() - 1));
  return index;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

ChoiceQuestion parse_question(std::string_view line, const std::string& where) {
  const Json document = base::parse_json(line, where);
  if (!document.is_object()) base::reject(where, "not an object", document.type_name());
  ChoiceQuestion question;
  question.where = where;
  question.query = text_of(need_any(document, {"query", "ctx", "question"}, where, "text"), where, "the text");
  const Labelled choices = read_choices(need_any(document, {"choices", "endings"}, where, "choices"), where);
  question.choices = choices.texts;
  for (const std::string& choice : question.choices)
    if (choice.empty()) base::reject(where, "a choice is empty");
  question.right = read_right(need_any(document, {"gold", "label", "answer", "answerKey"}, where, "right choice"), choices, where);
  return question;
}

std::vector<ChoiceQuestion> parse_questions(std::string_view text, const std::string& where) {
  std::vector<ChoiceQuestion> questions;
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    if (!is_blank(row)) questions.push_back(parse_question(row, cat(where, ":", line)));
    at = end + 1;
  }
  if (questions.empty()) base::reject(where, "has no questions");
  return questions;
}

}  // namespace quern::eval
