#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/hash.hpp"
#include "batch/json_scan.hpp"
#include "batch/line_index.hpp"
#include "catch.hpp"

using namespace quern;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("quern-batch-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path file(const std::string& text, const char* name = "in") const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

bool valid(std::string_view text) {
  std::vector<batch::JsonMember> members;
  return !batch::scan_json(text, members);
}

std::vector<std::pair<std::uint64_t, std::string>> lines_of(const fs::path& path) {
  const batch::InputFile file(path);
  batch::LineReader reader(file);
  batch::Line line;
  std::vector<std::pair<std::uint64_t, std::string>> lines;
  while (reader.next(line)) {
    CHECK(line.hash == base::xxh3(base::as_bytes(line.text)));
    CHECK(line.n_bytes == line.text.size());
    lines.emplace_back(line.number, std::string(line.text));
  }
  return lines;
}

}  // namespace

TEST_CASE("the scanner takes JSON and nothing else") {
  for (const char* text : {"{}", "[]", "0", "-0.5e+7", "\"\"", " {\"a\" : [1, {\"b\":null}] , \"c\":true}\t", "\"\\u00e9\\ud83d\\ude00\"",
                           "\"\xC3\xA9\xF0\x9F\x98\x80\"", "false", "[1,2,[3]]", "1E5"})
    CHECK(valid(text));
  for (const char* text :
       {"", " ", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", "-", ".5", "+1", "1e", "nul", "nulll", "\"", "\"\\x\"", "\"\\u12\"",
        "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\x01\"", "\"\xFF\"", "\"\xC0\xAF\"", "\"\xED\xA0\x80\"", "{} {}", "NaN",
        "Infinity", "'a'", "{\"a\" 1}", "{1:2}", "[1 2]", "\"a\nb\""})
    CHECK_FALSE(valid(text));
  CHECK_FALSE(valid(std::string_view("{}\0", 3)));
  CHECK(valid(std::string(128, '[') + std::string(128, ']')));
  CHECK_FALSE(valid(std::string(129, '[') + std::string(129, ']')));
  CHECK_FALSE(valid(std::string(1000000, '[')));
}

TEST_CASE("members and strings of the scanner") {
  std::vector<batch::JsonMember> members;
  const std::string text = R"( {"id": "a\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00", "x" : {"id": 1}, "n": -2.5 } )";
  REQUIRE_FALSE(batch::scan_json(text, members));
  REQUIRE(members.size() == 3);
  CHECK(batch::json_string(batch::find_member(members, "id")->value) == "a\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(batch::find_member(members, "x")->value == "{\"id\": 1}");
  CHECK(batch::find_member(members, "n")->value == "-2.5");
  CHECK(batch::find_member(members, "y") == nullptr);
  CHECK_FALSE(batch::json_string("5"));
  REQUIRE_FALSE(batch::scan_json("[{\"a\": 1}]", members));
  CHECK(members.empty());
}

TEST_CASE("lines: ends, blanks, marks, and a last one without end") {
  const Folder folder;
  using Lines = std::vector<std::pair<std::uint64_t, std::string>>;
  const Lines two = {{1, "a"}, {2, "b "}};
  CHECK(lines_of(folder.file("a\nb \n")) == two);
  CHECK(lines_of(folder.file("a\r\nb \r\n")) == two);
  CHECK(lines_of(folder.file("a\nb ")) == two);
  CHECK(lines_of(folder.file("\xEF\xBB\xBF" "a\nb \n")) == two);
  CHECK(lines_of(folder.file("\n \t\na\n\r\nb\r")) == Lines{{3, "a"}, {5, "b"}});
  CHECK(lines_of(folder.file("a\rb\r\r\n")) == Lines{{1, "a\rb\r"}});
  CHECK(lines_of(folder.file("")).empty());
  CHECK(lines_of(folder.file("\xEF\xBB\xBF")).empty());
}

TEST_CASE("lines over many blocks, and one that is too long") {
  const Folder folder;
  std::string text;
  std::vector<std::pair<std::uint64_t, std::string>> expected;
  for (std::size_t i = 0; i < 60; ++i) {
    std::string line(2 + i * 7919 % 70000, static_cast<char>('a' + i % 26));
    if (i % 3 == 0) line.back() = '\r';
    text += line + (i % 2 == 0 ? "\r\n" : "\n");
    if (i % 2 == 1 && line.ends_with('\r')) line.pop_back();
    expected.emplace_back(i + 1, line);
  }
  CHECK(lines_of(folder.file(text)) == expected);
  const std::string longest(batch::kMaxLineBytes, 'x');
  const batch::InputFile file(folder.file("a\n" + longest + "y\nb\n" + longest + "\n"));
  batch::LineReader reader(file);
  batch::Line line;
  REQUIRE(reader.next(line));
  REQUIRE(reader.next(line));
  CHECK(line.too_long());
  CHECK(line.n_bytes == longest.size() + 1);
  CHECK(line.hash == base::xxh3(base::as_bytes(longest + "y")));
  CHECK(line.text.empty());
  REQUIRE(reader.next(line));
  CHECK(line.text == "b");
  REQUIRE(reader.next(line));
  CHECK_FALSE(line.too_long());
  CHECK(line.text == longest);
  CHECK_FALSE(reader.next(line));
}

TEST_CASE("an input that changes is noticed") {
  const Folder folder;
  const fs::path path = folder.file("a\nb\n");
  const batch::InputFile file(path);
  file.check_unchanged();
  folder.file("a\nb\nc\n");
  CHECK_THROWS_AS(file.check_unchanged(), base::Error);
  const batch::InputFile second(path);
  fs::rename(path, folder.path / "other");
  CHECK_THROWS_AS(second.check_unchanged(), base::Error);
  CHECK_THROWS_AS(batch::InputFile(folder.path), base::Error);
  CHECK_THROWS_AS(batch::InputFile(folder.path / "absent"), base::Error);
}

TEST_CASE("the format of an input") {
  const Folder folder;
  const auto detected = [&](const std::string& text, const char* name) {
    return batch::detect_format(batch::InputFile(folder.file(text, name)), name);
  };
  CHECK(detected("hello\n", "x") == batch::InputFormat::text);
  CHECK(detected("hello\n{\"body\":1}\n", "x.txt") == batch::InputFormat::text);
  CHECK(detected("hello\n{\"body\":1}\n", "x.jsonl") == batch::InputFormat::openai);
  CHECK(detected("{\"prompt\":1}\n{\"body\":1}\n", "x") == batch::InputFormat::jsonl);
  CHECK(detected("{broken\n{\"url\":1}\n", "x") == batch::InputFormat::openai);
  CHECK(detected("\"text\"\n", "x") == batch::InputFormat::jsonl);
  CHECK(detected("\n\n", "x") == batch::InputFormat::jsonl);
}

TEST_CASE("keys: of custom_id and line, else of number and line") {
  const Folder folder;
  const auto keys = [&](const std::string& text, batch::InputFormat format) {
    const batch::InputFile file(folder.file(text));
    const batch::LineIndex index(file, format);
    std::vector<std::uint64_t> out;
    for (std::size_t i = 0; i < index.size(); ++i) out.push_back(index.key(i));
    return out;
  };
  const std::string a = R"({"id":"a","prompt":"x"})" "\n", b = R"({"id":"b","prompt":"x"})" "\n", c = R"({"prompt":"x"})" "\n";
  const auto one = keys(a + b + c + c, batch::InputFormat::jsonl);
  const auto two = keys(b + "\r\n" + a + c, batch::InputFormat::jsonl);
  REQUIRE(one.size() == 4);
  REQUIRE(two.size() == 3);
  CHECK(one[0] == two[1]);
  CHECK(one[1] == two[0]);
  CHECK(one[2] != one[3]);
  CHECK(keys(R"({"id":"a","prompt":"y"})", batch::InputFormat::jsonl)[0] != one[0]);
  CHECK_THROWS_WITH(keys(a + b + a, batch::InputFormat::jsonl), Catch::Contains(":3") && Catch::Contains("line 1"));
  CHECK(keys(a + b + a, batch::InputFormat::text).size() == 3);
  for (const std::uint64_t key : one) CHECK(batch::key_of_request_id(batch::request_id(key)) == key);
  for (const char* id : {"", "batch_req_", "batch_req_123", "batch_req_zzzzzzzzzzzzzzzz", "x", "batch_req_00000000000000000"})
    CHECK_FALSE(batch::key_of_request_id(id));
}

TEST_CASE("seeds depend on the line, not on its place") {
  CHECK(batch::seed_of(5, 0, 77, 0) == 5);
  CHECK(batch::seed_of(5, 0, 77, 1) == batch::seed_of(5, 9, 78, 1));
  CHECK(batch::seed_of(5, 0, 77, 1) != batch::seed_of(5, 0, 77, 2));
  CHECK(batch::seed_of(std::nullopt, 0, 77, 0) != batch::seed_of(std::nullopt, 1, 77, 0));
  CHECK(batch::seed_of(std::nullopt, 0, 77, 0) != batch::seed_of(std::nullopt, 0, 78, 0));
  for (std::uint64_t key = 0; key < 1000; ++key) CHECK(batch::seed_of(std::nullopt, 0, key, key % 3) <= INT64_MAX);
}
