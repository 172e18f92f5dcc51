// The steps of a decoder.
#pragma once

#include <memory>
#include <string_view>

#include "text/decoder.hpp"

namespace quern::text {

// fused: the step gets one text in chunks instead of tokens. An input error quotes an unknown step.
std::unique_ptr<DecoderStage> make_decoder_stage(std::string_view step, bool fused,
                                                 bool tokens_are_bytes, std::string_view where);

// Whether the step makes one text of its tokens.
bool decoder_step_fuses(std::string_view step);

}  // namespace quern::text
