#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "engine/drafter.hpp"

namespace quern::engine {

namespace {

using Ids = std::span<const std::int32_t>;

class NgramDrafter : public Drafter {
 public:
  explicit NgramDrafter(const NgramOptions& options) : shortest_(options.shortest) {
    QUERN_ASSERT(options.shortest > 0 && options.shortest <= options.longest);
    last_.resize(options.longest - options.shortest + 1);
  }

  Ids draft(Ids text, std::size_t n) override {
    follow(text);
    guesses_.clear();
    for (std::size_t i = last_.size(); i > 0 && guesses_.empty(); --i)
      if (const std::size_t next = place_after(text, i - 1); next != 0) copy(text, next, n);
    return guesses_;
  }
  bool cheap() const override { return true; }
  std::string name() const override { return "ngram"; }

 private:
  static std::uint64_t key(Ids ids) { return base::xxh3(std::as_bytes(ids)); }

  // Remembers where each run of tokens ended last, but for the end of the text itself: nothing follows it yet.
  void follow(Ids text) {
    if (text.size() < text_.size() || !std::equal(text_.begin(), text_.end(), text.begin())) {
      text_.clear();
      for (auto& last : last_) last.clear();
    }
    for (std::size_t next = std::max<std::size_t>(text_.size(), 1); next < text.size(); ++next)
      for (std::size_t i = 0; i < last_.size() && shortest_ + i <= next; ++i)
        last_[i][key(text.subspan(next - shortest_ - i, shortest_ + i))] = static_cast<std::uint32_t>(next);
    text_.insert(text_.end(), text.begin() + static_cast<std::ptrdiff_t>(text_.size()), text.end());
  }

  // The position behind the last earlier place of the text's end of shortest + i tokens; 0: there is none.
  std::size_t place_after(Ids text, std::size_t i) const {
    const std::size_t n = shortest_ + i;
    if (text.size() <= n) return 0;
    const auto found = last_[i].find(key(text.last(n)));
    if (found == last_[i].end()) return 0;
    const std::size_t next = found->second;
    return std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(next - n))
               ? next
               : 0;
  }

  // What stands from `next` on; behind the end of the text it goes on as it just did.
  void copy(Ids text, std::size_t next, std::size_t n) {
    for (std::size_t i = next; i < next + n; ++i)
      guesses_.push_back(i < text.size() ? text[i] : guesses_[i - text.size()]);
  }

  std::size_t shortest_;
  std::vector<std::int32_t> text_, guesses_;  // text_: what the tables know
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> last_;  // per length, from the shortest
};

}  // namespace

std::unique_ptr<Drafter> ngram_drafter(const NgramOptions& options) {
  return std::make_unique<NgramDrafter>(options);
}

}  // namespace quern::engine
