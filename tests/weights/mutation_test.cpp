// Files whose checksums are right and whose content is hostile: each field of header and directory
// set to values an attacker would choose, one by one and at random.
#include <chrono>
#include <functional>
#include <random>

#include "sample_file.hpp"

using namespace quern;
using namespace quern::weights;
using namespace quern::weights::testing;

namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

struct Mutation {
  const char* what;
  std::function<void(FileBytes&)> apply;
  const char* message;
};

std::vector<Mutation> header_mutations() {
  return {
      {"n_sections 0", [](FileBytes& f) { put(f, 60, 0U), put(f, 56, 0U); },
       "sections are the tensors"},
      {"n_sections 2^32-1", [](FileBytes& f) { put(f, 56, ~0U); }, "more sections"},
      {"n_sections one more", [](FileBytes& f) { put(f, 56, 8U); }, "sections are the tensors"},
      {"n_tensors one more", [](FileBytes& f) { put(f, 60, 6U); }, "wrong kind"},
      {"n_tensors 2^32-1", [](FileBytes& f) { put(f, 60, ~0U); }, "sections are the tensors"},
      {"n_tensors = n_sections", [](FileBytes& f) { put(f, 60, 7U); }, "sections are the tensors"},
      {"n_tensors one less", [](FileBytes& f) { put(f, 60, 4U); }, "sections are the tensors"},
      {"directory_offset 2^63", [](FileBytes& f) { put(f, 24, kHuge); }, "must end the file"},
      {"directory_offset 0", [](FileBytes& f) { put(f, 24, std::uint64_t{0}); },
       "directory offset"},
      {"directory_offset misaligned", [](FileBytes& f) { put(f, 24, directory_offset(f) + 1); },
       "directory offset"},
      {"directory_bytes 2^64-1", [](FileBytes& f) { put(f, 32, ~std::uint64_t{0}); }, "overflows"},
      {"directory_bytes one less", [](FileBytes& f) { put(f, 32, get<std::uint64_t>(f, 32) - 1); },
       "must end the file"},
      {"file_bytes 2^63", [](FileBytes& f) { put(f, 16, kHuge); }, "truncated"},
      {"reserved", [](FileBytes& f) { put(f, 112, std::uint64_t{1}); }, "reserved"},
  };
}

// Changes field `at` of entry i.
template <class T>
std::function<void(FileBytes&)> set(std::size_t i, std::uint64_t at, T value) {
  return [=](FileBytes& f) { put(f, entry_offset(f, i) + at, value); };
}
template <class T>
std::function<void(FileBytes&)> add(std::size_t i, std::uint64_t at, T value) {
  return [=](FileBytes& f) {
    const std::uint64_t place = entry_offset(f, i) + at;
    put(f, place, static_cast<T>(get<T>(f, place) + value));
  };
}

std::vector<Mutation> entry_mutations() {
  const std::uint64_t one = 1, line = 64;
  return {
      {"offset 2^63", set(1, 0, kHuge), "section offset"},
      {"offset wraps with length", set(1, 0, ~std::uint64_t{0} - 63), "section offset"},
      {"offset 0", set(0, 0, std::uint64_t{0}), "section offset"},
      {"misaligned", add(2, 0, one), "section offset"},
      {"a gap of a line", add(2, 0, line), "section offset"},
      {"overlap", add(2, 0, std::uint64_t{0} - 64), "section offset"},
      {"length 0", set(1, 8, std::uint64_t{0}), "section length"},
      {"length 2^63", set(1, 8, kHuge), "section length"},
      {"length 2^64-1", set(1, 8, ~std::uint64_t{0}), "section length"},
      {"one byte longer", add(1, 8, one), "length of [1, 5] rows_f32"},
      {"a row less", add(1, 24, ~std::uint64_t{0}), "shape out of range"},
      {"a panel more", add(0, 24, std::uint64_t{16}), "length of [36, 96] q4"},
      {"columns of the next step", add(0, 32, std::uint64_t{32}), "length of [20, 128] q4"},
      {"rows 2^63", set(0, 24, kHuge), "shape out of range"},
      {"columns 2^63", set(0, 32, kHuge), "shape out of range"},
      {"columns 0", set(0, 32, std::uint64_t{0}), "shape out of range"},
      {"rows x columns wraps",
       [](FileBytes& f) {
         put(f, entry_offset(f, 1) + 24, std::uint64_t{1} << 40);
         put(f, entry_offset(f, 1) + 32, std::uint64_t{1} << 40);
       },
       "overflows"},
      {"panels x panel bytes wraps",
       [](FileBytes& f) {
         put(f, entry_offset(f, 0) + 24, std::uint64_t{1} << 40);
         put(f, entry_offset(f, 0) + 32, std::uint64_t{1} << 40);
       },
       "overflows"},
      {"format 0", set(0, 44, 0U), "unknown number format 0"},
      {"format of the future", set(0, 44, 77U), "unknown number format 77"},
      {"another format", set(0, 44, 16U), "length of [20, 96] q8"},
      {"kind 0", set(0, 40, 0U), "wrong kind"},
      {"kind of the future", set(5, 40, 9U), "wrong kind"},
      {"kind tokenizer twice", set(6, 40, 2U), "wrong kind"},
      {"name offset", add(1, 48, 1U), "not where it must be"},
      {"name length 2^32-1", set(1, 52, ~0U), "not where it must be"},
      {"name length 0", set(6, 52, 0U), "name is empty"},
      {"name one shorter", add(6, 52, ~0U), "section name"},
      {"reserved", set(3, 56, one), "reserved"},
      {"contract with a shape", set(6, 24, one), "must be zero"},
      {"tokenizer with a format", set(5, 44, 2U), "must be zero"},
      {"control byte in a name",
       [](FileBytes& f) { put(f, entry_offset(f, n_sections(f)), std::byte{0x1B}); },
       "not printable ASCII"},
      {"two tensors of one name",
       [](FileBytes& f) {
         const std::uint64_t names = entry_offset(f, n_sections(f));
         // "decoder.0.0.k.weight" -> "...q.weight"
         const std::uint64_t k = names + get<std::uint32_t>(f, entry_offset(f, 3) + 48) + 12;
         REQUIRE(get<char>(f, k) == 'k');
         put(f, k, 'q');
       },
       "occurs twice"},
  };
}

}  // namespace

TEST_CASE("each hostile field is refused with its own message, in less than 50 ms") {
  const FileBytes file = write_sample();
  REQUIRE(n_sections(file) == 7);
  std::vector<Mutation> mutations = header_mutations();
  for (Mutation& mutation : entry_mutations()) mutations.push_back(std::move(mutation));
  for (const Mutation& mutation : mutations) {
    FileBytes hostile = file;
    mutation.apply(hostile);
    fix_checksums(hostile);
    const auto begin = std::chrono::steady_clock::now();
    const std::string line = error_of(hostile);
    INFO(mutation.what << ": " << line);
    CHECK(contains(line, mutation.message));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50));
  }
}

TEST_CASE("random mutations are refused, or leave a file whose every view is sound") {
  const FileBytes file = write_sample();
  std::mt19937_64 random(1);
  const std::uint64_t interesting[] = {
      0,          1,         2,      63,     64,    127,       128,        256,
      0x7F,       0xFF,      0x7FFF, 0xFFFF, kHuge, kHuge - 1, ~kHuge - 1, ~std::uint64_t{0},
      0x7FFFFFFF, 0xFFFFFFFF};
  std::size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    FileBytes hostile = file;
    const int n_changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < n_changes; ++i) {
      // A 4-byte field of the header behind the version, or anything in the directory.
      const bool in_header = random() % 4 == 0;
      const std::uint64_t at =
          in_header
              ? 16 + random() % 26 * 4
              : directory_offset(file) + random() % (file.size() - directory_offset(file) - 4);
      std::uint64_t value = interesting[random() % std::size(interesting)];
      if (random() % 2 == 0) value = get<std::uint32_t>(file, at) + random() % 129 - 64;
      if (random() % 4 == 0 && at + 8 <= file.size())
        put(hostile, at, value);
      else
        put(hostile, at, static_cast<std::uint32_t>(value));
    }
    fix_checksums(hostile);
    if (!error_of(hostile).empty()) continue;
    ++accepted;
    const WeightFile parsed = WeightFile::parse(hostile, "model.quern");
    const std::byte* previous_end = hostile.data() + 128;
    for (const TensorView& view : parsed.tensors()) {
      CHECK(view.bytes.data() >= previous_end);
      previous_end = view.bytes.data() + view.bytes.size();
      CHECK(previous_end <= hostile.data() + hostile.size());
      CHECK(view.bytes.size() == quant::tensor_bytes(*view.format, view.rows, view.columns));
      CHECK(parsed.find(view.name) == &view);
    }
  }
  CHECK(accepted < 20000 / 4);  // changes of checksums, hash, or rows within a panel
}
