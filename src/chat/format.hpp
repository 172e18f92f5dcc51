// A model's chat format: its template, the special tokens the template may print, and what follows
// from both. Messages become marked text and token ids. Never a silent fallback: a template that
// refuses a chat is an error with the template's own message and the message it was at. Not here:
// conversations (who holds the messages), the tokens that a model generates.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/message.hpp"
#include "contract/contract.hpp"
#include "jinja/template.hpp"
#include "text/tokenizer.hpp"

namespace quern::chat {

struct FormatOptions {
  std::string chat_template;  // --chat-template: a built-in name or Jinja; "" = the model's own
  std::string template_file;  // where it came from, for messages; "" = the option
  std::string kwargs_json;    // --chat-template-kwargs: a JSON object of variables, "" = none
  std::tm now{};              // what strftime_now shows
};

// What a rendering is asked for.
struct RenderRequest {
  std::string tools_json;  // a JSON list of tools, "" = none
  bool add_generation_prompt = true;
  bool continue_final = false;  // the last message is the beginning of the answer
  jinja::Template::Variables variables = {};  // of this rendering, beside those of the format
};

enum class Thinking { none, always, switchable };

// Found by rendering small chats.
struct FormatTraits {
  bool accepts_system = false;
  bool adds_bos = false;  // the text begins with the beginning-of-sequence token
  Thinking thinking = Thinking::none;
  std::string thinking_switch;         // the variable that turns it on and off ("enable_thinking")
  bool opens_thought = false;          // the generation prompt ends inside a thought
  std::string think_begin, think_end;  // "<think>", "</think>"; "" without thinking
  std::string turn_end;                // the control token behind an answer, "" when none is
  std::vector<std::int32_t> stop_ids;  // the model's ends, and the end of a turn
};

class Format {
 public:
  // Whether the contract describes a chat at all.
  static bool described(const contract::Contract& contract);

  // contract and tokenizer must outlive it. Input errors: no template, or one that cannot be
  // parsed.
  Format(const contract::Contract& contract, const text::Tokenizer& tokenizer,
         const FormatOptions& options, const std::string& where);

  // Input errors of the template name the message that it was at.
  base::MarkedText render(const std::vector<Message>& messages,
                          const RenderRequest& request = {}) const;
  // Ids for the model: control tokens only where the template wrote them. No token is put in front:
  // the template says whether there is a beginning-of-sequence token.
  std::vector<std::int32_t> ids(const std::vector<Message>& messages,
                                const RenderRequest& request = {}) const;

  const FormatTraits& traits() const;                             // probed at the first call
  void set_variable(const std::string& name, jinja::Data value);  // as if given in kwargs_json
  const std::string& name() const { return templates_.front().name(); }

 private:
  friend class FormatProbe;
  const jinja::Template& template_for(const RenderRequest& request) const;
  base::MarkedText render_data(const std::vector<jinja::Data>& messages,
                               const RenderRequest& request) const;
  base::MarkedText continued(std::vector<jinja::Data> messages, const RenderRequest& request) const;

  const contract::Contract& contract_;
  const text::Tokenizer& tokenizer_;
  std::vector<jinja::Template> templates_;  // the default one, then the one for tools
  jinja::Template::Variables variables_;    // special tokens, then what the user gave
  jinja::RenderOptions options_;
  mutable std::optional<FormatTraits> traits_;
};

std::tm local_time();  // now

// Special tokens by the names that templates use (bos_token ...): as the checkpoint's files spell
// them, else by the contract's ids. Trusted.
jinja::Template::Variables special_tokens(const contract::Contract& contract,
                                          const text::Tokenizer& tokenizer);
// The contract's template, or the built-in one that it names; "" for none.
std::string template_source(const contract::Contract& contract);

}  // namespace quern::chat
