// Snapshots: a restored session goes on with the bits of one that was never interrupted, whatever the
// cache holds; and nothing that is damaged or of another model gets in.
#include "engine/snapshot.hpp"

#include <sys/stat.h>

#include <random>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "engine/session_cases.hpp"
#include "kernels/select.hpp"

namespace quern::tests {

namespace {

using engine::Session;
using kernels::CacheType;

// The header's checksum made good again after a change: what a careful forger writes.
template <class T>
FileBytes forged(FileBytes bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  const std::uint64_t sum = base::xxh3(base::Bytes(bytes).first(128));
  std::memcpy(bytes.data() + 128, &sum, sizeof(sum));
  return bytes;
}

void check_refused(Session& session, base::Bytes bytes, const std::string& words) {
  INFO(words);
  try {
    engine::restore_snapshot(session, bytes, "the-file");
    FAIL("no error");
  } catch (const base::Error& error) {
    INFO(error.what());
    CHECK(error.code() == base::ExitCode::input);
    CHECK(std::string(error.what()).find("the-file") != std::string::npos);
    CHECK(std::string(error.what()).find(words) != std::string::npos);
  }
  CHECK(session.tokens().empty());
  CHECK(session.cache().length(0) == 0);
}

struct Saved {
  SessionDirectory directory;
  TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool{1};
  Session session{*tiny.model, pool, session_options({})};
  Ids prompt = random_ids(20, 101);
  FileBytes bytes;

  Saved() {
    answer_greedily(session, prompt, 3);
    bytes = snapshot_of(session, directory);
  }
};

}  // namespace

TEST_CASE("a restored session goes on with the very bits, for every mechanism", "[snapshot]") {
  const SessionDirectory directory;
  for (const Variant& variant : cache_variants()) {
    INFO(variant.name);
    const TinyModel tiny = make_model(variant.contract, "q8");
    for (const std::size_t n : {1, 26, 27, 90, 230}) {
      INFO(n);
      check_restored(*tiny.model, n, {}, directory);
    }
  }
}

TEST_CASE("a restored session goes on with the very bits, for every type of cache", "[snapshot]") {
  const SessionDirectory directory;
  std::vector<Contract> contracts = {tiny_contract(), mla_contract(), nsa_contract()};
  attention_of(contracts[0]).mask.window = 50;
  attention_of(contracts[0]).mask.sinks = 3;
  with_indexer(contracts[1], 40);
  const CacheType types[] = {CacheType::f32,  CacheType::bf16,     CacheType::f16,
                             CacheType::int8, CacheType::fp8_e4m3, CacheType::fp8_e5m2, CacheType::int4};
  for (const Contract& contract : contracts) {
    const TinyModel tiny = make_model(contract, "q8");
    for (const CacheType k : types)
      for (const CacheType v : types) {
        if (k == CacheType::int4 && &contract == &contracts[1]) continue;  // no latent form
        SessionShape shape;
        shape.k_type = k;
        shape.v_type = v;
        check_restored(*tiny.model, 73, shape, directory);
      }
  }
}

TEST_CASE("latent attention that expands is restored too, but not into a deterministic session", "[snapshot]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(mla_contract(), "q8");
  SessionShape shape;
  shape.deterministic = false;
  base::ThreadPool pool(1);
  Session session(*tiny.model, pool, session_options(shape));
  answer_greedily(session, random_ids(90, 101), 4);
  const FileBytes saved = snapshot_of(session, directory);
  Session same(*tiny.model, pool, session_options(shape));
  CHECK(engine::restore_snapshot(same, saved, "saved").n_tokens == 93);
  shape.deterministic = true;
  Session strict(*tiny.model, pool, session_options(shape));
  check_refused(strict, saved, "--deterministic");
}

TEST_CASE("a snapshot holds the tokens held and no byte of those rolled back", "[snapshot]") {
  const SessionDirectory directory;
  for (const Variant& variant : cache_variants()) {
    INFO(variant.name);
    const TinyModel tiny = make_model(variant.contract, "q8");
    for (const CacheType type : {CacheType::int8, CacheType::bf16, CacheType::f32}) {
      SessionShape shape;
      shape.k_type = shape.v_type = type;
      base::ThreadPool pool(2);
      Session session(*tiny.model, pool, session_options(shape));
      const Ids secret = random_ids(120, 101, 11);
      answer_greedily(session, secret, 30);
      for (const std::size_t n : {100, 75, 33, 5}) {  // ever shorter: what was behind stays in memory
        answer_greedily(session, first_ids(secret, n), 1);
        CHECK(snapshot_of(session, directory) == fresh_snapshot(*tiny.model, first_ids(secret, n), shape, directory));
      }
    }
  }
}

TEST_CASE("snapshots of another instruction set are restored, and it is said", "[snapshot]") {
  const SessionDirectory directory;
  const Contract contract = tiny_contract();
  const TinyModel native = make_model(contract, "q8");
  const kernels::Kernels& scalar = kernels::select_kernels("scalar");
  if (std::string(native.model->kernels->name) == scalar.name) return;
  const TinyModel other = make_model(contract, "q8", 1, scalar);
  base::ThreadPool pool(1);
  Session writer(*other.model, pool, session_options({})), reader(*native.model, pool, session_options({}));
  answer_greedily(writer, random_ids(40, 101), 3);
  const engine::RestoreResult result = engine::restore_snapshot(reader, snapshot_of(writer, directory), "saved");
  CHECK(result.other_isa);
  CHECK(result.info.isa == "scalar");
  CHECK(reader.tokens().size() == 42);
  const Ids next = joined_ids(reader.tokens(), {1, 2, 3});
  CHECK(answer_greedily(reader, next, 9).ids == answer_greedily(writer, next, 9).ids);
}

TEST_CASE("a snapshot that is cut, changed or longer is refused and the session stays empty", "[snapshot]") {
  Saved s;
  const base::Bytes bytes(s.bytes);
  for (std::size_t i = 0; i < 64; ++i) check_refused(s.session, bytes.first(bytes.size() * i / 64), "");
  check_refused(s.session, bytes.first(bytes.size() - 1), "truncated");
  FileBytes longer = s.bytes;
  longer.push_back(std::byte{0});
  check_refused(s.session, longer, "surplus");
  for (std::size_t at = 0; at < s.bytes.size(); ++at) {
    FileBytes flipped = s.bytes;
    flipped[at] ^= std::byte{static_cast<unsigned char>(1U << at % 8)};
    check_refused(s.session, flipped, "");
  }
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    FileBytes noise(random() % 400);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    if (round % 2 == 0) std::memcpy(noise.data(), s.bytes.data(), std::min<std::size_t>(noise.size(), 16));
    check_refused(s.session, noise, "");
  }
  // After all of that it is a session like any other.
  CHECK(engine::restore_snapshot(s.session, s.bytes, "saved").n_tokens == 22);
  Session fresh(*s.tiny.model, s.pool, session_options({}));
  CHECK(answer_greedily(s.session, s.prompt, 9).ids == answer_greedily(fresh, s.prompt, 9).ids);
}

TEST_CASE("a snapshot with honest checksums and false contents is refused", "[snapshot]") {
  Saved s;
  Session& session = s.session;
  check_refused(session, forged(s.bytes, 8, std::uint32_t{2}), "unknown version");
  check_refused(session, forged(s.bytes, 12, std::uint32_t{8}), "flags");
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{s.bytes.size() + 4}, UINT64_MAX})
    check_refused(session, forged(s.bytes, 16, size), "");
  check_refused(session, forged(s.bytes, 24, std::uint64_t{1}), "another model (its contract");
  check_refused(session, forged(s.bytes, 32, std::uint64_t{1}), "another model (its weights");
  check_refused(session, forged(s.bytes, 40, std::uint64_t{1}), "layout");
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{21}, std::uint64_t{1} << 61, std::uint64_t{1} << 62, UINT64_MAX}) {
    check_refused(session, forged(s.bytes, 64, n), "");
    check_refused(session, forged(s.bytes, 72, n), "");
  }
  check_refused(session, forged(s.bytes, 96, std::uint8_t{0}), "cache types (-ctk, -ctv) (got f32, int8");
  check_refused(session, forged(s.bytes, 97, std::uint8_t{77}), "unknown");
  // Ids out of range, with checksums that say so.
  for (const std::int32_t id : {101, -1, INT32_MAX, INT32_MIN}) {
    FileBytes bytes = s.bytes;
    std::memcpy(bytes.data() + 136 + 4 * 7, &id, sizeof(id));
    const std::uint64_t sum = base::xxh3(base::Bytes(bytes).subspan(136, 22 * 4));
    check_refused(session, forged(bytes, 80, sum), "token id out of range");
  }
}

TEST_CASE("a snapshot of another model, cache or context is refused", "[snapshot]") {
  Saved s;
  const auto refused_by = [&](const model::Model& model, const SessionShape& shape, const std::string& words) {
    Session session(model, s.pool, session_options(shape));
    check_refused(session, s.bytes, words);
  };
  SessionShape shape;
  shape.context = 21;
  refused_by(*s.tiny.model, shape, "more tokens than the context");
  shape.context = 22;
  Session enough(*s.tiny.model, s.pool, session_options(shape));
  CHECK(engine::restore_snapshot(enough, s.bytes, "saved").n_tokens == 22);
  shape = {};
  shape.v_type = CacheType::f16;
  refused_by(*s.tiny.model, shape, "cache types");
  Contract other = tiny_contract();
  other.ropes["main"].mscale = 1.5;
  refused_by(*make_model(other, "q8").model, {}, "its contract differs");
  other = tiny_contract();
  attention_of(other).mask.window = 64;
  refused_by(*make_model(other, "q8").model, {}, "its contract differs");
  other = tiny_contract();  // names and generation defaults are not the model
  other.name = "renamed";
  other.generation.temperature = 0.3;
  const TinyModel renamed = make_model(other, "q8");
  Session same(*renamed.model, s.pool, session_options({}));
  CHECK(engine::restore_snapshot(same, s.bytes, "saved").n_tokens == 22);
}

TEST_CASE("an encoder-decoder's session is refused in words", "[snapshot]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(encoder_decoder_contract(false), "q8");
  base::ThreadPool pool(1);
  engine::SessionOptions options = session_options({});
  options.source_length = 10;
  Session session(*tiny.model, pool, options);
  session.encode(random_ids(9, 101));
  answer_greedily(session, {1}, 4);
  CHECK_THROWS_AS(engine::save_snapshot(session, directory.path / "snapshot"), base::Error);
  CHECK(std::filesystem::is_empty(directory.path));
  const Saved s;
  CHECK_THROWS_AS(engine::restore_snapshot(session, s.bytes, "saved"), base::Error);
  CHECK(session.tokens().empty());
}

TEST_CASE("a session that searched holds nothing, and is saved as that", "[snapshot]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  engine::SessionOptions options = session_options({});
  options.n_beams = 3;
  Session session(*tiny.model, pool, options);
  sampling::TokenRules rules({}, 101);
  engine::BeamOptions beams;
  beams.n_beams = 3;
  beams.max_length = 20;
  session.search(random_ids(9, 101), rules, beams);
  const FileBytes saved = snapshot_of(session, directory);
  CHECK(saved.size() == 136);
  CHECK(engine::restore_snapshot(session, saved, "saved").n_tokens == 0);
  CHECK(answer_greedily(session, random_ids(9, 101), 4).ids.size() == 4);
}

TEST_CASE("a snapshot's file is private and appears whole or not at all", "[snapshot]") {
  Saved s;
  const std::filesystem::path path = s.directory.path / "kept";
  const mode_t mask = umask(0);
  engine::save_snapshot(s.session, path);
  umask(mask);
  struct stat status{};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  Session session(*s.tiny.model, s.pool, session_options({}));
  CHECK(engine::load_snapshot(session, path).n_tokens == 22);
  // Another one replaces it; one that cannot be written leaves it, and nothing beside it.
  answer_greedily(s.session, random_ids(50, 101), 2);
  engine::save_snapshot(s.session, path);
  CHECK(engine::load_snapshot(session, path).n_tokens == 51);
  CHECK_THROWS_AS(engine::save_snapshot(s.session, s.directory.path), base::Error);
  CHECK_THROWS_AS(engine::save_snapshot(s.session, s.directory.path / "none" / "kept"), base::Error);
  const auto n_files = std::distance(std::filesystem::directory_iterator(s.directory.path), {});
  CHECK(n_files == 2);  // "kept" and the one of Saved
  // Through a symbolic link it is the link's file that is replaced.
  std::filesystem::create_symlink("kept", s.directory.path / "link");
  answer_greedily(s.session, random_ids(9, 101), 2);
  engine::save_snapshot(s.session, s.directory.path / "link");
  CHECK(std::filesystem::is_symlink(s.directory.path / "link"));
  CHECK(engine::load_snapshot(session, path).n_tokens == 10);
  CHECK_THROWS_AS(engine::load_snapshot(session, s.directory.path / "missing"), base::Error);
  CHECK(session.tokens().empty());
}

}  // namespace quern::tests
