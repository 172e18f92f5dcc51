#include "convert/convert.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "base/output_directory.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "base/thread_pool.hpp"
#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "convert/computed.hpp"
#include "convert/generation_import.hpp"
#include "convert/inspect_config.hpp"
#include "convert/made_tensor.hpp"
#include "convert/policy.hpp"
#include "convert/report.hpp"
#include "convert/target.hpp"
#include "convert/tensor_encoder.hpp"
#include "convert/tokenizer_import.hpp"
#include "weights/reader.hpp"
#include "weights/writer.hpp"

namespace quern::convert {

namespace {

namespace fs = std::filesystem;
using base::cat;

constexpr std::size_t kMaxRecipeBytes = std::size_t{1} << 20;
constexpr std::uint64_t kSpaceReserve = std::uint64_t{1}
                                        << 20;  // directory, contract, file system blocks

// Everything decided before a byte is written.
struct Job {
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;
  Recipe recipe;
  ImportedTokenizer tokenizer;
  std::vector<std::unique_ptr<ComputedTensor>> computed;
  std::vector<std::unique_ptr<MadeTensor>> made;  // what `tensors` may point into
  std::vector<PlannedTensor> tensors;
  std::string type;
  std::uint64_t tensor_bytes = 0;
  ConvertReport report;
};

Recipe choose_recipe(const checkpoint::Checkpoint& checkpoint, const ConvertOptions& options) {
  std::vector<Recipe> recipes = builtin_recipes();
  if (!options.recipe_file.empty())
    recipes.insert(recipes.begin(),
                   parse_recipe(base::read_text_file(options.recipe_file, kMaxRecipeBytes),
                                options.recipe_file));
  return match_recipe(recipes, checkpoint, options.arch_as);
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void import_text(Job& job) {
  contract::Contract& contract = job.report.contract;
  job.tokenizer = import_tokenizer(*job.checkpoint, contract.vocab_size);
  contract.tokenizer = job.tokenizer.description;
  contract.tokens = job.tokenizer.tokens;
  contract.chat = job.tokenizer.chat;
  append(job.report.notices, job.tokenizer.notices);
  import_generation(*job.checkpoint, contract, job.report.notices);
}

void count_parameters(Job& job) {
  contract::Contract& contract = job.report.contract;
  contract.counts.parameters_by_formula = contract::parameters_by_formula(contract);
  contract.counts.parameters_in_tensors = 0;
  for (const PlannedTensor& tensor : job.tensors)
    if (!tensor.spec.computed)
      contract.counts.parameters_in_tensors +=
          std::uint64_t{tensor.view.rows()} * tensor.view.columns();
  if (contract.counts.parameters_in_tensors != contract.counts.parameters_by_formula)
    base::reject(job.checkpoint->where(), "number of parameters in the tensors",
                 base::grouped(contract.counts.parameters_in_tensors),
                 cat(base::grouped(contract.counts.parameters_by_formula),
                     " by the architecture's formula"));
}

const checkpoint::SourceTensor& source_of(const contract::TensorSpec& spec,
                                          const TensorSource& source,
                                          const contract::Contract& contract, Job& job) {
  if (!spec.computed) return *source.tensor;
  job.computed.push_back(compute_tensor(contract, spec, job.checkpoint->where()));
  return job.computed.back()->source;
}

void plan_formats(const ConvertOptions& options, const Resolved& resolved, Job& job) {
  const std::vector<contract::TensorSpec> specs = contract::expected_tensors(resolved.contract);
  QUERN_ASSERT(specs.size() == resolved.tensors.size());
  const auto& sources = resolved.tensors;
  bool quantized = false;
  for (std::size_t i = 0; i < specs.size(); ++i)
    quantized = quantized || (specs[i].matrix && is_quantized(*sources[i].tensor));
  const Policy policy(options, quantized);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    names.push_back(specs[i].name);
    if (!specs[i].computed) names.push_back(sources[i].tensor->name);
  }
  policy.check_patterns(names);
  job.type = std::string(policy.type());
  job.report.policy = policy.describe();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const checkpoint::SourceTensor& source =
        source_of(specs[i], sources[i], resolved.contract, job);
    RowView view(source, sources[i].transforms, job.checkpoint->where());
    if (specs[i].matrix && specs[i].rows == 1 && view.columns() == 1 && view.rows() > 1 && !view.transposed())
      view.as_one_row();
    const FormatChoice choice =
        policy.choose(specs[i], source, resolved.contract.head.tied, view.transposed());
    const std::uint64_t bytes =
        quant::tensor_bytes(*choice.format, specs[i].rows, specs[i].columns);
    job.tensor_bytes += bytes;
    job.report.tensors.push_back({specs[i].name, specs[i].rows, specs[i].columns, choice.format,
                                  bytes, choice.kept, choice.note});
    job.tensors.push_back({specs[i], std::move(view), choice.format, choice.kept, bytes});
  }
  job.report.bits_per_weight = bits_over_matrices(job.tensors);
}

// Of a directory whose configuration is damaged or names no model for quern, that is what is wrong, whatever its
// weights are. An error of the environment says nothing about either and stays what it is.
std::unique_ptr<checkpoint::Checkpoint> open_source(const fs::path& source, const ConvertOptions& options) try {
  return checkpoint::open_checkpoint(source);
} catch (const base::Error& error) {
  if (error.code() != base::ExitCode::input) throw;
  check_architecture(source / "config.json", options.recipe_file, options.arch_as);
  throw;
}

Job plan(const fs::path& source, const ConvertOptions& options) {
  Job job;
  job.checkpoint = checkpoint::with_adapters(open_source(source, options), options.adapters);
  job.recipe = choose_recipe(*job.checkpoint, options);
  Resolved resolved = resolve(job.recipe, *job.checkpoint, options.adaptations);
  append(job.report.notices, job.checkpoint->notices());
  if (options.strict && !resolved.unknown_keys.empty())
    base::reject(job.checkpoint->where(),
                 cat("--strict: configuration key not known to the recipe: ",
                     resolved.unknown_keys.front()));
  append(job.report.notices, resolved.notices);
  plan_formats(options, resolved, job);
  job.made = std::move(resolved.made);
  job.report.contract = std::move(resolved.contract);
  count_parameters(job);
  import_text(job);
  for (const auto& [what, count] : requantizations(job.report))
    job.report.notices.push_back(cat(count, " tensors ", what));
  job.report.contract.source_json =
      source_text(source, *job.checkpoint, job.recipe, options, resolved);
  contract::validate(job.report.contract, job.checkpoint->where());
  job.report.file_bytes = job.tensor_bytes + job.tokenizer.tables.size();
  return job;
}

void write_tensors(const ConvertOptions& options, const Progress& progress,
                   weights::WeightWriter& writer, Job& job) {
  base::ThreadPool pool(options.n_threads);
  std::uint64_t done = 0;
  TensorEncoder encoder(pool, writer, options.allow_nonfinite, [&](std::uint64_t bytes) {
    done += bytes;
    if (progress) progress(done, job.tensor_bytes);
  });
  for (const PlannedTensor& tensor : job.tensors) {
    std::string notice;
    const TensorError error = encoder.write(tensor, job.checkpoint->where(), notice);
    add_to_roles(tensor, error, job.report.roles);
    if (!tensor.spec.computed && !is_made(tensor.view.source()))
      job.checkpoint->release(tensor.view.source());
    if (!notice.empty()) job.report.notices.push_back(std::move(notice));
  }
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Reads the pair of files back before it is put in place: every checksum, and that both belong
// together.
void read_back(const fs::path& directory) try {
  const weights::WeightFile file = weights::WeightFile::open(directory / "model.quern");
  file.verify_checksums();
  const std::string text =
      base::read_text_file(directory / "model.json", contract::kMaxDocumentBytes);
  const contract::Contract contract =
      contract::read_contract(text, (directory / "model.json").string());
  if (contract::structural_hash(contract) != file.contract_hash())
    base::reject((directory / "model.json").string(), "does not belong to model.quern");
} catch (const base::Error& error) {
  base::environment_error("reading back", error.what());
}

void write_files(const fs::path& source, const fs::path& target, const ConvertOptions& options,
                 const Progress& progress, Job& job) {
  base::OutputDirectory directory(target, options.force);
  contract::Contract& contract = job.report.contract;
  const fs::path weights_path = directory.path() / "model.quern";
  {
    weights::WeightWriter writer(weights_path);
    write_tensors(options, progress, writer, job);
    if (!job.tokenizer.tables.empty()) writer.write_tokenizer(job.tokenizer.tables);
    contract.quantization_json = quantization_text(job.report, job.type);
    const std::uint64_t hash = contract::structural_hash(contract);
    const std::uint64_t checksum = writer.finish(contract::write_contract(contract), hash);
    job.report.file_bytes = fs::file_size(weights_path);
    const base::Json weights = {{"file", "model.quern"},
                                {"bytes", job.report.file_bytes},
                                {"checksum", hex(checksum)},
                                {"structural_hash", hex(hash)}};
    contract.weights_json = weights.dump();
  }
  {
    base::OutputFile file(directory.path() / "model.json");
    file.write(base::as_bytes(contract::write_contract(contract)));
    file.sync();
  }
  read_back(directory.path());
  job.checkpoint->check_unchanged();
  if (options.force) check_target(source, target, true);  // what was put there meanwhile is not removed
  directory.publish();
}

}  // namespace

ConvertReport convert(const fs::path& source, const fs::path& target, const ConvertOptions& options,
                      const Progress& progress) {
  if (!options.dry_run) check_target(source, target, options.force);
  Job job = plan(source, options);
  if (options.dry_run) {
    for (const PlannedTensor& tensor : job.tensors) add_to_roles(tensor, {}, job.report.roles);
    job.report.contract.quantization_json = quantization_text(job.report, job.type);
    return std::move(job.report);
  }
  check_space(target, job.tensor_bytes + job.tokenizer.tables.size() + kSpaceReserve);
  write_files(source, target, options, progress, job);
  return std::move(job.report);
}

}  // namespace quern::convert
