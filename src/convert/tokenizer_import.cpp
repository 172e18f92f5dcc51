#include "convert/tokenizer_import.hpp"

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "convert/tokenizer_import_spm.hpp"
#include "text/tokenizer.hpp"

namespace quern::convert {

using base::cat;

namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{256} << 20;

ImportedTokenizer without_tokenizer() {
  ImportedTokenizer out;
  out.description.model = "none";
  return out;
}

// Builds the runtime once over what was imported (regexes compile, ids agree) and checks that each
// added token is found in text as itself.
void check_runs(const ImportedTokenizer& imported, std::string_view where) {
  const text::Tokenizer tokenizer(imported.description, imported.tables, where);
  for (const contract::AddedToken& token : imported.description.added)
    if (tokenizer.id_of(token.content) != token.id)
      base::reject(where, "added token is not found by its text",
                   base::printable(token.content, 60));
}

// A checkpoint without a tokenizer that can be used keeps its chat template.
ImportedTokenizer from_files(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                             std::optional<UnsupportedTokenizer>& reason) {
  ImportedTokenizer out;
  if (import_from_files(files, where, vocab_size, out, reason) && !reason) {
    check_runs(out, where);
    return out;
  }
  out = without_tokenizer();
  import_side_files(files, out);
  return out;
}

ImportedTokenizer from_gguf(const checkpoint::GgufFile& file, std::string_view where,
                            std::size_t vocab_size, std::optional<UnsupportedTokenizer>& reason) {
  ImportedTokenizer out = without_tokenizer();
  if (file.find("tokenizer.ggml.model") == nullptr) return out;
  reason = import_tokenizer_gguf(file, where, vocab_size, out);
  if (out.description.model != "none") check_runs(out, where);
  return out;
}

std::string with_hint(const UnsupportedTokenizer& reason) {
  return cat(reason.reason, " is not supported yet; use --ids-file");
}

bool is_gguf(base::Bytes bytes) {
  return base::as_text(bytes).starts_with("GGUF");
}

// read(name): the contents of a file, "" when there is none.
template <class Read>
SideFiles read_files(Read read) {
  SideFiles files;
  files.tokenizer_json = read("tokenizer.json");
  files.tokenizer_config = read("tokenizer_config.json");
  files.special_tokens_map = read("special_tokens_map.json");
  files.chat_jinja = read("chat_template.jinja");
  files.chat_json = read("chat_template.json");
  for (const char* name : {"tool_use", "rag"})
    if (std::string text = read(cat("additional_chat_templates/", name, ".jinja").c_str()); !text.empty())
      files.more_templates[name] = std::move(text);
  if (!files.tokenizer_json.empty()) return files;
  files.sentencepiece_model = read("tokenizer.model");
  if (files.sentencepiece_model.empty()) files.sentencepiece_model = read("spiece.model");
  files.source_model = read("source.spm");
  files.target_vocab_json = read("target_vocab.json");
  files.vocab_json = read("vocab.json");
  files.merges_txt = read("merges.txt");
  files.vocab_txt = read("vocab.txt");
  files.added_tokens = read("added_tokens.json");
  return files;
}

SideFiles read_directory(const std::filesystem::path& directory) {
  return read_files([&](const char* name) {
    const std::filesystem::path path = directory / name;
    std::error_code error;
    return std::filesystem::exists(path, error) ? base::read_text_file(path, kMostJsonBytes)
                                                : std::string();
  });
}

// A file given by name, with what lies beside it: only it makes the vocabulary.
SideFiles around_file(const std::filesystem::path& path, base::Bytes bytes) {
  SideFiles all = read_directory(path.parent_path());
  SideFiles files;
  files.single = true;
  files.tokenizer_config = std::move(all.tokenizer_config);
  files.special_tokens_map = std::move(all.special_tokens_map);
  files.chat_jinja = std::move(all.chat_jinja);
  files.chat_json = std::move(all.chat_json);
  files.more_templates = std::move(all.more_templates);
  std::string text(base::as_text(bytes));
  if (looks_like_sentencepiece(bytes)) {
    files.sentencepiece_model = std::move(text);
  } else if (path.extension() == ".txt") {
    files.vocab_txt = std::move(text);
  } else {
    files.tokenizer_json = std::move(text);
  }
  return files;
}

}  // namespace

ImportedTokenizer import_tokenizer(const checkpoint::Checkpoint& checkpoint,
                                   std::size_t vocab_size) {
  std::optional<UnsupportedTokenizer> reason;
  ImportedTokenizer out;
  if (const checkpoint::GgufFile* gguf = checkpoint::gguf_of(checkpoint)) {
    out = from_gguf(*gguf, checkpoint.where(), vocab_size, reason);
  } else {
    const SideFiles files =
        read_files([&](const char* name) { return checkpoint.side_file(name); });
    out = from_files(files, checkpoint.where(), vocab_size, reason);
  }
  if (reason) out.notices.push_back(with_hint(*reason));
  return out;
}

ImportedTokenizer import_tokenizer_file(const std::filesystem::path& path) {
  std::optional<UnsupportedTokenizer> reason;
  ImportedTokenizer out;
  std::error_code error;
  const bool directory = std::filesystem::is_directory(path, error);
  const std::string where = base::printable(path.string());
  if (directory) {
    out = from_files(read_directory(path), where, 0, reason);
    if (!reason && out.description.model == "none")
      base::reject(where, "no tokenizer in this directory", {},
                   "tokenizer.json, tokenizer.model, spiece.model, vocab.json with merges.txt or "
                   "source.spm, or vocab.txt");
  } else {
    const base::MappedFile file(path);
    if (is_gguf(file.bytes())) {
      const checkpoint::GgufFile gguf = checkpoint::parse_gguf(file.bytes(), where);
      if (gguf.find("tokenizer.ggml.model") == nullptr)
        base::reject(where, "this GGUF has no tokenizer");
      out = from_gguf(gguf, where, 0, reason);
    } else {
      if (file.bytes().size() > kMostJsonBytes) base::reject(where, "file is too large");
      out = from_files(around_file(path, file.bytes()), where, 0, reason);
      if (!reason && out.description.model == "none") base::reject(where, "an empty file");
    }
  }
  if (reason) base::reject(where, with_hint(*reason));
  return out;
}

}  // namespace quern::convert
