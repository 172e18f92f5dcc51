// Directories: single and sharded, hub caches, and the names and links that must not lead outside.
#include <sys/stat.h>

#include "checkpoint/checkpoint.hpp"
#include "source_makers.hpp"

namespace {

using namespace std::literals;
namespace fs = std::filesystem;
using quern::base::cat;
using quern::checkpoint::Checkpoint;
using quern::checkpoint::open_checkpoint;
using quern::test::mentions;
using quern::test::rejection;
using quern::test::TemporaryDirectory;
using quern::test::vectors_file;

std::string refused(const fs::path& path) {
  return rejection([&] { open_checkpoint(path); });
}

// weight_map text from pairs.
std::string index_text(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out = R"({"metadata":{"total_size":1},"weight_map":{)";
  for (std::size_t i = 0; i < pairs.size(); ++i)
    out += cat(i == 0 ? "" : ",", "\"", pairs[i].first, "\":\"", pairs[i].second, "\"");
  return out + "}}";
}

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";

}  // namespace

TEST_CASE("hub directory: one file", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("config.json", R"({"model_type": "x"})");
  dir.write("model.safetensors", vectors_file({"a", "b"}));
  dir.write("tokenizer.json", "{}");
  const auto source = open_checkpoint(dir.path());
  CHECK(source->kind() == quern::checkpoint::SourceKind::hugging_face);
  CHECK(source->config_json() == R"({"model_type": "x"})");
  CHECK(source->tensors().size() == 2);
  REQUIRE(source->find("b") != nullptr);
  float values[2] = {};
  quern::checkpoint::to_float(*source->find("b"), 0, 2, values);
  CHECK(values[1] == 1.5F);
  CHECK(source->find("c") == nullptr);
  CHECK(source->side_file("tokenizer.json") == "{}");
  CHECK(source->side_file("generation_config.json").empty());
  CHECK(source->side_file("../config.json").empty());
  dir.write("generation_config.json", "");  // a download that broke off
  dir.write("chat_template.jinja", "");
  mentions(rejection([&] { source->side_file("generation_config.json"); }), "generation_config.json: the file is empty");
  CHECK(source->side_file("chat_template.jinja").empty());
  CHECK(source->notices().empty());
  source->check_unchanged();
}

TEST_CASE("hub directory: weights in the folders of further modules", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("config.json", "{}");
  dir.write("model.safetensors", vectors_file({"a"}));
  dir.write("2_Dense/model.safetensors", vectors_file({"a", "b"}));
  dir.write("onnx/model.safetensors", vectors_file({"c"}));
  CHECK(open_checkpoint(dir.path())->tensors().size() == 1);
  dir.write("modules.json", R"([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "2_Dense"}, {"path": 3}, 4, {}])");
  const auto source = open_checkpoint(dir.path());
  CHECK(source->tensors().size() == 3);
  REQUIRE(source->find("2_Dense/b") != nullptr);
  float values[2] = {};
  quern::checkpoint::to_float(*source->find("2_Dense/b"), 0, 2, values);
  CHECK(values[1] == 1.5F);
  for (const char* path : {"..", "../2_Dense", "a/b", "/tmp", "2_Dense/.."}) {
    dir.write("modules.json", cat(R"([{"path": ")", path, "\"}]"));
    CHECK(open_checkpoint(dir.path())->tensors().size() == 1);
  }
  for (const char* text : {"{}", "3", "[", "nul"}) {
    dir.write("modules.json", text);
    CHECK(!refused(dir.path()).empty());
  }
}

TEST_CASE("hub directory: a model in the folder of its first module is found by the error", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("modules.json", "[]");
  dir.write("0_Transformer/config.json", "{}");
  dir.write("0_Transformer/model.safetensors", vectors_file({"a"}));
  dir.write("2_Dense/config.json", "{}");
  mentions(refused(dir.path()), "give 0_Transformer");
}

TEST_CASE("hub directory: shards", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("config.json", "{}");
  dir.write(kShard1, vectors_file({"a", "b"}));
  dir.write(kShard2, vectors_file({"c", "surplus"}, 3));
  dir.write(kIndex, index_text({{"c", kShard2}, {"a", kShard1}, {"b", kShard1}}));
  const auto source = open_checkpoint(dir.path());
  REQUIRE(source->tensors().size() == 3);
  CHECK(source->find("a")->file == 0);
  CHECK(source->find("c")->file == 1);
  CHECK(source->find("c")->values == 3);
  CHECK(source->find("surplus") == nullptr);
  REQUIRE(source->notices().size() == 1);
  mentions(source->notices()[0], "surplus");
}

TEST_CASE("hub directory: index and shards that disagree", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("config.json", "{}");
  dir.write(kShard1, vectors_file({"a", "b"}));
  dir.write(kShard2, vectors_file({"c"}));
  dir.write(kIndex, index_text({{"a", kShard1}, {"b", kShard1}, {"c", kShard2}, {"d", kShard2}}));
  mentions(refused(dir.path()), "tensor \"d\" is named by the index but not in this shard");
  dir.write(kIndex, index_text({{"a", kShard1}, {"b", kShard2}, {"c", kShard2}}));
  mentions(refused(dir.path()), "tensor \"b\" is named by the index but not in this shard");
  dir.write(kIndex, index_text({{"a", kShard1}, {"b", kShard1}, {"c", "model-00003.safetensors"}}));
  mentions(refused(dir.path()), "model-00003.safetensors: shard named by the index is missing");
  dir.write(kShard2, vectors_file({"c", "a"}));
  dir.write(kIndex, index_text({{"a", kShard1}, {"b", kShard1}, {"c", kShard2}}));
  mentions(refused(dir.path()), cat(kShard2, ": tensor \"a\" is also in ", kShard1));
}

TEST_CASE("hub directory: shard names that are not plain file names", "[checkpoint]") {
  const TemporaryDirectory outer;
  outer.write("x.safetensors", vectors_file({"a"}));
  outer.write("model/config.json", "{}");
  const std::string names[] = {"../x.safetensors",
                               "/etc/passwd",
                               "sub/../../x.safetensors",
                               "..\\\\x.safetensors",
                               "",
                               ".",
                               "..",
                               "x\\u0000.safetensors",
                               std::string(5000, 'x') + ".safetensors",
                               "./x.safetensors",
                               (outer.path() / "x.safetensors").string()};
  for (const std::string& name : names) {
    outer.write("model/model.safetensors.index.json", index_text({{"a", name}}));
    mentions(refused(outer.path() / "model"), "shard name must be a plain file name");
  }
  outer.write("model/model.safetensors.index.json",
              index_text({{"a", "pytorch_model-00001-of-00002.bin"}}));
  mentions(refused(outer.path() / "model"), "pickle is not read");
  outer.write("model/model.safetensors.index.json", index_text({{"a", "weights.npz"}}));
  mentions(refused(outer.path() / "model"), "not a safetensors file");
}

TEST_CASE("hub directory: index text", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("config.json", "{}");
  const auto with = [&](const std::string& text) {
    dir.write(kIndex, text);
    return refused(dir.path());
  };
  mentions(with("[]"), "wrong kind of value");
  mentions(with("{}"), "\"weight_map\" is missing");
  mentions(with(R"({"weight_map":{}})"), "names no tensor");
  mentions(with(R"({"weight_map":[]})"), "wrong kind of value");
  mentions(with(R"({"weight_map":{"a":1}})"), "wrong kind of value");
  mentions(with(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"), "duplicate key");
  mentions(with(R"({"weight_map":)" + std::string(100'000, '[')), "nesting");
  mentions(with(""), "not valid JSON");
}

TEST_CASE("hub directory: config.json", "[checkpoint]") {
  const TemporaryDirectory dir;
  dir.write("model.safetensors", vectors_file({"a"}));
  mentions(refused(dir.path()), "config.json is missing");
  const auto with = [&](const std::string& text) {
    dir.write("config.json", text);
    return refused(dir.path());
  };
  CHECK(with("{}").empty());
  mentions(with(std::string(100'000, '[')), "nesting > 128");
  mentions(with("[]"), "wrong kind of value");
  mentions(with("{}\0{"s), "NUL");
  mentions(with("{/* */}"), "not valid JSON");
  mentions(with(R"({"a":1e999})"), "config.json");
  mentions(with("{}" + std::string(5'000'000, ' ')), "too large");
  dir.write("config.json", R"({"auto_map":{"AutoModel":"modeling_x.X"}})");
  dir.write("modeling_x.py", "print('never run')");
  const auto source = open_checkpoint(dir.path());
  REQUIRE(source->notices().size() == 2);
  mentions(source->notices()[0], "auto_map");
  mentions(source->notices()[1], "modeling_x.py");
}

TEST_CASE("hub directory: pickles and other things without safetensors", "[checkpoint]") {
  const TemporaryDirectory dir;
  mentions(refused(dir.path()), "no model.safetensors");
  mentions(refused(dir.path() / "absent"), "no such file or directory");
  dir.write("config.json", "{}");
  dir.write("pytorch_model.bin", "PK\x03\x04");
  mentions(refused(dir.path()), "pickle is not read");
  mentions(refused(dir.path() / "pytorch_model.bin"), "pickle is not read");
  dir.write("m.gguf", "GGUF");
  mentions(refused(dir.path()), "give the GGUF file itself: m.gguf");
  dir.write("model.safetensors", "PK\x03\x04\x14\0\0\0\x08\0"s);
  mentions(refused(dir.path()), "pickle is not read");
  mentions(refused(dir.path() / "config.json"), "give the directory");
  dir.write("model.safetensors", vectors_file({"a"}));
  mentions(refused(dir.path() / "model.safetensors"), "give the directory");
  dir.write("notes.txt", "notes");
  mentions(refused(dir.path() / "notes.txt"), "neither");
  REQUIRE(mkfifo((dir.path() / "pipe").c_str(), 0600) == 0);
  mentions(refused(dir.path() / "pipe"), "not a regular file");
  mentions(refused("/dev/zero"), "not a regular file");
}

TEST_CASE("hub directory: links", "[checkpoint]") {
  const TemporaryDirectory root;
  root.write("elsewhere/model.safetensors", vectors_file({"a"}));
  root.write("model/config.json", "{}");
  fs::create_symlink("../elsewhere/model.safetensors", root.path() / "model/model.safetensors");
  mentions(refused(root.path() / "model"), "link leads out");
  fs::remove(root.path() / "model/model.safetensors");
  root.write("model/real.safetensors", vectors_file({"a"}));
  fs::create_symlink("real.safetensors", root.path() / "model/model.safetensors");
  CHECK(refused(root.path() / "model").empty());
  fs::create_directory_symlink("model", root.path() / "alias");
  CHECK(refused(root.path() / "alias").empty());
  fs::create_symlink("../elsewhere/model.safetensors", root.path() / "model/tokenizer.json");
  const auto source = open_checkpoint(root.path() / "model");
  mentions(rejection([&] { source->side_file("tokenizer.json"); }), "link leads out");
  fs::remove(root.path() / "model/real.safetensors");
  CHECK_FALSE(refused(root.path() / "model").empty());
}

TEST_CASE("hub cache: snapshots are links into the cache's own blobs", "[checkpoint]") {
  const TemporaryDirectory root;
  const std::string hub = "hub/models--a--b/";
  root.write(hub + "blobs/1111", "{}");
  root.write(hub + "blobs/2222", vectors_file({"a", "b"}));
  root.write(hub + "blobs/3333", vectors_file({"c"}));
  root.write(hub + "blobs/4444", index_text({{"a", kShard1}, {"b", kShard1}, {"c", kShard2}}));
  const fs::path snapshot = root.path() / hub / "snapshots/abc";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/1111", snapshot / "config.json");
  fs::create_symlink("../../blobs/2222", snapshot / kShard1);
  fs::create_symlink("../../blobs/3333", snapshot / kShard2);
  fs::create_symlink("../../blobs/4444", snapshot / kIndex);
  CHECK(open_checkpoint(snapshot)->tensors().size() == 3);
  fs::create_directory_symlink(snapshot, root.path() / "short");
  CHECK(open_checkpoint(root.path() / "short")->tensors().size() == 3);

  // Another model's blobs are outside.
  root.write("hub/models--c--d/blobs/3333", vectors_file({"c"}));
  fs::remove(snapshot / kShard2);
  fs::create_symlink("../../../models--c--d/blobs/3333", snapshot / kShard2);
  mentions(refused(snapshot), "link leads out");
  // So is a link in blobs that goes on elsewhere.
  fs::remove(snapshot / kShard2);
  fs::create_symlink("../../models--c--d/blobs/3333", root.path() / hub / "blobs/5555");
  fs::create_symlink("../../blobs/5555", snapshot / kShard2);
  mentions(refused(snapshot), "link leads out");
}

TEST_CASE("a source that changes is noticed", "[checkpoint]") {
  const TemporaryDirectory dir;
  const auto fresh = [&] {
    dir.write("config.json", "{}");
    dir.write("model.safetensors", vectors_file({"a"}));
    return open_checkpoint(dir.path());
  };
  const auto changed = [](const Checkpoint& source) {
    return rejection([&] { source.check_unchanged(); });
  };
  auto source = fresh();
  CHECK(changed(*source).empty());
  dir.write("new", vectors_file({"a"}));
  fs::rename(dir.path() / "new", dir.path() / "model.safetensors");
  mentions(changed(*source), "source changed during conversion");
  source = fresh();
  fs::last_write_time(dir.path() / "model.safetensors", fs::file_time_type::clock::now() + 5s);
  mentions(changed(*source), "source changed");
  source = fresh();
  dir.write("config.json", "{ }");
  mentions(changed(*source), "config.json");
  source = fresh();
  fs::remove(dir.path() / "model.safetensors");
  mentions(changed(*source), "source changed");
}
