// What the writer writes the reader reads, the same bytes each time, and as docs/FILE_FORMAT.md
// says.
#include <fstream>
#include <sstream>

#include "sample_file.hpp"

using namespace quern;
using namespace quern::weights;
using namespace quern::weights::testing;

TEST_CASE("every tensor comes back: name, format, shape, bytes") {
  const FileBytes bytes = write_sample();
  const WeightFile file = WeightFile::parse(bytes, "model.quern");
  file.verify_checksums();
  const auto expected = sample_tensors();
  REQUIRE(file.tensors().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorView& view = file.tensors()[i];
    INFO(expected[i].name);
    CHECK(view.name == expected[i].name);
    CHECK(view.format == expected[i].format);
    CHECK(view.rows == expected[i].rows);
    CHECK(view.columns == expected[i].columns);
    CHECK(FileBytes(view.bytes.begin(), view.bytes.end()) == sample_content(expected[i]));
    CHECK((view.bytes.data() - bytes.data()) % 64 == 0);
    CHECK(file.find(expected[i].name) == &view);
    if (view.format->id != quant::FormatId::rows_f32)
      CHECK(view.panel(quant::n_panels(view.rows)) == view.bytes.data() + view.bytes.size());
  }
  CHECK(file.find("") == nullptr);
  CHECK(file.find("decoder.0.0.q") == nullptr);
  CHECK(file.find("tokenizer") == nullptr);
  CHECK(file.contract_json() == kSampleContract);
  CHECK(file.contract_hash() == kSampleHash);
  CHECK(base::as_text(file.tokenizer_tables()) == "tables of a tokenizer");
}

TEST_CASE("a model without a tokenizer, and one without tensors") {
  const FileBytes bytes = write_sample(1000, false);
  CHECK(WeightFile::parse(bytes, "model.quern").tokenizer_tables().empty());
  const TemporaryDirectory directory;
  WeightWriter writer(directory / "model.quern");
  const std::uint64_t checksum = writer.finish("{}", 7);
  const WeightFile file = WeightFile::open(directory / "model.quern");
  file.verify_checksums();
  CHECK(file.tensors().empty());
  CHECK(file.contract_json() == "{}");
  CHECK(file.checksum() == checksum);
}

TEST_CASE("the same content gives the same bytes, however it is cut into pieces") {
  const FileBytes bytes = write_sample(1000);
  CHECK(write_sample(1000) == bytes);
  CHECK(write_sample(1) == bytes);
  CHECK(write_sample(1 << 20) == bytes);
}

TEST_CASE("a mapped file stays valid when it is moved") {
  const TemporaryDirectory directory;
  const FileBytes bytes = write_sample();
  std::ofstream(directory / "model.quern", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  WeightFile first = WeightFile::open(directory / "model.quern");
  const WeightFile file = std::move(first);
  file.verify_checksums();
  CHECK(file.contract_json() == kSampleContract);
  CHECK(reinterpret_cast<std::uintptr_t>(file.tensors()[0].bytes.data()) % 64 == 0);
  CHECK(contains(file.where(), "model.quern"));
}

TEST_CASE("an unfinished file is not taken for a model") {
  const TemporaryDirectory directory;
  WeightWriter writer(directory / "model.quern");
  const SampleTensor tensor = sample_tensors()[0];
  writer.begin_tensor(tensor.name, *tensor.format, tensor.rows, tensor.columns);
  writer.append(sample_content(tensor));
  CHECK(contains(error_of(read_file(directory / "model.quern")), "truncated"));  // nothing is written yet
  const FileBytes more(std::size_t{5} << 20, std::byte{1});
  for (int i = 0; i < 3; ++i) {
    writer.append(more);
    CHECK(contains(error_of(read_file(directory / "model.quern")), "not a quern weight file"));
  }
}

TEST_CASE("a file of several pieces of the page cache holds what was appended, however it was cut") {
  const quant::FormatTraits& format = *quant::find_format("f32");
  const std::size_t rows = 16, columns = 100'000;  // 6.4 MB: a piece is 4 MiB
  FileBytes content(quant::tensor_bytes(format, rows, columns));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 % 251);
  FileBytes first;
  for (const std::size_t step : {content.size(), std::size_t{4} << 20, std::size_t{1'000'003}}) {
    const TemporaryDirectory directory;
    WeightWriter writer(directory / "model.quern");
    for (const char* name : {"a", "b"}) {
      writer.begin_tensor(name, format, rows, columns);
      for (std::size_t at = 0; at < content.size(); at += step)
        writer.append(std::span(content).subspan(at, std::min(step, content.size() - at)));
      writer.end_tensor();
    }
    writer.finish(kSampleContract, kSampleHash);
    const WeightFile file = WeightFile::open(directory / "model.quern");
    file.verify_checksums();
    REQUIRE(file.tensors().size() == 2);
    for (const TensorView& tensor : file.tensors())
      CHECK(std::equal(content.begin(), content.end(), tensor.bytes.begin(), tensor.bytes.end()));
    const FileBytes bytes = read_file(directory / "model.quern");
    if (first.empty()) first = bytes;
    CHECK(bytes == first);
  }
}

namespace {

// The bytes of the hex dump in the document's worked example: lines "00000000  51 55 ...".
FileBytes documented_example() {
  std::ifstream document(QUERN_SOURCE_DIR "/docs/FILE_FORMAT.md");
  REQUIRE(document.good());
  FileBytes bytes;
  for (std::string line; std::getline(document, line);) {
    if (line.size() < 10 || line.substr(8, 2) != "  " ||
        line.find_first_not_of("0123456789abcdef") != 8)
      continue;
    REQUIRE(std::stoul(line.substr(0, 8), nullptr, 16) == bytes.size());
    std::istringstream words(line.substr(10, 48));
    for (unsigned value; words >> std::hex >> value;)
      bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

}  // namespace

TEST_CASE("the worked example of FILE_FORMAT.md is what the writer writes") {
  const TemporaryDirectory directory;
  WeightWriter writer(directory / "model.quern");
  const float values[] = {1.0F, -2.0F, 0.5F};
  writer.begin_tensor("norm", *quant::find_format(quant::FormatId::rows_f32), 1, 3);
  writer.append(std::as_bytes(std::span(values)));
  writer.end_tensor();
  writer.finish("{}", 0xC0FFEE);
  CHECK(read_file(directory / "model.quern") == documented_example());
}
