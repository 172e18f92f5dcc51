#include "terminal/keys.hpp"

#include <array>
#include <optional>
#include <utility>

#include "text/stream_decoder.hpp"

namespace quern::terminal {

namespace {

constexpr char kEscape = '\x1b', kDelete = '\x7f';
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr std::size_t kMaxSequenceBytes = 32;

std::optional<Action> control_action(char byte) {
  switch (byte) {
    case 0x01: return Action::line_start;
    case 0x02: return Action::left;
    case 0x03: return Action::interrupt;
    case 0x04: return Action::delete_or_leave;
    case 0x05: return Action::line_end;
    case 0x06: return Action::right;
    case 0x07: return Action::open_editor;
    case 0x08: case kDelete: return Action::backspace;
    case 0x09: return Action::complete;
    case 0x0A: case 0x0D: return Action::accept;
    case 0x0B: return Action::kill_to_end;
    case 0x0C: return Action::clear_screen;
    case 0x0E: return Action::history_next;
    case 0x10: return Action::history_previous;
    case 0x12: return Action::search_back;
    case 0x14: return Action::transpose;
    case 0x15: return Action::kill_to_start;
    case 0x17: return Action::kill_word_left;
    case 0x19: return Action::yank;
    case 0x1A: return Action::suspend;
    case 0x1F: return Action::undo;
    default: return std::nullopt;
  }
}

std::optional<Action> meta_action(char byte) {
  switch (byte) {
    case 'b': case 'B': return Action::word_left;
    case 'f': case 'F': return Action::word_right;
    case 'd': case 'D': return Action::kill_word_right;
    case kDelete: case 0x08: return Action::rubout_word;
    case 'y': case 'Y': return Action::yank_older;
    case '<': return Action::history_first;
    case '>': return Action::history_last;
    case '\r': case '\n': return Action::newline;
    default: return std::nullopt;
  }
}

// Keys that end in a letter: "C", or "1;5C" with a modifier (3 and above hold Alt or Control).
std::optional<Action> letter_action(char final, bool by_word) {
  switch (final) {
    case 'A': return Action::up;
    case 'B': return Action::down;
    case 'C': return by_word ? Action::word_right : Action::right;
    case 'D': return by_word ? Action::word_left : Action::left;
    case 'H': return Action::line_start;
    case 'F': return Action::line_end;
    default: return std::nullopt;
  }
}

std::optional<Action> tilde_action(std::string_view key, bool by_word) {
  if (key == "1" || key == "7") return Action::line_start;
  if (key == "4" || key == "8") return Action::line_end;
  if (key == "3") return by_word ? Action::kill_word_right : Action::delete_char;
  return std::nullopt;
}

bool held(std::string_view modifier) {
  return modifier.size() == 1 && modifier[0] >= '3' && modifier[0] <= '8';
}

// Line ends as \n; other control characters but tabs are gone, so no paste can act as keys.
std::string clean_paste(std::string_view pasted) {
  std::string out;
  for (std::size_t i = 0; i < pasted.size(); ++i) {
    const char c = pasted[i];
    if (c == '\r') {
      if (i + 1 == pasted.size() || pasted[i + 1] != '\n') out += '\n';
    } else if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != kDelete)) {
      out += c;
    }
  }
  return text::utf8_lossy(out);
}

}  // namespace

std::vector<KeyEvent> KeyDecoder::push(std::string_view bytes) {
  events_.clear();
  for (const char byte : bytes) {
    switch (state_) {
      case State::plain: plain(byte); break;
      case State::escape: after_escape(byte); break;
      case State::control_sequence: case State::single_shift: sequence(byte); break;
      case State::paste: pasted(byte); break;
    }
  }
  return std::exchange(events_, {});
}

std::vector<KeyEvent> KeyDecoder::escape_timeout() {
  if (state_ != State::escape) return {};
  state_ = State::plain;
  return {{Action::escape, {}}};
}

void KeyDecoder::plain(char byte) {
  if (needed_ > 0) return character(byte);
  if (byte == kEscape) {
    state_ = State::escape;
  } else if (const auto action = control_action(byte)) {
    emit(*action);
  } else if (static_cast<unsigned char>(byte) >= 0x20) {
    character(byte);
  }
}

// One byte of a UTF-8 character; a broken one becomes U+FFFD and its successor starts afresh.
void KeyDecoder::character(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  const bool continues = (value & 0xC0u) == 0x80u;
  if (needed_ > 0 && !continues) {
    needed_ = 0;
    pending_.clear();
    emit(Action::insert, "\xEF\xBF\xBD");
    return plain(byte);
  }
  if (needed_ == 0) needed_ = value < 0xC0 ? 1 : value < 0xE0 ? 2 : value < 0xF0 ? 3 : 4;
  pending_ += byte;
  if (pending_.size() < needed_) return;
  needed_ = 0;
  emit(Action::insert, text::utf8_lossy(std::exchange(pending_, {})));
}

void KeyDecoder::after_escape(char byte) {
  if (byte == kEscape) return;
  pending_.clear();
  state_ = byte == '[' ? State::control_sequence : byte == 'O' ? State::single_shift : State::plain;
  if (state_ != State::plain) return;
  if (const auto action = meta_action(byte)) emit(*action);
}

void KeyDecoder::sequence(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  if (value >= 0x20 && value < 0x40 && pending_.size() < kMaxSequenceBytes) {
    pending_ += byte;
    return;
  }
  state_ = State::plain;
  if (value >= 0x40 && value < 0x7F)
    finish_sequence(byte);
  else if (value < 0x20 || value == 0x7F)
    plain(byte);  // a sequence that was broken off
}

void KeyDecoder::finish_sequence(char final) {
  const std::string parameters = std::exchange(pending_, {});
  const std::size_t semicolon = parameters.find(';');
  const std::string_view key = std::string_view(parameters).substr(0, semicolon);
  const std::string_view modifier =
      semicolon == std::string::npos ? std::string_view() : std::string_view(parameters).substr(semicolon + 1);
  if (final == '~' && key == "200") {
    state_ = State::paste;
    return;
  }
  // Shift-Enter and its like, as terminals with extended keys send them.
  if ((final == 'u' && key == "13") || (final == '~' && key == "27" && modifier.ends_with(";13")))
    return emit(Action::newline);
  const auto action = final == '~' ? tilde_action(key, held(modifier)) : letter_action(final, held(modifier));
  if (action) emit(*action);
}

void KeyDecoder::pasted(char byte) {
  pending_ += byte;
  // Beyond the limit only what may be the closing bracket is kept.
  if (pending_.size() > kMaxPasteBytes + kPasteEnd.size()) pending_.erase(kMaxPasteBytes, 1);
  if (byte != '~' || !pending_.ends_with(kPasteEnd)) return;
  pending_.resize(pending_.size() - kPasteEnd.size());
  state_ = State::plain;
  emit(Action::paste, clean_paste(std::exchange(pending_, {})));
}

}  // namespace quern::terminal
