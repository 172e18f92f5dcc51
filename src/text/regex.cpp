#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/unicode.hpp"

namespace quern::text {

namespace {

// Backtracking bounds: high enough for white-space runs and single words of many megabytes; memory
// is what limits (heap limit in KiB), so that a pattern that explodes ends in an error, not in a
// dead machine.
constexpr std::uint32_t kMatchLimit = 2'000'000'000;
constexpr std::uint32_t kHeapLimitKib = 1u << 20;
constexpr std::size_t kJitStackStart = 32 * 1024;
constexpr std::size_t kJitStackMost = 64 * 1024 * 1024;
constexpr std::size_t kMostPatternBytes = 64 * 1024;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string message_of(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Program {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool jit = false;
};

struct Regex::Search::Scratch {
  std::unique_ptr<pcre2_match_data, FreeData> data;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack;
};

Regex::Regex(std::string_view pattern, std::string_view where)
    : program_(std::make_unique<Program>()), pattern_(pattern) {
  if (pattern.size() > kMostPatternBytes)
    base::reject(where, "regex too long", base::cat(pattern.size(), " bytes"));
  const std::string translated = translate_pattern(pattern, where);
  int error = 0;
  PCRE2_SIZE offset = 0;
  program_->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
  if (program_->code == nullptr)
    base::reject(where, base::cat("regex not supported: ", message_of(error)),
                 base::printable(pattern, 250));
  program_->jit = pcre2_jit_compile(program_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), scratch_(std::make_unique<Scratch>()) {
  scratch_->data.reset(pcre2_match_data_create_from_pattern(regex.program_->code.get(), nullptr));
  scratch_->context.reset(pcre2_match_context_create(nullptr));
  if (scratch_->data == nullptr || scratch_->context == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(scratch_->context.get(), kMatchLimit);
  pcre2_set_depth_limit(scratch_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(scratch_->context.get(), kHeapLimitKib);
  segment_end_ = valid_utf8_prefix(text, 0);
}

Regex::Search::~Search() = default;

// The text is searched in its valid UTF-8 segments, each checked once: letting PCRE2 check it would
// cost a pass over the rest of the text at every match.
bool Regex::Search::next() {
  while (!next_in_segment()) {
    if (segment_end_ >= text_.size()) return false;
    segment_begin_ = at_ = segment_end_ + 1;
    segment_end_ = at_ + valid_utf8_prefix(text_, at_);
  }
  return true;
}

bool Regex::Search::next_in_segment() {
  while (at_ < segment_end_) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data() + segment_begin_);
    const std::size_t size = segment_end_ - segment_begin_;
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(regex_.program_->code.get(), subject, size, at_ - segment_begin_, options,
                         scratch_->data.get(), scratch_->context.get());
    };
    int result = match(PCRE2_NO_UTF_CHECK);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && scratch_->stack == nullptr) {
      scratch_->stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
      pcre2_jit_stack_assign(scratch_->context.get(), nullptr, scratch_->stack.get());
      result = match(PCRE2_NO_UTF_CHECK);
    }
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) {
      at_ = segment_end_;
      return false;
    }
    if (result < 0)
      base::reject("pre-tokenizer", base::cat("regex gave up: ", message_of(result)),
                   base::printable(regex_.pattern_, 200));
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(scratch_->data.get());
    begin = segment_begin_ + span[0];
    end = segment_begin_ + span[1];
    if (end > begin && begin >= at_) {
      at_ = end;
      return true;
    }
    at_ = std::max(at_, begin);  // an empty match: go on behind the next character
    if (at_ < segment_end_) at_ += decode_char(text_, at_).bytes;
  }
  return false;
}

}  // namespace quern::text
