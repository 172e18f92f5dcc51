#include "engine/report.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "base/strings.hpp"

namespace quern::engine {

namespace {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

double per_second(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

std::uint64_t bytes_of(const model::Linear& linear) {
  return linear.weight == nullptr ? 0 : linear.weight->bytes.size();
}

// Bytes per second that decode streamed: weights and the part of the cache that each step read.
double effective_bandwidth(const Timings& t) {
  const auto bytes = static_cast<double>(t.weight_bytes_per_token + t.cache_bytes_per_token);
  return per_second(bytes * static_cast<double>(t.phases.decode_steps), t.phases.decode_seconds);
}

void line(std::ostringstream& out, std::string_view name, double seconds, const std::string& rest) {
  out << std::left << std::setw(10) << name << std::right << std::setw(10)
      << fixed(seconds * 1e3, 1) << " ms" << (rest.empty() ? "" : "   ") << rest << "\n";
}

// How much sooner the answer came than one token a step would have made it.
double speculation_gain(const PhaseTimes& p) {
  return p.decode_seconds > 0 ? p.speculation.plain_seconds / p.decode_seconds : 0;
}

std::string rate(std::size_t tokens, double seconds) {
  return base::cat(std::setw(6), tokens, " tokens  ", std::setw(9),
                   fixed(per_second(static_cast<double>(tokens), seconds), 1), " t/s");
}

}  // namespace

namespace {

std::uint64_t bytes_of(const model::Ffn& op) {
  return bytes_of(op.gate) + bytes_of(op.up) + bytes_of(op.down);
}

std::uint64_t bytes_of(const model::Mla& op) {
  std::uint64_t total = 0;
  for (const model::Linear* linear : {&op.q, &op.q_a, &op.q_b, &op.kv_a, &op.k_b, &op.v_b, &op.o})
    total += bytes_of(*linear);
  if (op.indexer)
    total += bytes_of(op.indexer->q) + bytes_of(op.indexer->k) + bytes_of(op.indexer->weights);
  return total;
}

std::uint64_t bytes_of(const model::Nsa& op) {
  std::uint64_t total = bytes_of(op.q) + bytes_of(op.gates) + bytes_of(op.o);
  for (const model::Nsa::Source& source : op.branches) total += bytes_of(source.k) + bytes_of(source.v);
  return total;
}

// One token reads top_k experts.
std::uint64_t bytes_of(const model::Moe& op) {
  std::uint64_t experts = 0;
  for (const model::Ffn& expert : op.experts) experts += bytes_of(expert);
  std::uint64_t total = bytes_of(op.router) + experts / op.experts.size() * op.spec->top_k;
  if (op.shared) total += bytes_of(*op.shared);
  if (op.shared_router) total += bytes_of(*op.shared_router);
  return total;
}

}  // namespace

std::uint64_t weight_bytes_per_token(const model::Branch& branch) {
  std::uint64_t total = 0;
  if (const auto& a = branch.attention) {
    total += bytes_of(a->q) + bytes_of(a->o);
    // K and V of the encoder's output are computed once, by encode().
    if (a->spec->source == contract::AttentionSource::self) total += bytes_of(a->k) + bytes_of(a->v);
  }
  if (branch.mla) total += bytes_of(*branch.mla);
  if (branch.nsa) total += bytes_of(*branch.nsa);
  if (branch.ffn) total += bytes_of(*branch.ffn);
  if (branch.moe) total += bytes_of(*branch.moe);
  return total;
}

std::uint64_t weight_bytes_per_token(const model::Model& model) {
  std::uint64_t total = bytes_of(model.head.logits);
  for (const model::Layer& layer : model.output_stack().layers)
    for (const model::Branch& branch : layer.branches) total += weight_bytes_per_token(branch);
  return total;
}

ExpertLoad expert_load(const std::vector<std::vector<std::uint64_t>>& loads) {
  ExpertLoad result;
  std::size_t counted = 0;
  for (std::size_t layer = 0; layer < loads.size(); ++layer) {
    std::uint64_t sum = 0, most = 0;
    for (const std::uint64_t rows : loads[layer]) {
      sum += rows;
      most = std::max(most, rows);
    }
    if (sum == 0) continue;
    const double ratio =
        static_cast<double>(most) * static_cast<double>(loads[layer].size()) / static_cast<double>(sum);
    if (ratio > result.worst) {
      result.worst = ratio;
      result.worst_layer = layer;
    }
    result.mean += ratio;
    ++counted;
  }
  if (counted > 0) result.mean /= static_cast<double>(counted);
  return result;
}

// VmHWM: getrusage()'s ru_maxrss begins with that of the process that called exec.
std::uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

void collect_memory(Timings& timings, const model::Model& model) {
  timings.peak_rss_bytes = peak_rss_bytes();
  timings.weight_file_bytes = model.weights.file().bytes().size();
  timings.weights_resident_bytes = model.weights.file().resident_bytes();
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  timings.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  timings.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
}

Timings collect_timings(const model::Model& model, Session& session) {
  Timings t;
  t.phases = session.times();
  t.weight_bytes_per_token = weight_bytes_per_token(model);
  t.cache = session.cache().bytes();
  t.experts = expert_load(session.runner().expert_loads());
  const model::CacheBytes source = session.runner().source_cache() != nullptr
                                       ? session.runner().source_cache()->bytes()
                                       : model::CacheBytes{};
  // The cache grew by decode_tokens while decoding, so a step read the bytes of the mean length.
  const auto held = static_cast<double>(session.cache().length(0));
  const double mean = held - static_cast<double>(t.phases.decode_tokens) / 2;
  const auto bytes = static_cast<double>(t.cache.payload + t.cache.scales);
  t.cache_bytes_per_token = held > 0 ? static_cast<std::uint64_t>(bytes * mean / held) : 0;
  t.cache_bytes_per_token += source.payload + source.scales;
  t.cache.payload += source.payload;
  t.cache.scales += source.scales;
  t.cache.rounding += source.rounding;
  t.cache.metadata += source.metadata;
  collect_memory(t, model);
  return t;
}

double percentile(std::vector<double> samples, double p) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double rank = std::ceil(p * static_cast<double>(samples.size()));
  return samples[static_cast<std::size_t>(
                     std::clamp(rank, 1.0, static_cast<double>(samples.size()))) -
                 1];
}

std::string timings_text(const Timings& t) {
  const PhaseTimes& p = t.phases;
  std::ostringstream out;
  line(out, "load", t.load_seconds, "");
  line(out, "tokenize", t.tokenize_seconds, "");
  if (p.encode_tokens > 0)
    line(out, "encode", p.encode_seconds, rate(p.encode_tokens, p.encode_seconds));
  std::string prefill = rate(p.prefill_tokens, p.prefill_seconds);
  if (p.reused_tokens > 0) prefill += base::cat("   ", p.reused_tokens, " more held by the cache");
  line(out, "prefill", p.prefill_seconds, prefill);
  std::string decode = rate(p.decode_tokens, p.decode_seconds);
  if (p.decode_tokens > 0)
    decode += base::cat("   ms/token p50 ", fixed(percentile(p.token_seconds, 0.5) * 1e3, 2),
                        "  p95 ", fixed(percentile(p.token_seconds, 0.95) * 1e3, 2));
  line(out, "decode", p.decode_seconds, decode);
  if (const SpeculationCounts& s = p.speculation; s.steps + s.plain_steps > 0)
    line(out, "drafting", s.draft_seconds,
         base::cat(std::setw(6), s.drafted, " drafted ", s.accepted, " accepted   ", fixed(speculation_gain(p), 2),
                   " x the speed of plain decoding"));
  line(out, "sampling", p.sampling_seconds, "");
  if (p.decode_tokens > 0) {
    out << "memory    " << std::setw(10) << fixed(effective_bandwidth(t) / 1e9, 1)
        << " GB/s while decoding";
    if (t.read_bandwidth > 0)
      out << ", " << fixed(100 * effective_bandwidth(t) / t.read_bandwidth, 0) << " % of the "
          << fixed(t.read_bandwidth / 1e9, 1) << " GB/s this machine reads";
    out << "\n";
  }
  if (t.experts.worst > 0)
    out << "experts   busiest has " << fixed(t.experts.mean, 2) << " x the mean load, "
        << fixed(t.experts.worst, 2) << " in layer " << t.experts.worst_layer << " of those with experts\n";
  if (t.weight_file_bytes > 0)
    out << "weights   " << base::human_bytes(t.weight_file_bytes) << ", "
        << fixed(100 * static_cast<double>(t.weights_resident_bytes) / static_cast<double>(t.weight_file_bytes), 0)
        << " % in memory; page faults " << t.minor_faults << " minor, " << t.major_faults << " major\n";
  out << "peak RSS  " << base::human_bytes(t.peak_rss_bytes) << ", KV cache "
      << base::human_bytes(t.cache.payload + t.cache.scales) << " (blocks "
      << base::human_bytes(t.cache.payload + t.cache.scales + t.cache.rounding) << ")\n";
  return out.str();
}

std::string timings_json(const Timings& t) {
  const PhaseTimes& p = t.phases;
  std::ostringstream out;
  out << std::setprecision(9) << "{\"load_s\": " << t.load_seconds
      << ", \"tokenize_s\": " << t.tokenize_seconds << ", \"encode_tokens\": " << p.encode_tokens
      << ", \"encode_s\": " << p.encode_seconds << ", \"reused_tokens\": " << p.reused_tokens
      << ", \"rebuilt_tokens\": " << p.rebuilt_tokens << ", \"prefill_tokens\": " << p.prefill_tokens
      << ", \"prefill_s\": " << p.prefill_seconds << ", \"prefill_tokens_per_s\": "
      << per_second(static_cast<double>(p.prefill_tokens), p.prefill_seconds)
      << ", \"decode_tokens\": " << p.decode_tokens << ", \"decode_steps\": " << p.decode_steps
      << ", \"drafted_tokens\": " << p.speculation.drafted << ", \"accepted_tokens\": " << p.speculation.accepted
      << ", \"draft_s\": " << p.speculation.draft_seconds << ", \"speculation_gain\": " << speculation_gain(p)
      << ", \"decode_s\": " << p.decode_seconds
      << ", \"decode_tokens_per_s\": "
      << per_second(static_cast<double>(p.decode_tokens), p.decode_seconds)
      << ", \"decode_ms_p50\": " << percentile(p.token_seconds, 0.5) * 1e3
      << ", \"decode_ms_p95\": " << percentile(p.token_seconds, 0.95) * 1e3
      << ", \"sampling_s\": " << p.sampling_seconds
      << ", \"decode_bytes_per_s\": " << effective_bandwidth(t)
      << ", \"read_bytes_per_s\": " << t.read_bandwidth
      << ", \"peak_rss_bytes\": " << t.peak_rss_bytes
      << ", \"weight_file_bytes\": " << t.weight_file_bytes
      << ", \"weights_resident_bytes\": " << t.weights_resident_bytes
      << ", \"minor_faults\": " << t.minor_faults << ", \"major_faults\": " << t.major_faults
      << ", \"cache_payload_bytes\": " << t.cache.payload
      << ", \"cache_scale_bytes\": " << t.cache.scales
      << ", \"cache_rounding_bytes\": " << t.cache.rounding
      << ", \"cache_metadata_bytes\": " << t.cache.metadata
      << ", \"expert_load_max_over_mean\": " << t.experts.mean
      << ", \"expert_load_worst_layer\": " << t.experts.worst << "}";
  return out.str();
}

}  // namespace quern::engine
