// From the texts of tokens to text, by the decoder steps of the contract's tokenizer section
// (docs/CONTRACT.md lists them), token by token: what a step cannot know yet it holds back. Not
// here: incomplete UTF-8 (text/stream_decoder.hpp), ids (text/text_stream.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

// One step at work on one text. Every step gets the pieces that the step before it gives.
class DecoderStage {
 public:
  using Sink = std::function<void(std::string piece)>;
  virtual ~DecoderStage() = default;
  virtual std::unique_ptr<DecoderStage> fresh() const = 0;  // at the start of a text
  virtual void push(std::string piece, const Sink& sink) = 0;
  virtual void finish(const Sink&) {}
};

class Decoder {
 public:
  // tokens_are_bytes: texts of tokens are bytes already, not spelled in the byte alphabet. Input
  // errors quote an unknown step.
  Decoder(const std::vector<std::string>& steps, bool tokens_are_bytes, std::string_view where);

  class Stream {
   public:
    explicit Stream(const Decoder& decoder);
    std::string push(std::string_view token);
    std::string finish();

   private:
    void push_from(std::size_t index, std::string piece, std::string& out);
    std::vector<std::unique_ptr<DecoderStage>> stages_;
  };

 private:
  std::vector<std::unique_ptr<DecoderStage>> stages_;
};

}  // namespace quern::text
