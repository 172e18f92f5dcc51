// The words of the contract's enums, spelled as in the JSON and in the C++ enums: one list for the
// reader, the writer and the report.
#pragma once

#include <string_view>

#include "base/json_reader.hpp"
#include "contract/contract.hpp"

namespace quern::contract {

inline constexpr base::EnumName<ModelKind> kModelKinds[] = {
    {"decoder", ModelKind::decoder},
    {"encoder", ModelKind::encoder},
    {"encoder_decoder", ModelKind::encoder_decoder}};
inline constexpr base::EnumName<NormKind> kNormKinds[] = {{"rms_norm", NormKind::rms_norm},
                                                          {"layer_norm", NormKind::layer_norm}};
inline constexpr base::EnumName<Accumulate> kAccumulates[] = {{"f32", Accumulate::f32},
                                                              {"f64", Accumulate::f64}};
inline constexpr base::EnumName<RopeLayout> kRopeLayouts[] = {{"half", RopeLayout::half},
                                                              {"pairs", RopeLayout::pairs}};
inline constexpr base::EnumName<RopeSwitchKind> kRopeSwitchKinds[] = {
    {"dynamic_ntk", RopeSwitchKind::dynamic_ntk}, {"longrope", RopeSwitchKind::longrope}};
inline constexpr base::EnumName<PositionTableKind> kPositionTableKinds[] = {
    {"learned", PositionTableKind::learned}, {"sinusoidal", PositionTableKind::sinusoidal}};
inline constexpr base::EnumName<MaskKind> kMaskKinds[] = {
    {"causal", MaskKind::causal},
    {"bidirectional", MaskKind::bidirectional},
    {"prefix", MaskKind::prefix}};
inline constexpr base::EnumName<SinusoidOrder> kSinusoidOrders[] = {
    {"halves", SinusoidOrder::halves}, {"interleaved", SinusoidOrder::interleaved}};
inline constexpr base::EnumName<BiasRound> kBiasRounds[] = {{"bf16", BiasRound::bf16}};
inline constexpr base::EnumName<QkNormOver> kQkNormOver[] = {{"head", QkNormOver::head},
                                                             {"all", QkNormOver::all},
                                                             {"each_head", QkNormOver::each_head}};
inline constexpr base::EnumName<AttentionSource> kAttentionSources[] = {
    {"self", AttentionSource::self}, {"encoder", AttentionSource::encoder}};
inline constexpr base::EnumName<Activation> kActivations[] = {
    {"relu", Activation::relu},
    {"silu", Activation::silu},
    {"gelu_erf", Activation::gelu_erf},
    {"gelu_tanh", Activation::gelu_tanh},
    {"gelu_quick", Activation::gelu_quick},
    {"tanh", Activation::tanh}};
inline constexpr base::EnumName<RouterScore> kRouterScores[] = {
    {"softmax", RouterScore::softmax},
    {"softmax_selected", RouterScore::softmax_selected},
    {"sigmoid", RouterScore::sigmoid}};
inline constexpr base::EnumName<GroupScore> kGroupScores[] = {{"max", GroupScore::max},
                                                              {"top2_sum", GroupScore::top2_sum}};
inline constexpr base::EnumName<OpKind> kOpKinds[] = {{"attention", OpKind::attention},
                                                      {"mla", OpKind::mla},
                                                      {"nsa", OpKind::nsa},
                                                      {"ffn", OpKind::ffn},
                                                      {"moe", OpKind::moe}};
inline constexpr base::EnumName<Pool> kPools[] = {
    {"first", Pool::first}, {"last", Pool::last}, {"mean", Pool::mean}};
inline constexpr base::EnumName<bool> kEncoderTokens[] = {{"own", true}, {"shared", false}};
inline constexpr base::EnumName<Residual> kResiduals[] = {{"sequential", Residual::sequential},
                                                          {"parallel", Residual::parallel},
                                                          {"normed", Residual::normed}};
inline constexpr base::EnumName<HeadKind> kHeadKinds[] = {{"lm", HeadKind::lm},
                                                          {"classify", HeadKind::classify},
                                                          {"none", HeadKind::none},
                                                          {"multi_label", HeadKind::multi_label},
                                                          {"regress", HeadKind::regress},
                                                          {"span", HeadKind::span}};

// Labels: the value is the word itself.
inline constexpr base::EnumName<std::string_view> kRopeRules[] = {
    {"default", "default"}, {"linear", "linear"}, {"ntk", "ntk"},          {"dynamic", "dynamic"},
    {"llama3", "llama3"},   {"yarn", "yarn"},     {"longrope", "longrope"}, {"proportional", "proportional"}};
inline constexpr base::EnumName<std::string_view> kEarlyStopping[] = {
    {"true", "true"}, {"false", "false"}, {"never", "never"}};
inline constexpr base::EnumName<std::string_view> kTokenizerModels[] = {
    {"bpe", "bpe"},             {"score_bpe", "score_bpe"}, {"unigram", "unigram"},
    {"wordpiece", "wordpiece"}, {"wordlevel", "wordlevel"}, {"none", "none"}};
inline constexpr base::EnumName<std::string_view> kScoreSums[] = {{"f32", "f32"}, {"f64", "f64"}};
inline constexpr base::EnumName<std::string_view> kBuiltinTemplates[] = {{"", ""},
                                                                         {"chatml", "chatml"}};

// The cache section's text: derived, written for people.
inline constexpr std::string_view kCacheGranularity = "per token and KV head";

}  // namespace quern::contract
