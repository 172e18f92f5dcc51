// Conversations in files, and chats that are edited in the middle.
#include "chat/session_file.hpp"

#include <sys/stat.h>

#include <random>

#include "base/hash.hpp"
#include "chat/chat_cases.hpp"
#include "chat/context_fit.hpp"

namespace quern::tests {

namespace {

using chat::Conversation;
using chat::SessionFile;
using engine::Session;

void check_refused(base::Bytes bytes, Session& session) {
  try {
    const SessionFile file(bytes, "the-file");
    file.restore(session);
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    CHECK(std::string(error.what()).find("the-file") != std::string::npos);
  }
  CHECK(session.tokens().empty());
}

// One turn: the answer is added to the conversation.
Ids take_turn(Session& session, Conversation& c, std::string question, std::size_t n) {
  c.add(said("user", std::move(question)));
  engine::GenerateOptions options;
  options.max_new_tokens = n;
  options.stop_ids = {95, 96, 97, kAnswer, kEnd, 100};
  const Ids ids = answer_greedily(session, rendered(c.messages()), options).ids;
  c.add(said("assistant", text_of(ids)));
  return ids;
}

struct Saved {
  SessionDirectory directory;
  TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool{1};
  Session session{*tiny.model, pool, session_options({})};
  Session fresh{*tiny.model, pool, session_options({})};  // has held nothing
  Conversation conversation;
  std::filesystem::path path = directory.path / "chat.qs";
  FileBytes bytes;

  Saved() {
    conversation.set_system("s");
    conversation.set_settings(R"({"temperature":0})");
    take_turn(session, conversation, "hello", 6);
    save_session_file(path, conversation, &session);
    bytes = file_bytes(path);
  }
};

}  // namespace

TEST_CASE("a chat is taken up again where it was left", "[session_file]") {
  std::vector<Variant> variants = cache_variants();
  for (const Variant& variant : variants) {
    INFO(variant.name);
    const SessionDirectory directory;
    const TinyModel tiny = make_model(variant.contract, "q8");
    base::ThreadPool pool(2);
    Session straight(*tiny.model, pool, session_options({}));
    Conversation c;
    c.set_system("be brief");
    for (int turn = 0; turn < 4; ++turn) take_turn(straight, c, "question " + std::to_string(turn), 9);
    const std::filesystem::path path = directory.path / "chat.qs";
    save_session_file(path, c, &straight);

    Session resumed(*tiny.model, pool, session_options({}));
    const SessionFile file(path);
    Conversation again = file.conversation();
    CHECK(again == c);
    REQUIRE(file.snapshot());
    CHECK(file.restore(resumed).n_tokens == straight.tokens().size());
    for (int turn = 4; turn < 7; ++turn) {
      const std::string question = "question " + std::to_string(turn);
      CHECK(take_turn(resumed, again, question, 9) == take_turn(straight, c, question, 9));
      CHECK(resumed.times().prefill_tokens == straight.times().prefill_tokens);
    }
    CHECK(again == c);
    CHECK(snapshot_of(resumed, directory) == snapshot_of(straight, directory));
  }
}

TEST_CASE("a chat of 20 turns edited in the middle prefills only what changed", "[session_file]") {
  for (const Variant& variant : cache_variants()) {
    INFO(variant.name);
    const TinyModel tiny = make_model(variant.contract, "q8");
    base::ThreadPool pool(2);
    SessionShape shape;
    shape.context = 690;
    Session session(*tiny.model, pool, session_options(shape));
    Conversation c;
    c.set_system("be brief");
    for (int turn = 0; turn < 20; ++turn) take_turn(session, c, "question " + std::to_string(turn), 9);
    const auto check_fresh = [&](const char* what) {
      INFO(what);
      const Ids prompt = rendered(c.messages());
      const Ids held = session.tokens();
      const auto same = static_cast<std::size_t>(
          std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first - held.begin());
      const Ids answer = answer_greedily(session, prompt, 20).ids;
      bool windowed = false;
      for (const auto& layer : tiny.model->decoder->cache_layers) windowed = windowed || layer.window;
      if (!windowed) CHECK(session.times().reused_tokens == std::min(same, prompt.size() - 1));
      CHECK(session.times().prefill_tokens == prompt.size() - session.times().reused_tokens);
      Session fresh(*tiny.model, pool, session_options(shape));
      CHECK(answer_greedily(fresh, prompt, 20).ids == answer);
      CHECK(fresh.times().prefill_tokens == prompt.size());
    };
    c.edit(20, "another question ten");
    check_fresh("edit");
    c.erase(31);
    check_fresh("delete");
    c.undo();
    c.undo();
    check_fresh("undo");
    c.regenerate();
    check_fresh("regenerate");
    c.set_system("be long");
    check_fresh("system");
    c = c.branch(9);
    check_fresh("branch");
  }
}

TEST_CASE("a session file without a snapshot holds the words alone", "[session_file]") {
  Saved s;
  chat::save_session_file(s.path, s.conversation, nullptr);
  const SessionFile file(s.path);
  CHECK(file.conversation() == s.conversation);
  CHECK_FALSE(file.snapshot());
  CHECK(s.session.tokens().size() > 0);
  CHECK(file.restore(s.session).n_tokens == 0);
  CHECK(s.session.tokens().empty());
  Session empty(*s.tiny.model, s.pool, session_options({}));
  chat::save_session_file(s.path, s.conversation, &empty);
  CHECK_FALSE(SessionFile(s.path).snapshot());
  CHECK(std::filesystem::file_size(s.path) < s.bytes.size());
}

TEST_CASE("a session file keeps branches", "[session_file]") {
  Saved s;
  const std::vector<Conversation> branches = {s.conversation.branch(2), s.conversation};
  chat::save_session_file(s.path, s.conversation, &s.session, branches);
  const SessionFile file(s.path);
  CHECK(file.conversation() == s.conversation);
  REQUIRE(file.branches().size() == 2);
  CHECK(file.branches()[0].messages() == branches[0].messages());
  CHECK(file.branches()[1].messages() == branches[1].messages());
  CHECK(file.restore(s.fresh).n_tokens == s.session.tokens().size());
}

TEST_CASE("a session file is private, whole, the same for the same chat", "[session_file]") {
  Saved s;
  struct stat status{};
  REQUIRE(stat(s.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  chmod(s.path.c_str(), 0644);  // what it replaces does not matter
  chat::save_session_file(s.path, s.conversation, &s.session);
  REQUIRE(stat(s.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(file_bytes(s.path) == s.bytes);
  CHECK(std::distance(std::filesystem::directory_iterator(s.directory.path), {}) == 1);
  s.conversation.set_settings("broken");
  CHECK_THROWS_AS(chat::save_session_file(s.path, s.conversation, &s.session), base::Error);
  CHECK(file_bytes(s.path) == s.bytes);
  CHECK(std::distance(std::filesystem::directory_iterator(s.directory.path), {}) == 1);
}

TEST_CASE("a session file that is cut, changed or longer is refused", "[session_file]") {
  Saved s;
  const base::Bytes bytes(s.bytes);
  CHECK(SessionFile(bytes, "x").restore(s.session).n_tokens > 10);
  for (std::size_t i = 0; i < 64; ++i) check_refused(bytes.first(bytes.size() * i / 64), s.fresh);
  for (std::size_t n = 0; n < 400; ++n) check_refused(bytes.first(n), s.fresh);
  FileBytes longer = s.bytes;
  longer.push_back(std::byte{0});
  check_refused(longer, s.fresh);
  for (std::size_t at = 0; at < s.bytes.size(); ++at) {
    FileBytes flipped = s.bytes;
    flipped[at] ^= std::byte{static_cast<unsigned char>(1U << at % 8)};
    check_refused(flipped, s.fresh);
  }
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    FileBytes noise(random() % 500);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    if (round % 2 == 0) std::copy_n(s.bytes.begin(), std::min<std::size_t>(noise.size(), 16), noise.begin());
    check_refused(noise, s.fresh);
  }
  // Blocks of the file exchanged, repeated or zeroed.
  for (int round = 0; round < 300; ++round) {
    FileBytes mixed = s.bytes;
    const std::size_t n = 1 + random() % 200, from = random() % (mixed.size() - n), to = random() % (mixed.size() - n);
    if (round % 3 == 0) {
      std::fill_n(mixed.begin() + static_cast<std::ptrdiff_t>(to), n, std::byte{0});
    } else {
      std::copy_n(s.bytes.begin() + static_cast<std::ptrdiff_t>(from), n, mixed.begin() + static_cast<std::ptrdiff_t>(to));
    }
    if (mixed != s.bytes) check_refused(mixed, s.fresh);
  }
}

TEST_CASE("a session file with honest checksums and false sizes is refused", "[session_file]") {
  Saved s;
  const auto forged = [&](std::size_t offset, auto value) {
    FileBytes bytes = s.bytes;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    const std::uint64_t sum = base::xxh3(base::Bytes(bytes).first(56));
    std::memcpy(bytes.data() + 56, &sum, sizeof(sum));
    return bytes;
  };
  for (const std::size_t offset : {8, 12})
    for (const std::uint32_t value : {2U, 77U, UINT32_MAX}) check_refused(forged(offset, value), s.fresh);
  const std::uint64_t values[] = {0, 1, 63, 64, s.bytes.size(), s.bytes.size() + 1, std::uint64_t{1} << 40,
                                  UINT64_MAX - 63, UINT64_MAX};
  for (const std::size_t offset : {16, 24, 32, 40, 48})
    for (const std::uint64_t value : values) {
      std::uint64_t own = 0;
      std::memcpy(&own, s.bytes.data() + offset, sizeof(own));
      if (value != own) check_refused(forged(offset, value), s.fresh);
    }
}

TEST_CASE("the words of another model's chat can be read, its cache cannot be used", "[session_file]") {
  Saved s;
  Contract other = tiny_contract();
  attention_of(other).scale = 0.3;
  const TinyModel tiny = make_model(other, "q8");
  Session session(*tiny.model, s.pool, session_options({}));
  const SessionFile file(s.path);
  CHECK(file.conversation() == s.conversation);
  CHECK_THROWS_AS(file.restore(session), base::Error);
  CHECK(session.tokens().empty());
  CHECK(file_bytes(s.path) == s.bytes);
}

}  // namespace quern::tests
