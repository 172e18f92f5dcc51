#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "batch/output_log.hpp"
#include "batch/reorder.hpp"
#include "catch.hpp"

using namespace quern;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("quern-batch-out-" + std::to_string(getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
};

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

batch::Manifest manifest_of(const batch::LineIndex& index) {
  batch::Manifest m;
  m.model_name = "model";
  m.model_hash = "0123";
  m.quern_version = "1";
  m.options = {{"--predict", "5"}, {"--temp", "0.7"}};
  m.format = "text";
  m.n_lines = index.size();
  m.digest = index.digest(index.size());
  m.now = "2026-01-15T12:00:00";
  return m;
}

std::string answer(const batch::LineIndex& index, std::size_t i) {
  return "{\"id\":\"" + batch::request_id(index.key(i)) + "\",\"text\":\"" + std::to_string(i) + "\",\"error\":" +
         (i % 3 == 1 ? "{\"code\":\"x\"}" : "null") + "}\n";
}

}  // namespace

TEST_CASE("a manifest is read as it was written, and differences are named") {
  batch::Manifest m;
  m.model_name = "na\"me";
  m.model_hash = "00ff";
  m.options = {{"--stop", "a\nb"}, {"--temp", "1"}};
  m.format = "openai";
  m.n_lines = 1000000;
  m.digest = 0xFEDCBA9876543210;
  m.now = "now";
  const std::string text = batch::manifest_text(m, {12345, true});
  const batch::StoredManifest stored = batch::parse_manifest(text, "x");
  CHECK(stored.manifest.options == m.options);
  CHECK(stored.manifest.digest == m.digest);
  CHECK(stored.manifest.n_lines == m.n_lines);
  CHECK(stored.sync.synced_bytes == 12345);
  CHECK(stored.sync.unsure);
  CHECK(text.substr(stored.sync_offset) == batch::sync_line({12345, true}));
  CHECK(batch::sync_line({0, false}).size() == batch::sync_line({UINT64_MAX / 2, true}).size());
  std::string torn = text;
  torn[torn.find("\"again\"") + 28] = '6';
  CHECK(batch::parse_manifest(torn, "x").sync.synced_bytes == 0);
  batch::check_same(m, m, "x");
  const auto differs = [&](auto change, const char* word) {
    batch::Manifest other = m;
    change(other);
    CHECK_THROWS_WITH(batch::check_same(m, other, "out"), Catch::Contains("output was made with") && Catch::Contains(word));
  };
  differs([](auto& o) { o.model_hash = "1"; }, "the model");
  differs([](auto& o) { o.options[1].second = "2"; }, "--temp 1, this run has 2");
  differs([](auto& o) { o.options.pop_back(); }, "--temp 1, this run has none");
  differs([](auto& o) { o.options.emplace_back("--ids", "true"); }, "--ids none, this run has true");
  differs([](auto& o) { o.format = "text"; }, "format");
  differs([](auto& o) { o.n_lines = 5; }, "lines");
  differs([](auto& o) { o.digest = 5; }, "input");
  for (std::size_t cut = 0; cut < text.size() - 1; ++cut)
    CHECK_THROWS_AS(batch::parse_manifest(text.substr(0, cut), "x"), base::Error);
}

TEST_CASE("a manifest's second line torn at every byte is the old one, the new one, or says that nothing is synced") {
  const batch::Manifest m;
  const std::uint64_t counts[] = {0, 7, 60, 613, 1610, 99999, 100000, 1ull << 40, INT64_MAX};
  for (const std::uint64_t before : counts)
    for (const std::uint64_t after : counts)
      for (const bool unsure : {false, true}) {
        const std::string old = batch::manifest_text(m, {before, false}), text = batch::manifest_text(m, {after, unsure});
        for (std::size_t cut = text.find('\n'); cut <= text.size(); ++cut) {
          const batch::SyncState sync = batch::parse_manifest(text.substr(0, cut) + old.substr(cut), "x").sync;
          const bool whole = (sync.synced_bytes == before && !sync.unsure) || (sync.synced_bytes == after && sync.unsure == unsure) ||
                             (before == after && sync.synced_bytes == after);
          const bool nothing = sync.synced_bytes == 0 && !sync.unsure;
          if (!whole && !nothing) CHECK(text.substr(0, cut) + old.substr(cut) == "a torn line that is believed");
        }
      }
  const std::string text = batch::manifest_text(m, {12345, true});
  for (const std::string_view changed : {"\"again\": x", "\"agin\":  1", "\"unsure\": -", "{}\n{}\n"}) {
    std::string damaged = text;
    damaged.replace(damaged.find("\"again\""), changed.size(), changed);
    CHECK_THROWS_AS(batch::parse_manifest(damaged, "x"), base::Error);
  }
}

TEST_CASE("what an output holds, cut at every byte") {
  const Folder folder;
  write(folder.path / "in", "a\nb\nc\nd\n");
  const batch::InputFile input(folder.path / "in");
  const batch::LineIndex fresh(input, batch::InputFormat::text);
  std::string whole;
  std::vector<std::size_t> ends = {0};
  for (std::size_t i = 0; i < 4; ++i) ends.push_back((whole += answer(fresh, i)).size());
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    write(folder.path / "out", whole.substr(0, cut));
    batch::LineIndex index = fresh;
    const int fd = ::open((folder.path / "out").c_str(), O_RDONLY);
    const batch::OutputScan scan = batch::scan_output(fd, "out", {whole.size(), false}, true, index);
    ::close(fd);
    const auto n = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin()) - 1;
    CHECK(scan.good_bytes == ends[n]);
    CHECK(scan.torn_bytes == cut - ends[n]);
    CHECK(scan.n_done + scan.n_failed == n);
    CHECK(scan.n_failed == (n + 1) / 3);
    for (std::size_t i = 0; i < 4; ++i) CHECK(index.done(i) == (i < n));
  }
}

TEST_CASE("what an output may not hold") {
  const Folder folder;
  write(folder.path / "in", "a\nb\nc\nd\n");
  const batch::InputFile input(folder.path / "in");
  const batch::LineIndex fresh(input, batch::InputFormat::text);
  const auto scan = [&](const std::string& text, bool ordered, batch::SyncState sync = {}) {
    write(folder.path / "out", text);
    batch::LineIndex index = fresh;
    const int fd = ::open((folder.path / "out").c_str(), O_RDONLY);
    try {
      const auto result = batch::scan_output(fd, "out", sync, ordered, index);
      ::close(fd);
      return result;
    } catch (...) {
      ::close(fd);
      throw;
    }
  };
  const std::string a = answer(fresh, 0), b = answer(fresh, 1), c = answer(fresh, 2);
  CHECK(scan(b + a, false).n_done == 1);
  CHECK(scan(c + b + a, false).good_bytes == a.size() + b.size() + c.size());
  CHECK_THROWS_WITH(scan(b + a, true), Catch::Contains("line 1"));
  CHECK_THROWS_WITH(scan(a + a, true), Catch::Contains("line 2"));
  CHECK_THROWS_WITH(scan(a + a, false), Catch::Contains("line 2"));
  CHECK_THROWS_WITH(scan(a + "\n" + b, true), Catch::Contains("line 2 is not valid JSON"));
  CHECK_THROWS_WITH(scan(a + "{]\n", true), Catch::Contains("line 2 is not valid JSON"));
  CHECK_THROWS_WITH(scan(a + "{}\n", true), Catch::Contains("line 2"));
  // Pages that a power failure lost, behind what was synced; before it they are damage.
  const std::string lost(50, '\0');
  CHECK(scan(a + lost + "\n" + b, true, {a.size(), false}).good_bytes == a.size());
  CHECK_THROWS_WITH(scan(a + lost + "\n" + b, true, {a.size() + 60, false}), Catch::Contains("line 2 is not valid JSON"));
  const batch::OutputScan unsure = scan(a + b + c, true, {a.size(), true});
  CHECK(unsure.unsure);
  CHECK(unsure.good_bytes == a.size());
  CHECK(unsure.torn_bytes == b.size() + c.size());
}

TEST_CASE("a log is begun, killed and resumed") {
  const Folder folder;
  const fs::path out = folder.path / "out";
  write(folder.path / "in", "a\nb\nc\nd\n");
  const batch::InputFile input(folder.path / "in");
  batch::LineIndex index(input, batch::InputFormat::text);
  {
    batch::OutputLog never(out, batch::Existing::refuse, input);
  }
  CHECK_FALSE(fs::exists(out));
  {
    batch::OutputLog log(out, batch::Existing::refuse, input);
    CHECK_THROWS_WITH(batch::OutputLog(out, batch::Existing::resume, input), Catch::Contains("locked by pid " + std::to_string(getpid())));
    log.begin(manifest_of(index));
    log.append(answer(index, 0));
    log.append(answer(index, 1));
  }
  CHECK_THROWS_WITH(batch::OutputLog(out, batch::Existing::refuse, input), Catch::Contains("exists"));
  std::ofstream(out, std::ios::app) << "{\"torn";
  {
    batch::OutputLog log(out, batch::Existing::resume, input);
    REQUIRE(log.stored());
    batch::check_same(log.stored()->manifest, manifest_of(index), "out");
    const batch::OutputScan scan = batch::scan_output(log.descriptor(), "out", log.stored()->sync, true, index);
    CHECK(scan.torn_bytes == 6);
    log.begin_resumed(manifest_of(index), scan);
    log.append(answer(index, 2));
    log.sync();
    log.append(answer(index, 3));
  }
  CHECK(read(out) == answer(index, 0) + answer(index, 1) + answer(index, 2) + answer(index, 3));
  CHECK(read(batch::torn_path(out)) == "{\"torn\n");
  const auto stored = batch::parse_manifest(read(batch::manifest_path(out)), "m");
  CHECK(stored.sync.synced_bytes == read(out).size() - answer(index, 3).size());
  {
    batch::OutputLog log(out, batch::Existing::overwrite, input);
    CHECK_FALSE(read(out).empty());  // nothing is lost before begin()
    log.begin(manifest_of(index));
  }
  CHECK(read(out).empty());
  CHECK_THROWS_WITH(batch::OutputLog(folder.path / "in", batch::Existing::overwrite, input), Catch::Contains("the input itself"));
  CHECK_THROWS_AS(batch::OutputLog("/dev/null", batch::Existing::resume, input), base::Error);
  batch::OutputLog stream("/dev/null", batch::Existing::refuse, input);
  CHECK(stream.is_stream());
}

TEST_CASE("answers leave in order, and what waits is bounded") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    batch::Reorder reorder(true, 8, 1000);
    std::vector<std::size_t> begun;
    std::string written, expected;
    std::size_t next = 0;
    while (next < 100 || !begun.empty()) {
      if (next < 100 && reorder.has_room(next) && random() % 2 == 0) {
        expected += std::to_string(next) + "\n";
        begun.push_back(next++);
      } else if (!begun.empty()) {
        const std::size_t k = random() % begun.size();
        reorder.finish(begun[k], {std::to_string(begun[k]) + "\n", false}, [&](const batch::FinishedLine& line) { written += line.text; });
        begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(k));
        CHECK(reorder.n_waiting() < 8);
      }
    }
    CHECK(written == expected);
  }
  batch::Reorder heavy(true, 100, 10);
  heavy.finish(1, {"01234567890", false}, [](const batch::FinishedLine&) {});
  CHECK_FALSE(heavy.has_room(2));
  std::size_t n = 0;
  heavy.finish(0, {"x", true}, [&](const batch::FinishedLine& line) { n += line.text.size(); });
  CHECK(n == 12);
  CHECK(heavy.has_room(2));
  batch::Reorder free(false);
  std::string order;
  for (const std::size_t i : {3U, 0U, 2U}) free.finish(i, {std::to_string(i), false}, [&](const batch::FinishedLine& l) { order += l.text; });
  CHECK(order == "302");
}
