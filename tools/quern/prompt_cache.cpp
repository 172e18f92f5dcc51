#include "prompt_cache.hpp"

#include <filesystem>
#include <iostream>

#include "engine/snapshot.hpp"

namespace quern::tool {

void add_prompt_cache_options(CLI::App& app, PromptCacheOptions& options) {
  CLI::Option* file = app.add_option("--prompt-cache", options.path,
                                     "a file that keeps the computed prompt for the next run that begins like it");
  file->type_name("FILE");
  CLI::Option* all = app.add_flag("--prompt-cache-all", options.all, "and the answer");
  CLI::Option* read_only = app.add_flag("--prompt-cache-ro", options.read_only, "use the file, do not write it");
  all->needs(file)->excludes(read_only);
  read_only->needs(file);
}

PromptCache::PromptCache(const PromptCacheOptions& options, engine::Session& session)
    : options_(options), session_(session) {
  if (options.path.empty()) return;
  if (!std::filesystem::exists(options.path)) {
    if (options.read_only) std::cerr << "quern: note: --prompt-cache: no such file yet\n";
    return;
  }
  const engine::RestoreResult restored = engine::load_snapshot(session, options.path);
  if (restored.other_length)
    std::cerr << "quern: note: --prompt-cache: made for another length of this model's positions; computed again\n";
  if (restored.other_isa)
    std::cerr << "quern: warning: --prompt-cache: computed on " << restored.info.isa
              << ", another instruction set than here\n";
}

void PromptCache::save() {
  if (options_.path.empty() || options_.read_only || saved_) return;
  saved_ = true;
  engine::save_snapshot(session_, options_.path);
}

void PromptCache::at_token() {
  if (!options_.all) save();
}

void PromptCache::after_answer() {
  save();
}

}  // namespace quern::tool
