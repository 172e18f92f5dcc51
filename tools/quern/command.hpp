// The commands of `quern`: a table (main.cpp), one file per command.
#pragma once

#include <string>
#include <vector>

namespace quern::tool {

// Arguments after the command's name; returns the exit code. Errors are base::Error.
using CommandFunction = int (*)(const std::vector<std::string>& arguments);

int cmd_chat(const std::vector<std::string>& arguments);
int cmd_run(const std::vector<std::string>& arguments);
int cmd_inspect(const std::vector<std::string>& arguments);
int cmd_logits(const std::vector<std::string>& arguments);
int cmd_template(const std::vector<std::string>& arguments);
int cmd_tokenize(const std::vector<std::string>& arguments);
int cmd_batch(const std::vector<std::string>& arguments);
int cmd_bench(const std::vector<std::string>& arguments);
int cmd_plan(const std::vector<std::string>& arguments);
int cmd_eval(const std::vector<std::string>& arguments);
int cmd_embed(const std::vector<std::string>& arguments);
int cmd_classify(const std::vector<std::string>& arguments);
int cmd_fill(const std::vector<std::string>& arguments);
int cmd_grammar(const std::vector<std::string>& arguments);
int cmd_verify(const std::vector<std::string>& arguments);

}  // namespace quern::tool
