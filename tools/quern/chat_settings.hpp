// Options of `quern chat`, those of them that /set changes, and how they are kept in a session's file.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat_options.hpp"
#include "chat_renderer.hpp"
#include "engine/overflow.hpp"
#include "model_options.hpp"
#include "sampling_options.hpp"
#include "speculation_options.hpp"

namespace quern::tool {

// What can be changed while chatting, under the names of the command line.
struct ChatSettings {
  SamplingOptions sampling;
  std::int64_t n_predict = -1;          // most new tokens of an answer
  std::int64_t reasoning_budget = -1;   // most tokens of its thoughts
  Thinking thinking = Thinking::automatic;
  bool hide_thinking = false, show_timings = false;
  std::vector<std::string> stops;       // texts that end an answer; not looked for in thoughts
};

struct ChatCommandOptions {
  ModelOptions model;
  ChatSettings settings;
  std::optional<std::string> system, prompt;
  std::string system_file, prompt_file, session, color = "auto";
  ChatOptions chat_format;
  engine::OverflowOptions overflow;
  SpeculationChoice speculation;
  bool single_turn = false, multiline = false, simple_io = false, no_history = false;
};

void add_chat_command_options(CLI::App& app, ChatCommandOptions& options);

// An option as it was given: its name without dashes, and its values.
using GivenOption = std::pair<std::string, std::vector<std::string>>;

// The settings with every option that was given for them, by the command line, a session's file or /set.
class SettingsBook {
 public:
  // The command line has been parsed into `settings`; app tells what was given there.
  SettingsBook(ChatSettings settings, const CLI::App& app);

  const ChatSettings& settings() const { return settings_; }
  // "--name value..." as the command line takes it. Usage error, and nothing changes, for what it refuses.
  void set(const std::string& name, const std::vector<std::string>& values);
  void set_thinking(Thinking thinking);
  void set_hidden(bool hidden);

  const std::vector<GivenOption>& given() const { return given_; }
  static std::vector<std::string> names();  // that set() takes
  // An option, its value if one was given, and what it does: "temp = 0.5: temperature ..."; "" for no such name.
  std::string described(const std::string& name) const;

  // JSON of what was given, and back: options of the command line stay, the others become the file's.
  // Options of a file that this version does not take are left out; their names come back.
  std::string json() const;
  std::vector<std::string> take(const std::string& json, const std::string& where);

 private:
  void note(const std::string& name, std::vector<std::string> values);

  ChatSettings settings_;
  std::vector<GivenOption> given_;
  std::vector<std::string> by_command_line_;
};

}  // namespace quern::tool
