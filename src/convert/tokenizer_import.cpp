#include "convert/tokenizer_import.hpp"

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
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

ImportedTokenizer from_json(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                            std::optional<UnsupportedTokenizer>& reason) {
  ImportedTokenizer out;
  reason = import_tokenizer_json(files, where, vocab_size, out);
  if (!reason) {
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

SideFiles read_directory(const std::filesystem::path& directory) {
  const auto read = [&](const char* name) {
    const std::filesystem::path path = directory / name;
    std::error_code error;
    return std::filesystem::exists(path, error) ? base::read_text_file(path, kMostJsonBytes)
                                                : std::string();
  };
  return {read("tokenizer.json"), read("tokenizer_config.json"), read("special_tokens_map.json"),
          read("chat_template.jinja"), read("chat_template.json")};
}

}  // namespace

ImportedTokenizer import_tokenizer(const checkpoint::Checkpoint& checkpoint,
                                   std::size_t vocab_size) {
  std::optional<UnsupportedTokenizer> reason;
  ImportedTokenizer out;
  if (const checkpoint::GgufFile* gguf = checkpoint::gguf_of(checkpoint)) {
    out = from_gguf(*gguf, checkpoint.where(), vocab_size, reason);
  } else {
    const SideFiles files{
        checkpoint.side_file("tokenizer.json"), checkpoint.side_file("tokenizer_config.json"),
        checkpoint.side_file("special_tokens_map.json"),
        checkpoint.side_file("chat_template.jinja"), checkpoint.side_file("chat_template.json")};
    if (files.tokenizer_json.empty()) {
      out = without_tokenizer();
      import_side_files(files, out);
      return out;
    }
    out = from_json(files, cat(checkpoint.where(), "/tokenizer.json"), vocab_size, reason);
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
    const SideFiles files = read_directory(path);
    if (files.tokenizer_json.empty()) base::reject(where, "no tokenizer.json in this directory");
    out = from_json(files, cat(where, "/tokenizer.json"), 0, reason);
  } else {
    const base::MappedFile file(path);
    if (is_gguf(file.bytes())) {
      const checkpoint::GgufFile gguf = checkpoint::parse_gguf(file.bytes(), where);
      if (gguf.find("tokenizer.ggml.model") == nullptr)
        base::reject(where, "this GGUF has no tokenizer");
      out = from_gguf(gguf, where, 0, reason);
    } else {
      SideFiles files = read_directory(path.parent_path());
      if (file.bytes().size() > kMostJsonBytes) base::reject(where, "file is too large");
      files.tokenizer_json = std::string(base::as_text(file.bytes()));
      out = from_json(files, where, 0, reason);
    }
  }
  if (reason) base::reject(where, with_hint(*reason));
  return out;
}

}  // namespace quern::convert
