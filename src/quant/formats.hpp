// THE LIST of weight formats. A new format = its own header + its line here
// (docs/ADDING_A_FORMAT.md).
#pragma once

#include <span>
#include <string_view>

#include "quant/bf16.hpp"
#include "quant/f16.hpp"
#include "quant/f32.hpp"
#include "quant/f8_e4m3.hpp"
#include "quant/format.hpp"
#include "quant/int_groups.hpp"
#include "quant/mxfp4.hpp"
#include "quant/q4.hpp"
#include "quant/q4_0.hpp"
#include "quant/q4_1.hpp"
#include "quant/q4_k.hpp"
#include "quant/q5_0.hpp"
#include "quant/q5_1.hpp"
#include "quant/q5_k.hpp"
#include "quant/q6_k.hpp"
#include "quant/q8.hpp"

namespace quern::quant {

template <class... T>
struct FormatList {};
using Formats = FormatList<F32, Bf16, F16, Q8, Q4, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, Mxfp4, Int4G32,
                           Int4G64, Int4G128, Int4F32, Int8G32, Int8G128, F8E4M3>;

// Position of a format in the list (the index of the kernel tables), kFormatCount for rows_f32.
inline constexpr std::size_t kFormatCount = 20;
std::size_t format_index(FormatId id);

std::span<const FormatTraits> all_formats();   // without rows_f32, in list order
const FormatTraits* find_format(FormatId id);  // nullptr when unknown; knows rows_f32
// Types a user can name; case-insensitive; nullptr when unknown (rows_f32 is not a user's choice).
const FormatTraits* find_format(std::string_view name);

}  // namespace quern::quant
