// quern-convert: checkpoint -> model.quern + model.json. Options, the report, exit codes; the work
// is convert/convert.hpp.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command_options.hpp"
#include "base/thread_pool.hpp"
#include "config_file.hpp"
#include "convert/convert.hpp"
#include "manual_files.hpp"
#include "print_report.hpp"
#include "progress.hpp"
#include "signals.hpp"
#include "verify_conversion.hpp"
#include "version.hpp"

namespace quern::tool {
namespace {

struct Options {
  std::string source, target, target_option, type, type_word;
  std::vector<std::string> tensor_types, adapters;
  convert::ConvertOptions convert;
  bool verify = false, quiet = false;
};

constexpr const char* kFooter =
    "types: f32 bf16 f16, q8 (8.5 bits), q4 (4.3 bits; the default for float sources), keep (the "
    "source's own\n"
    "codes and scales exactly; the default for quantized sources), and the formats of foreign "
    "sources: q4_0\n"
    "q4_1 q5_0 q5_1 q4_k q5_k q6_k mxfp4 int4_g32 int4_g64 int4_g128 int4_f32 int8_g32 int8_g128 "
    "f8_e4m3\n\n"
    "examples:\n"
    "  quern-convert SmolLM2-135M-Instruct/ smollm2             Hugging Face directory, 4 bits\n"
    "  quern-convert SmolLM2-135M-Instruct.Q4_1.gguf smollm2    GGUF, its codes kept\n"
    "  quern-convert SRC OUT q8 --verify                        8 bits, logits compared with the "
    "source\n"
    "  quern-convert SRC OUT --tensor-type '\\.down\\.=q8'      one kind of matrix finer\n"
    "  quern-convert SRC OUT --lora ADAPTER:0.5                 a LoRA adapter merged at half "
    "strength\n"
    "  quern-convert SRC OUT --dry-run                          sizes and plan, nothing written\n\n"
    "exit codes: 0 done, 1 --verify failed, 2 usage, 3 input rejected, 4 environment, 70 "
    "internal\n";

void add_formats(CLI::App& app, Options& options) {
  app.add_option("--type,--outtype", options.type, "number format of the matrices (see below)");
  app.add_option("--tensor-type", options.tensor_types,
                 "REGEX=TYPE for tensors whose name (quern's or the source's) matches; repeatable, "
                 "first wins")
      ->allow_extra_args(false);
  app.add_option("--output-tensor-type", options.convert.output_tensor_type, "format of the head");
  app.add_option("--token-embedding-type", options.convert.token_embedding_type,
                 "format of the token embedding");
  app.add_flag("--allow-nonfinite", options.convert.allow_nonfinite,
               "accept NaN and infinity in float formats");
}

void add_recipe(CLI::App& app, Options& options) {
  app.add_option("--lora", options.adapters,
                 "DIR[:SCALE], a PEFT adapter to merge before quantization; repeatable")
      ->allow_extra_args(false);
  app.add_option("--recipe", options.convert.recipe_file,
                 "a recipe file to try before the built-in ones");
  app.add_option("--arch-as", options.convert.arch_as, "treat the checkpoint as this architecture");
  app.add_flag("--strict", options.convert.strict, "unknown configuration keys are errors");
  convert::Adaptations& wishes = options.convert.adaptations;
  app.add_option("--rope-scaling", wishes.rope_scaling, "none, linear, ntk, dynamic or yarn");
  app.add_option("--rope-scale", wishes.rope_scale, "stretches the context N times");
  app.add_option("--rope-freq-base", wishes.rope_freq_base, "RoPE base");
  app.add_option("--rope-freq-scale", wishes.rope_freq_scale, "stretches the context 1/N times");
  app.add_option("--yarn-orig-ctx", wishes.yarn_orig_ctx, "trained context length");
  app.add_option("--yarn-ext-factor", wishes.yarn_ext_factor,
                 "YaRN: share of unscaled angles below the ramp");
  app.add_option("--yarn-attn-factor", wishes.yarn_attn_factor,
                 "YaRN: factor of the attention temperature");
  app.add_option("--yarn-beta-fast", wishes.yarn_beta_fast,
                 "YaRN: rotations where the ramp begins");
  app.add_option("--yarn-beta-slow", wishes.yarn_beta_slow, "YaRN: rotations where the ramp ends");
}

// Options that end the program at once.
bool printed_something(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--version") print_version(std::cout, "quern-convert");
    if (argument == "--print-supported-models") print_supported_models(std::cout);
    if (argument == "--version" || argument == "--print-supported-models") return true;
    if (argument == "--") return false;
  }
  return false;
}

// DIR or DIR:SCALE; a colon with something else than a number behind it belongs to the directory.
checkpoint::LoraAdapter adapter_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return {text, 1};
  const char* begin = text.data() + colon + 1;
  double scale = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), scale);
  if (error != std::errc{} || end != text.data() + text.size()) return {text, 1};
  if (!(scale >= -1e6 && scale <= 1e6))
    base::usage_error("--lora", base::cat("scale out of range: ", base::printable(text, 80)));
  return {text.substr(0, colon), scale};
}

// With -o the second word, if there is one, is the type.
void take_target_option(Options& options) {
  if (options.target_option.empty()) return;
  if (!options.type_word.empty())
    base::usage_error("-o", base::cat("the directory to write is given twice: ", base::printable(options.target_option, 80),
                                      " and ", base::printable(options.target, 80)));
  options.type_word = std::exchange(options.target, options.target_option);
}

// False: --help was printed.
bool read_options(const std::vector<std::string>& arguments, Options& options) {
  CLI::App app(
      "Converts a checkpoint (Hugging Face directory or GGUF file) into a directory OUT with "
      "model.quern\n"
      "and model.json, in one step.",
      "quern-convert");
  app.footer(kFooter);
  app.add_option("SRC", options.source,
                 "Hugging Face directory or GGUF file (the first of a split)")
      ->required();
  app.add_option("OUT", options.target, "directory to write (not needed with --dry-run)");
  app.add_option("TYPE", options.type_word, "the same as --type");
  app.add_option("-o,--outfile,--output", options.target_option, "the same as OUT")->type_name("PATH");
  add_formats(app, options);
  app.add_flag("--dry-run", options.convert.dry_run, "print sizes and plan, write nothing");
  app.add_flag("--force", options.convert.force, "replace an existing model directory, atomically");
  app.add_flag("--verify", options.verify,
               "compare the logits of the written model with its source in f32");
  app.add_option("-t,--threads", options.convert.n_threads,
                 "threads (default: physical cores available)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("-q,--quiet", options.quiet, "no report on standard error");
  add_recipe(app, options);
  bool unused = false;
  app.add_flag("--print-supported-models", unused, "list architectures, known and out of scope");
  app.add_flag("--version", unused, "versions and instruction sets");
  options.convert.n_threads = base::default_thread_count();
  if (parse_arguments(app, arguments)) return false;
  take_target_option(options);
  if (!options.type.empty() && !options.type_word.empty())
    base::usage_error("quern-convert", "give the type once: as the third word or with --type");
  options.convert.type = options.type.empty() ? options.type_word : options.type;
  if (options.verify && options.convert.dry_run)
    base::usage_error("--verify", "cannot be given together with --dry-run");
  for (const std::string& text : options.adapters)
    options.convert.adapters.push_back(adapter_of(text));
  for (const std::string& text : options.tensor_types) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      base::usage_error("--tensor-type", base::cat("not REGEX=TYPE: ", base::printable(text, 80)));
    options.convert.tensor_types.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return true;
}

// Its options, for manuals and the configuration file.
int only_options(const std::vector<std::string>& arguments) {
  Options options;
  read_options(arguments, options);
  return 0;
}

// --manual FORMAT and --write-manuals-to DIR, as `quern help` has them; the build calls it.
bool printed_manual(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || (arguments[0] != "--manual" && arguments[0] != "--write-manuals-to")) return false;
  ProgramText program{"quern-convert", version(), "makes a model directory from a checkpoint", {}};
  visit_options(only_options, [&](CLI::App& app) { program.commands.push_back(command_text(app)); });
  if (arguments[0] == "--manual") std::cout << manual_text(parse_manual_format(arguments[1]), program, "");
  else write_manuals(arguments[1], program);
  return true;
}

int run(const std::vector<std::string>& arguments) {
  if (printed_something(arguments) || printed_manual(arguments)) return 0;
  apply_config({{{"convert", only_options}}, false, {}}, "convert");
  Options options;
  if (!read_options(arguments, options)) return 0;
  convert::ConvertReport report;
  {
    ProgressBar bar;
    report = convert::convert(options.source, options.target, options.convert,
                              [&](std::uint64_t done, std::uint64_t total) {
                                bar.update(done, total);
                              });
  }
  for (const std::string& notice : report.notices)
    std::cerr << "quern-convert: note: " << base::printable(notice, 500) << "\n";
  if (options.convert.dry_run) {
    print_plan(std::cout, report);
    std::cout << "\n";
    print_roles(std::cout, report, false);
    return 0;
  }
  if (!options.quiet) {
    print_roles(std::cerr, report, true);
    std::cerr << "wrote " << base::printable(options.target) << "\n";
  }
  if (options.verify &&
      !verify_conversion(std::cerr, options.source, options.target, options.convert))
    return static_cast<int>(base::ExitCode::items_failed);
  return 0;
}

}  // namespace
}  // namespace quern::tool

int main(int argc, char** argv) {
  using quern::base::ExitCode;
  const auto report = [](const char* kind, const char* what) {
    std::fprintf(stderr, "quern-convert: %s%s\n", kind, quern::base::printable(what, 1000).c_str());
  };
  quern::tool::open_standard_streams();
  quern::tool::install_signal_handlers("quern-convert: interrupted, unfinished files removed\n");
  int code = 0;
  try {
    code = quern::tool::run({argv + 1, argv + argc});
    std::cout.flush();
    if (!std::cout)
      throw quern::base::Error(ExitCode::environment, "standard output", "cannot write");
  } catch (const quern::base::Error& error) {
    report("error: ", error.what());
    code = static_cast<int>(error.code());
  } catch (const std::filesystem::filesystem_error& error) {  // such as names longer than a file system takes
    report("error: ", quern::base::cat(error.path1().string(), ": ", error.code().message()).c_str());
    code = static_cast<int>(ExitCode::environment);
  } catch (const std::bad_alloc&) {
    report("error: ", "out of memory");
    code = static_cast<int>(ExitCode::environment);
  } catch (const std::exception& error) {
    report("internal error: ", error.what());
    code = static_cast<int>(ExitCode::internal);
  }
  return code;
}
