#include "text/normalizer.hpp"

#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/byte_alphabet.hpp"
#include "text/char_steps.hpp"
#include "text/normal_forms.hpp"
#include "text/regex.hpp"
#include "text/step_spelling.hpp"
#include "text/unicode.hpp"

namespace quern::text {

namespace {

using Result = Normalizer::Result;
using Plain = void (*)(Result&);

template <NormalForm form>
void to_form(Result& r) {
  r.text = normal_form(r.text, form);
}

template <auto filter>
void filtered(Result& r) {
  r.text = filter(r.text, r.start_kept);
}

template <auto map>
void mapped(Result& r) {
  r.text = map(r.text);
}

void on_left(Result& r) {
  const std::size_t before = r.text.size();
  r.text = std::string(strip_left(r.text));
  r.start_kept = r.start_kept && r.text.size() == before;
}

void on_right(Result& r) {
  r.text.resize(strip_right(r.text).size());
}

void without_marks(Result& r) {
  r.text = drop_marks(normal_form(r.text, NormalForm::nfd), r.start_kept);
}

struct NamedStep {
  std::string_view name;
  Plain run;
};
constexpr NamedStep kSteps[] = {
    {"nfc", to_form<NormalForm::nfc>},
    {"nfd", to_form<NormalForm::nfd>},
    {"nfkc", to_form<NormalForm::nfkc>},
    {"nfkd", to_form<NormalForm::nfkd>},
    {"lowercase", mapped<lowercase>},
    {"strip_accents", filtered<strip_accents>},
    {"strip_marks", without_marks},
    {"strip_left", on_left},
    {"strip_right", on_right},
    {"clean_text", filtered<clean_text>},
    {"space_ideographs", mapped<space_ideographs>},
    {"nmt", filtered<nmt_clean>},
    {"byte_alphabet", mapped<bytes_to_alphabet>},
};

// One character at most, so that what takes its place stands where it stood.
bool is_one_char(std::string_view text) {
  return !text.empty() && decode_char(text, 0).bytes == text.size();
}

void note_start(Result& r, std::size_t begin, std::string_view match, std::string_view to) {
  if (begin == 0 && (to.empty() || !is_one_char(match))) r.start_kept = false;
}

void replace_text(Result& r, const std::string& from, const std::string& to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t hit; (hit = r.text.find(from, at)) != std::string::npos;
       at = hit + from.size()) {
    note_start(r, hit, from, to);
    out.append(r.text, at, hit - at).append(to);
  }
  r.text = out.append(r.text, at);
}

void replace_matches(Result& r, const Regex& regex, const std::string& to) {
  std::string out;
  regex.split(r.text, [&](std::size_t begin, std::size_t end, bool matched) {
    const std::string_view piece = std::string_view(r.text).substr(begin, end - begin);
    if (matched) note_start(r, begin, piece, to);
    out += matched ? std::string_view(to) : piece;
  });
  r.text = std::move(out);
}

}  // namespace

Normalizer::Step Normalizer::parse_sentencepiece(std::string_view options) const {
  bool prefix = false, trim = false;
  while (!options.empty()) {
    bool& flag = options.starts_with("-prefix") ? prefix : trim;
    const std::string_view word = &flag == &prefix ? "-prefix" : "-trim";
    if (flag || !options.starts_with(word)) return {};
    flag = true;
    options.remove_prefix(word.size());
  }
  return [shared = shared_, prefix, trim](Result& r) {
    const SentencepieceRules rules{shared->charsmap.get(), shared->user_defined, prefix, trim};
    r.text = apply_sentencepiece(rules, r.text);
  };
}

Normalizer::Step Normalizer::parse(const std::string& step, std::string_view where) const {
  constexpr std::string_view kSentencepiece = "sentencepiece";
  for (const NamedStep& entry : kSteps)
    if (entry.name == step) return entry.run;
  if (const auto text = step_text(step, "prepend"))
    return [text = *text](Result& r) {
      if (!r.text.empty()) r.text.insert(0, text);
    };
  if (const auto fields = step_fields(step, "replace", 2); fields && !fields->front().empty())
    return [f = *fields](Result& r) { replace_text(r, f[0], f[1]); };
  if (const auto fields = step_fields(step, "replace_regex", 2))
    return [regex = std::make_shared<const Regex>((*fields)[0], where),
            to = (*fields)[1]](Result& r) { replace_matches(r, *regex, to); };
  if (step == "charsmap") {
    if (shared_->charsmap == nullptr) base::reject(where, "the tables have no character map");
    return [shared = shared_](Result& r) { r.text = apply_charsmap(*shared->charsmap, r.text); };
  }
  if (step.starts_with(kSentencepiece))
    if (Step made = parse_sentencepiece(std::string_view(step).substr(kSentencepiece.size())))
      return made;
  base::reject(where, "unknown normalizer step", base::printable(step),
               "nfc, nfd, nfkc, nfkd, lowercase, strip_accents, strip_marks, strip_left, "
               "strip_right, clean_text, space_ideographs, nmt, byte_alphabet, prepend:TEXT, "
               "replace/FROM/TO/, replace_regex/PATTERN/TO/, charsmap or "
               "sentencepiece[-prefix][-trim]");
}

Normalizer::Normalizer(const std::vector<std::string>& steps, std::string_view where,
                       std::string_view charsmap, std::vector<AddedEntry> user_defined) {
  constexpr std::size_t kMostSteps = 64;
  if (steps.size() > kMostSteps)
    base::reject(where, "too many normalizer steps", base::cat(steps.size()));
  shared_ = std::make_shared<const Shared>(
      Shared{charsmap.empty() ? nullptr : std::make_unique<Charsmap>(charsmap, where),
             AddedMatcher(std::move(user_defined))});
  for (const std::string& step : steps) steps_.push_back(parse(step, where));
}

Normalizer::Result Normalizer::run(std::string_view text) const {
  Result result{std::string(text), true};
  for (const Step& step : steps_) step(result);
  return result;
}

std::string replace_step(std::string_view from, std::string_view to) {
  return spell_step("replace", {from, to});
}

}  // namespace quern::text
