// Texts that an answer must not come to hold, however it is cut into tokens: a token is forbidden
// when it would complete one after what was generated so far. Nothing is taken back, so what was
// printed stays; the price is that another token may follow the beginning of a banned text. Which
// tokens complete what is found once per vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quern::sampling {

class BannedTexts {
 public:
  // texts: the bytes that each id adds to an answer. Usage errors for an empty banned text and for
  // more than 10,000 of them or 1 MiB.
  BannedTexts(std::span<const std::string> banned, std::vector<std::string> texts);

  void restart();                 // an answer begins
  void accept(std::int32_t id);   // it goes on
  // -infinity for every id that would complete a banned text.
  void apply(std::span<float> row) const;

 private:
  struct Banned {
    std::string text;
    std::vector<std::uint32_t> shorter;  // of its beginning of length n: the longest that ends it too
    // completing[n]: ids that complete it where its first n bytes are there; [0]: that hold it.
    std::vector<std::vector<std::int32_t>> completing;
    std::size_t matched = 0;  // bytes of it that end the answer so far
  };
  static Banned prepare(const std::string& text);
  void find_completing();

  std::vector<std::string> texts_;
  std::vector<Banned> banned_;
};

}  // namespace quern::sampling
