// --prompt-cache FILE: the KV cache of a prompt in a file, so that the next run that begins with the
// same tokens does not compute them again. Same bits as without it.
#pragma once

#include <string>

#include "engine/session.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct PromptCacheOptions {
  std::string path;        // "": none
  bool all = false;        // the answer's tokens too
  bool read_only = false;  // never written
};
void add_prompt_cache_options(CLI::App& app, PromptCacheOptions& options);

class PromptCache {
 public:
  // Loads the file if there is one; what could not be used of it is said on standard error. Input errors
  // for a file that is damaged or of another model or cache type.
  PromptCache(const PromptCacheOptions& options, engine::Session& session);

  // A token of the answer was chosen and not yet computed: at the first one the session holds the prompt, which
  // is saved unless the answer is to be saved too.
  void at_token();
  void after_answer();

 private:
  void save();

  const PromptCacheOptions& options_;
  engine::Session& session_;
  bool saved_ = false;
};

}  // namespace quern::tool
