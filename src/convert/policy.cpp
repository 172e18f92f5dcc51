#include "convert/policy.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "checkpoint/packed_tensor.hpp"
#include "convert/glob.hpp"
#include "quant/formats.hpp"
#include "quant/pack.hpp"
#include "text/regex.hpp"

namespace quern::convert {

namespace {

using base::cat;
using checkpoint::CodeKind;
using checkpoint::DType;
using contract::TensorRole;
using quant::FormatId;

// Bits a weight up to which q4 is the nearest native format of a foreign type.
constexpr double kMaxBitsForQ4 = 4.6;

// Lower case, checked; GGUF's name of 8 bits is accepted.
std::string checked_type(std::string_view word, std::string_view option) {
  std::string type = lower(word);
  if (type == "q8_0") type = "q8";
  if (type == "keep" || (type != "rows_f32" && quant::find_format(type) != nullptr)) return type;
  std::vector<std::string_view> known;
  for (const quant::FormatTraits& format : quant::all_formats()) known.push_back(format.name);
  known.push_back("keep");
  const std::string near = base::nearest(type, known);
  base::usage_error(option, cat("unknown type \"", base::printable(word, 40), "\"",
                                near.empty() ? "" : cat(" (did you mean \"", near, "\"?)"),
                                "; known: ", base::join(known)));
}

// Bits of a weight; of packed tensors those of the codes.
double bits_of(const checkpoint::SourceTensor& source) {
  if (const checkpoint::PackedTensor* packed = source.packed()) {
    const CodeKind kind = packed->shape().kind;
    return kind == CodeKind::int4 || kind == CodeKind::e2m1 ? 4 : 8;
  }
  return 8.0 * static_cast<double>(checkpoint::dtype_block_bytes(source.type)) /
         static_cast<double>(checkpoint::dtype_block_values(source.type));
}

std::string type_text(const checkpoint::SourceTensor& source) {
  const checkpoint::PackedTensor* packed = source.packed();
  if (packed != nullptr) return packed->shape().name;
  const std::string name(checkpoint::dtype_name(source.type));
  return source.reader != nullptr ? name + " with adapters" : name;
}

FormatChoice kept(const checkpoint::SourceTensor& source, bool transposed) {
  const quant::FormatTraits* format = keep_format(source);
  if (is_quantized(source)) {
    if (format != nullptr && !transposed) return {.format = format, .kept = true};
    const bool small = bits_of(source) <= kMaxBitsForQ4;
    return {.format = quant::find_format(small ? FormatId::q4 : FormatId::q8),
            .note = cat("requantized from ", type_text(source))};
  }
  if (format != nullptr) return {.format = format};
  // 8-bit floats fit bf16 exactly; integers and f64 are rare and small.
  const bool f8 = source.type == DType::f8_e4m3 || source.type == DType::f8_e5m2;
  return {.format = quant::find_format(f8 ? FormatId::bf16 : FormatId::f32),
          .note = cat("from ", type_text(source))};
}

// int4 and int8 codes: the widest groups that lie in the source's, with f16 scales where they are exact.
const quant::FormatTraits* keep_integers(const checkpoint::PackedTensor& packed) {
  const checkpoint::PackedShape& shape = packed.shape();
  if (packed.group_of_column() != nullptr) return nullptr;
  std::vector<FormatId> ids = {FormatId::int8_g128, FormatId::int8_g32};
  if (shape.kind == CodeKind::int4) {
    ids = {FormatId::int4_f32};
    if (scales_fit_f16(packed)) ids = {FormatId::int4_g128, FormatId::int4_g64, FormatId::int4_g32};
  } else if (!zeros_fit(packed, -128, 127)) {
    return nullptr;
  }
  for (const FormatId id : ids)
    if (const quant::FormatTraits* format = quant::find_format(id);
        quant::holds_groups(*format, shape.group, shape.columns))
      return format;
  return nullptr;
}

const quant::FormatTraits* keep_packed(const checkpoint::PackedTensor& packed) {
  const checkpoint::PackedShape& shape = packed.shape();
  if (shape.kind == CodeKind::int4 || shape.kind == CodeKind::int8) return keep_integers(packed);
  if (shape.kind == CodeKind::f8_e5m2) return nullptr;
  const quant::FormatTraits* format = quant::find_format(
      shape.kind == CodeKind::e2m1 ? FormatId::mxfp4 : FormatId::f8_e4m3);
  return quant::holds_groups(*format, shape.group, shape.columns) ? format : nullptr;
}

// Why type_for() takes more bits than the user's type for some roles.
constexpr std::string_view kStepUp = "one step above ";

// Whether a quantized source can be kept in at most the bits of `format`: more bits would hold the same numbers.
bool fits_in(const checkpoint::SourceTensor& source, const quant::FormatTraits& format) {
  const quant::FormatTraits* kept = is_quantized(source) ? keep_format(source) : nullptr;
  constexpr std::size_t kRows = quant::kPanelRows, kColumns = quant::kSuperColumns;
  return kept != nullptr &&
         quant::bits_per_weight(*kept, kRows, kColumns) <= quant::bits_per_weight(format, kRows, kColumns);
}

bool matches(const text::Regex& regex, std::string_view name) {
  bool found = false;
  regex.split(name, [&](std::size_t, std::size_t, bool matched) { found = found || matched; });
  return found;
}

}  // namespace

struct Policy::Override {
  text::Regex regex;
  std::string type, text;
};

Policy::Policy(const ConvertOptions& options, bool quantized_source) {
  type_ = options.type.empty() ? (quantized_source ? "keep" : "q4")
                               : checked_type(options.type, "--type");
  if (!options.output_tensor_type.empty())
    output_ = checked_type(options.output_tensor_type, "--output-tensor-type");
  if (!options.token_embedding_type.empty())
    embedding_ = checked_type(options.token_embedding_type, "--token-embedding-type");
  for (const auto& [pattern, type] : options.tensor_types) {
    const std::string checked = checked_type(type, "--tensor-type");
    try {
      overrides_.push_back({text::Regex(pattern, "--tensor-type"), checked, pattern});
    } catch (const base::Error& error) {
      base::usage_error(error.where(), error.what_only());
    }
  }
}
Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

void Policy::check_patterns(const std::vector<std::string_view>& names) const {
  for (const Override& entry : overrides_) {
    const bool used = std::any_of(names.begin(), names.end(),
                                  [&](std::string_view name) { return matches(entry.regex, name); });
    if (!used)
      base::usage_error("--tensor-type",
                        cat("no tensor's name matches \"", base::printable(entry.text, 80),
                            "\" (quern inspect -m MODEL --tensors lists quern's names)"));
  }
}

std::string Policy::type_for(const contract::TensorSpec& spec, std::string_view source,
                             bool tied_head, std::string& note) const {
  for (const Override& entry : overrides_) {
    if (!matches(entry.regex, spec.name) && !matches(entry.regex, source)) continue;
    note = "--tensor-type";
    return entry.type;
  }
  const bool embedding = spec.role == TensorRole::embedding;
  const bool head = spec.role == TensorRole::head || (embedding && tied_head);
  if (embedding && !embedding_.empty()) {
    note = "--token-embedding-type";
    return embedding_;
  }
  if (head && !output_.empty()) {
    note = "--output-tensor-type";
    return output_;
  }
  // A wrong expert costs more than these few weights; latent projections are used in two orders, which
  // agree only while the activations stay float.
  if (spec.role == TensorRole::router) {
    note = "routers stay f32";
    return "f32";
  }
  const bool halves = type_ != "f32" && type_ != "f16" && type_ != "keep";
  if (spec.role == TensorRole::latent && halves) {
    note = "latent projections stay float";
    return "bf16";
  }
  // Measured on a 135M chat model (docs/DECISIONS.md): the value projection is 2 % of the weights and a third of
  // the KL divergence of q4; the tied head is used twice.
  const bool value = spec.role == TensorRole::attention_v;
  if (type_ == "q4" && (embedding || head || value)) {
    note = cat(kStepUp, "q4");
    return "q8";
  }
  if (type_ == "q8" && value) {
    note = cat(kStepUp, "q8");
    return "bf16";
  }
  return type_;
}

FormatChoice Policy::choose(const contract::TensorSpec& spec,
                            const checkpoint::SourceTensor& source, bool tied_head,
                            bool transposed) const {
  if (!spec.matrix) return {.format = quant::find_format(FormatId::rows_f32)};
  std::string note;
  const std::string type = type_for(spec, source.name, tied_head, note);
  if (type == "keep") {
    // Codes of any kind become floats where a matrix is used in two orders (type_for).
    if (spec.role == TensorRole::latent && is_quantized(source))
      return {.format = quant::find_format(FormatId::f32), .note = "latent projections stay float"};
    FormatChoice choice = kept(source, transposed);
    if (choice.note.empty()) choice.note = note;
    return choice;
  }
  if (note.starts_with(kStepUp) && !transposed && fits_in(source, *quant::find_format(type)))
    return {.format = keep_format(source), .kept = true, .note = "the source's own: exact, and no larger"};
  FormatChoice choice{.format = quant::find_format(type), .note = note};
  choice.kept = is_quantized(source) && !transposed && keep_format(source) == choice.format;
  const bool exact = choice.kept || choice.format->id == FormatId::f32;
  if (is_quantized(source) && !exact)
    choice.note += cat(choice.note.empty() ? "" : ", ", "requantized from ", type_text(source));
  return choice;
}

std::string Policy::describe() const {
  std::string text = cat("type ", type_);
  if (type_ == "q4") text += "; token embedding, head and attention v q8, or the source's own where it is quantized";
  if (type_ == "q8") text += "; attention v bf16, or the source's own where it is quantized";
  if (type_ == "keep") text += ": the source's own codes and scales";
  if (!embedding_.empty()) text += cat("; token embedding ", embedding_);
  if (!output_.empty()) text += cat("; head ", output_);
  for (const Override& entry : overrides_)
    text += cat("; ", base::printable(entry.text, 60), " -> ", entry.type);
  return text + "; routers, vectors and position tables f32, latent projections float";
}

bool is_quantized(const checkpoint::SourceTensor& source) {
  return source.type == DType::packed || checkpoint::dtype_block_values(source.type) > 1;
}

const quant::FormatTraits* keep_format(const checkpoint::SourceTensor& source) {
  if (const checkpoint::PackedTensor* packed = source.packed()) return keep_packed(*packed);
  switch (source.type) {
    case DType::f32:
      return quant::find_format(FormatId::f32);
    case DType::f16:
      return quant::find_format(FormatId::f16);
    case DType::bf16:
      return quant::find_format(FormatId::bf16);
    case DType::gguf_q4_0:
      return quant::find_format(FormatId::q4_0);
    case DType::gguf_q4_1:
      return quant::find_format(FormatId::q4_1);
    case DType::gguf_q5_0:
      return quant::find_format(FormatId::q5_0);
    case DType::gguf_q5_1:
      return quant::find_format(FormatId::q5_1);
    case DType::gguf_q8_0:
      return quant::find_format(FormatId::q8);
    case DType::gguf_q4_k:
      return quant::find_format(FormatId::q4_k);
    case DType::gguf_q5_k:
      return quant::find_format(FormatId::q5_k);
    case DType::gguf_q6_k:
      return quant::find_format(FormatId::q6_k);
    case DType::gguf_mxfp4:
      return quant::find_format(FormatId::mxfp4);
    default:
      return nullptr;
  }
}

}  // namespace quern::convert
