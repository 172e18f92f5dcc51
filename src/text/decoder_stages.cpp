#include "text/decoder_stages.hpp"

#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/byte_alphabet.hpp"
#include "text/regex.hpp"
#include "text/step_spelling.hpp"
#include "text/unicode.hpp"

namespace quern::text {

namespace {

using Made = std::unique_ptr<DecoderStage>;

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::size_t most = std::string_view::npos) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t hit; most-- > 0 && (hit = text.find(from, at)) != std::string_view::npos;
       at = hit + from.size())
    out.append(text, at, hit - at).append(to);
  return out.append(text.substr(at));
}

// A step whose work on a token depends on the token alone, and on whether it is the first.
class MapStage : public DecoderStage {
 public:
  using Map = std::function<std::string(std::string piece, bool first)>;
  explicit MapStage(Map map) : map_(std::move(map)) {}
  Made fresh() const override { return std::make_unique<MapStage>(map_); }
  void push(std::string piece, const Sink& sink) override {
    sink(map_(std::move(piece), first_));
    first_ = false;
  }

 private:
  Map map_;
  bool first_ = true;
};

Made map_stage(MapStage::Map map) {
  return std::make_unique<MapStage>(std::move(map));
}

// Another step, once the whole text is there.
class WholeStage : public DecoderStage {
 public:
  explicit WholeStage(Made inner) : inner_(std::move(inner)) {}
  Made fresh() const override { return std::make_unique<WholeStage>(inner_->fresh()); }
  void push(std::string piece, const Sink&) override { text_ += piece; }
  void finish(const Sink& sink) override {
    inner_->push(std::move(text_), sink);
    inner_->finish(sink);
  }

 private:
  Made inner_;
  std::string text_;
};

// "<0x0A>", by the reference's reading of hexadecimal ("+A" counts).
std::optional<char> byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  std::string_view digits = piece.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);
  unsigned value = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(value);
}

// Runs of byte tokens; a run is text when it has ended.
class ByteStage : public DecoderStage {
 public:
  // whole: one U+FFFD for each byte of a run that is not UTF-8 throughout, else only for the bytes
  // that are not.
  explicit ByteStage(bool whole) : whole_(whole) {}
  Made fresh() const override { return std::make_unique<ByteStage>(whole_); }
  void push(std::string piece, const Sink& sink) override {
    if (const auto byte = byte_of(piece)) {
      run_ += *byte;
      return;
    }
    finish(sink);
    sink(std::move(piece));
  }
  void finish(const Sink& sink) override {
    if (run_.empty()) return;
    const std::size_t valid = valid_utf8_prefix(run_, 0);
    if (valid == run_.size()) {
      sink(std::move(run_));
    } else if (whole_) {
      for (std::size_t i = 0; i < run_.size(); ++i) sink(std::string(kReplacement));
    } else {
      for (std::size_t at = 0; at < run_.size();) {
        const Char c = decode_char(run_, at);
        sink(c.code == Char::kInvalid ? std::string(kReplacement) : run_.substr(at, c.bytes));
        at += c.bytes;
      }
    }
    run_.clear();
  }

 private:
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  bool whole_;
  std::string run_;
};

struct StripRule {
  std::string content;  // one character
  std::size_t start, stop;
};

std::string stripped(std::string_view text, const StripRule& rule) {
  for (std::size_t n = 0; n < rule.start && text.starts_with(rule.content); ++n)
    text.remove_prefix(rule.content.size());
  for (std::size_t n = 0; n < rule.stop && text.ends_with(rule.content); ++n)
    text.remove_suffix(rule.content.size());
  return std::string(text);
}

// The same over chunks of one text: what may be the end is held back.
class StripStage : public DecoderStage {
 public:
  explicit StripStage(StripRule rule) : rule_(std::move(rule)), left_(rule_.start) {}
  Made fresh() const override { return std::make_unique<StripStage>(rule_); }
  void push(std::string piece, const Sink& sink) override {
    std::string_view text = piece;
    for (; left_ > 0 && text.starts_with(rule_.content); --left_)
      text.remove_prefix(rule_.content.size());
    if (text.empty()) return;
    left_ = 0;
    std::size_t trailing = 0;
    std::string_view body = text;
    for (; rule_.stop > 0 && body.ends_with(rule_.content); ++trailing)
      body.remove_suffix(rule_.content.size());
    if (!body.empty()) {
      sink(held(held_) + std::string(body));
      held_ = 0;
    }
    held_ += trailing;
  }
  void finish(const Sink& sink) override {
    if (held_ > rule_.stop) sink(held(held_ - rule_.stop));
    held_ = 0;
  }

 private:
  std::string held(std::size_t count) const {
    std::string out;
    for (; count > 0; --count) out += rule_.content;
    return out;
  }
  StripRule rule_;
  std::size_t left_, held_ = 0;
};

// The end of a word becomes a space, in the last token nothing: one token is held back.
class WordEndStage : public DecoderStage {
 public:
  explicit WordEndStage(std::string suffix) : suffix_(std::move(suffix)) {}
  Made fresh() const override { return std::make_unique<WordEndStage>(suffix_); }
  void push(std::string piece, const Sink& sink) override {
    if (held_) sink(replaced(*held_, suffix_, " "));
    held_ = std::move(piece);
  }
  void finish(const Sink& sink) override {
    if (held_) sink(replaced(*held_, suffix_, ""));
    held_.reset();
  }

 private:
  std::string suffix_;
  std::optional<std::string> held_;
};

// A mark becomes a space; in front of the text one, or as many tokens as are marks, is dropped.
class FirstSpaceStage : public DecoderStage {
 public:
  FirstSpaceStage(std::string mark, bool all) : mark_(std::move(mark)), all_(all) {}
  Made fresh() const override { return std::make_unique<FirstSpaceStage>(mark_, all_); }
  void push(std::string piece, const Sink& sink) override {
    if (at_start_ && piece.starts_with(mark_)) {
      piece.erase(0, mark_.size());
      at_start_ = all_;
    }
    at_start_ = at_start_ && piece.empty();
    sink(replaced(piece, mark_, " "));
  }

 private:
  std::string mark_;
  bool all_, at_start_ = true;
};

std::string cleaned_up(std::string text) {
  constexpr std::string_view kRules[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                            {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                            {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                            {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& rule : kRules) text = replaced(text, rule[0], rule[1]);
  return text;
}

std::string word_piece(std::string piece, bool first, const std::string& prefix, bool cleanup) {
  if (!first) {
    if (piece.starts_with(prefix)) {
      piece.erase(0, prefix.size());
    } else {
      piece.insert(0, 1, ' ');
    }
  }
  return cleanup ? cleaned_up(std::move(piece)) : piece;
}

std::optional<std::size_t> count_of(std::string_view text) {
  std::size_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

Made strip_stage(std::string_view step, bool fused) {
  const auto fields = step_fields(step, "strip", 3);
  if (!fields || fields->front().empty()) return nullptr;
  const auto start = count_of((*fields)[1]), stop = count_of((*fields)[2]);
  if (!start || !stop) return nullptr;
  StripRule rule{(*fields)[0], *start, *stop};
  if (fused) return std::make_unique<StripStage>(std::move(rule));
  return map_stage(
      [rule = std::move(rule)](std::string piece, bool) { return stripped(piece, rule); });
}

Made replace_stage(std::string_view step, std::string_view where) {
  if (const auto fields = step_fields(step, "replace", 2); fields && !fields->front().empty())
    return map_stage(
        [f = *fields](std::string piece, bool) { return replaced(piece, f[0], f[1]); });
  if (const auto fields = step_fields(step, "whole", 2))
    return map_stage([from = fields->front(), to = fields->back()](std::string piece, bool) {
      if (std::string_view(piece) == std::string_view(from)) piece.assign(to);
      return piece;
    });
  const auto fields = step_fields(step, "replace_regex", 2);
  if (!fields) return nullptr;
  return map_stage([regex = std::make_shared<const Regex>((*fields)[0], where), to = (*fields)[1]](
                       std::string piece, bool) {
    std::string out;
    regex->split(piece, [&](std::size_t begin, std::size_t end, bool matched) {
      if (matched) {
        out += to;
      } else {
        out.append(piece, begin, end - begin);
      }
    });
    return out;
  });
}

Made mark_stage(std::string_view step) {
  for (const bool never : {false, true})
    if (const auto mark = step_text(step, never ? "metaspace-never" : "metaspace");
        mark && !mark->empty())
      return map_stage([mark = *mark, never](std::string piece, bool first) {
        return replaced(piece, mark, first && !never ? "" : " ");
      });
  for (const bool all : {false, true})
    if (const auto mark = step_text(step, all ? "first_space-all" : "first_space-one");
        mark && !mark->empty())
      return std::make_unique<FirstSpaceStage>(*mark, all);
  return nullptr;
}

Made word_stage(std::string_view step) {
  for (const bool cleanup : {false, true})
    if (const auto fields = step_fields(step, cleanup ? "word_pieces-cleanup" : "word_pieces", 1))
      return map_stage([prefix = fields->front(), cleanup](std::string piece, bool first) {
        return word_piece(std::move(piece), first, prefix, cleanup);
      });
  if (const auto fields = step_fields(step, "word_ends", 1); fields && !fields->front().empty())
    return std::make_unique<WordEndStage>(fields->front());
  return nullptr;
}

Made named_stage(std::string_view step, bool tokens_are_bytes) {
  if (step == "byte_fallback") return std::make_unique<ByteStage>(true);
  if (step == "byte_runs") return std::make_unique<ByteStage>(false);
  if (step == "fuse") return map_stage([](std::string piece, bool) { return piece; });
  if (step == "join_spaces")
    return map_stage([](std::string piece, bool first) { return first ? piece : " " + piece; });
  if (step != "byte_level") return nullptr;
  return map_stage([tokens_are_bytes](std::string piece, bool) {
    return tokens_are_bytes ? piece : alphabet_to_bytes(piece).value_or(piece);
  });
}

}  // namespace

Made make_decoder_stage(std::string_view step, bool fused, bool tokens_are_bytes,
                        std::string_view where) {
  const auto from_steps = [&]() -> Made {
    if (auto made = named_stage(step, tokens_are_bytes)) return made;
    if (auto made = strip_stage(step, fused)) return made;
    if (auto made = replace_stage(step, where)) return made;
    if (auto made = mark_stage(step)) return made;
    return word_stage(step);
  };
  Made made = from_steps();
  if (made == nullptr)
    base::reject(where, "unknown decoder step", base::printable(step),
                 "byte_level, byte_fallback, byte_runs, fuse, join_spaces, strip/CHAR/N/M/, "
                 "replace/FROM/TO/, replace_regex/PATTERN/TO/, whole/FROM/TO/, metaspace:CHAR, "
                 "metaspace-never:CHAR, first_space-one:CHAR, first_space-all:CHAR, "
                 "word_pieces/PREFIX/, word_pieces-cleanup/PREFIX/ or word_ends/SUFFIX/");
  const bool by_chunk = step == "fuse" || step == "byte_level" || step.starts_with("strip");
  return fused && !by_chunk ? std::make_unique<WholeStage>(std::move(made)) : std::move(made);
}

bool decoder_step_fuses(std::string_view step) {
  return step == "fuse" || step == "byte_level";
}

}  // namespace quern::text
