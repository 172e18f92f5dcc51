// What a session keeps between calls: counts of tokens prefilled and reused, interrupts, declared
// lengths that change, a context that fills.
#include "engine/overflow.hpp"
#include "engine/session_cases.hpp"
#include "model/position.hpp"

namespace quern::tests {

namespace {

using engine::FinishReason;
using engine::GenerateOptions;
using engine::Session;

bool is_windowed(const model::Model& model) {
  for (const model::CacheLayerSpec& layer : model.decoder->cache_layers)
    if (layer.window) return true;
  return false;
}

Contract longrope_contract(std::size_t original) {
  Contract c = tiny_contract();
  c.ropes["main"].switch_rule = contract::RopeSwitch{
      contract::RopeSwitchKind::longrope, original, 0, 0, {0.5F, 0.05F, 0.005F, 0.0005F}, 1.2};
  return c;
}

// The held tokens and their bits, against a session that never held anything else.
void check_honest(const Session& session, const SessionShape& shape, const SessionDirectory& directory) {
  REQUIRE(session.cache().length(0) == session.tokens().size());
  if (session.tokens().empty()) return;
  SessionShape plain = shape;
  plain.total_length = session.declared_length();
  plain.follow_length = false;
  CHECK(snapshot_of(session, directory) == fresh_snapshot(session.model(), session.tokens(), plain, directory));
}

}  // namespace

TEST_CASE("an edit in the middle prefills what follows it, and nothing before", "[session]") {
  const SessionDirectory directory;
  for (const Variant& variant : cache_variants()) {
    INFO(variant.name);
    const TinyModel tiny = make_model(variant.contract, "q8");
    base::ThreadPool pool(2);
    Session session(*tiny.model, pool, session_options({}));
    const Ids text = random_ids(200, 101, 2);
    CHECK(session.reusable_tokens(text) == 0);
    CHECK(session.reusable_tokens({}) == 0);
    answer_greedily(session, text, 1);
    CHECK(session.times().reused_tokens == 0);
    CHECK(session.times().prefill_tokens == 200);
    for (const std::size_t at : {150, 31, 64, 0, 199}) {
      INFO("edit at " << at);
      Ids edited = session.tokens();
      edited[at] = (edited[at] + 1) % 101;
      const std::size_t foreseen = session.reusable_tokens(edited);
      const Ids answer = answer_greedily(session, edited, 6).ids;
      CHECK(session.times().reused_tokens == foreseen);
      CHECK(session.times().reused_tokens + session.times().prefill_tokens == edited.size());
      if (!is_windowed(*tiny.model)) CHECK(session.times().reused_tokens == at);
      Session fresh(*tiny.model, pool, session_options({}));
      CHECK(answer_greedily(fresh, edited, 6).ids == answer);
      check_honest(session, {}, directory);
    }
  }
}

TEST_CASE("windowed layers roll back as far as their blocks reach", "[session]") {
  Contract c = tiny_contract();
  attention_of(c).mask.window = 40;
  const TinyModel tiny = make_model(c, "q8");
  base::ThreadPool pool(1);
  Session session(*tiny.model, pool, session_options({}));
  const Ids text = random_ids(200, 101, 2);
  answer_greedily(session, text, 1);
  // Held from block (200 + 1 - 40) / 32 = 5, position 160, on: the query at 199 sees back to 160.
  answer_greedily(session, joined_ids(first_ids(text, 199), {7, 8}), 1);
  CHECK(session.times().reused_tokens >= 199);
  answer_greedily(session, joined_ids(first_ids(text, 150), {7, 8}), 1);
  CHECK(session.times().reused_tokens == 0);

  // A session that expects to take answers back keeps what they need.
  const SessionDirectory directory;
  engine::SessionOptions options = session_options({});
  options.cache.rollback = 60;
  Session patient(*tiny.model, pool, options);
  for (const std::size_t at : {199, 150, 141}) {
    answer_greedily(patient, text, 1);
    answer_greedily(patient, joined_ids(first_ids(text, at), {7, 8}), 1);
    CHECK(patient.times().reused_tokens == at);
    check_honest(patient, {}, directory);
  }
  answer_greedily(patient, text, 1);
  CHECK(patient.cache().bytes().payload <= session.cache().bytes().payload * 4);
  answer_greedily(patient, joined_ids(first_ids(text, 60), {7, 8}), 1);
  CHECK(patient.times().reused_tokens == 0);
}

TEST_CASE("whenever it is stopped, the tokens held are those of the cache", "[session]") {
  const SessionDirectory directory;
  std::vector<Contract> contracts = {tiny_contract(), mla_contract(), nsa_contract()};
  attention_of(contracts[0]).mask.window = 33;
  attention_of(contracts[0]).mask.sinks = 3;
  for (const Contract& contract : contracts) {
    const TinyModel tiny = make_model(contract, "q8");
    base::ThreadPool pool(2);
    Session session(*tiny.model, pool, session_options({}));
    const Ids prompt = random_ids(100, 101, 4);
    Session fresh(*tiny.model, pool, session_options({}));
    const Ids expected = answer_greedily(fresh, prompt, 5).ids;
    for (std::size_t allowed = 0; allowed < 40; ++allowed) {
      INFO("stopped after " << allowed << " questions");
      session.clear();
      std::size_t asked = 0;
      GenerateOptions options;
      options.max_new_tokens = 5;
      options.stop_requested = [&] { return asked++ >= allowed; };
      const Answer answer = answer_greedily(session, prompt, options);
      if (answer.reason == FinishReason::interrupted) CHECK(answer.ids.empty());
      CHECK(session.times().prefill_tokens == std::min<std::size_t>(session.tokens().size(), 100));
      check_honest(session, {}, directory);
      // It goes on from there, and to the same answer.
      CHECK(answer_greedily(session, prompt, 5).ids == expected);
    }
    for (std::size_t n = 0; n < 4; ++n) {  // stopped while decoding
      session.clear();
      sampling::SamplerOptions greedy;
      greedy.temperature = 0;
      sampling::Sampler sampler(greedy, 101);
      std::size_t given = 0;
      GenerateOptions options;
      options.max_new_tokens = 5;
      CHECK(session.generate(prompt, sampler, options, [&](std::int32_t) { return given++ < n; }) ==
            FinishReason::interrupted);
      CHECK(session.tokens().size() == 100 + n);
      check_honest(session, {}, directory);
    }
  }
}

TEST_CASE("a callback that throws leaves an honest session", "[session]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(2);
  Session session(*tiny.model, pool, session_options({}));
  const Ids prompt = random_ids(100, 101, 4);
  GenerateOptions options;
  options.max_new_tokens = 5;
  std::size_t left = 9;
  options.stop_requested = [&]() -> bool {
    if (left-- == 0) throw std::runtime_error("stop");
    return false;
  };
  CHECK_THROWS_AS(answer_greedily(session, prompt, options), std::runtime_error);
  check_honest(session, {}, directory);
  session.evaluate(prompt, [](std::size_t, const float*) {});  // the question is not asked any more
  CHECK(session.tokens() == prompt);
}

TEST_CASE("prefill reports how far it is", "[session]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  Session session(*tiny.model, pool, session_options({}));
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  GenerateOptions options;
  options.max_new_tokens = 1;
  options.on_prefill = [&](std::size_t done, std::size_t total) { seen.emplace_back(done, total); };
  answer_greedily(session, random_ids(40, 101), options);
  CHECK(seen == std::vector<std::pair<std::size_t, std::size_t>>{{0, 40}, {16, 40}, {32, 40}, {40, 40}});
}

TEST_CASE("a text that outgrows its position tables is computed again with others", "[session]") {
  const SessionDirectory directory;
  for (const Contract& contract : {ntk_contract(64), longrope_contract(64)}) {
    const TinyModel tiny = make_model(contract, "q8");
    base::ThreadPool pool(2);
    SessionShape shape;
    shape.follow_length = true;
    Session session(*tiny.model, pool, session_options(shape));
    CHECK(session.declared_length() == 64);
    std::vector<engine::LengthChange> changes;
    GenerateOptions options;
    options.max_new_tokens = 10;
    options.on_rebuild = [&](const engine::LengthChange& change) { changes.push_back(change); };
    const Ids prompt = random_ids(40, 101, 6);
    const Ids first = answer_greedily(session, prompt, options).ids;
    CHECK(changes.empty());
    SessionShape fixed;
    fixed.total_length = 64;
    Session below(*tiny.model, pool, session_options(fixed));
    CHECK(answer_greedily(below, prompt, 10).ids == first);

    // In the middle of an answer: token 65 needs the other tables.
    const Ids second = joined_ids(joined_ids(prompt, first), {5, 6});
    options.max_new_tokens = 30;
    const Ids answer = answer_greedily(session, second, options).ids;
    CHECK(answer.size() == 30);
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].from == 64);
    CHECK(changes[0].to == 400);
    CHECK(changes[0].n_tokens == 65);
    CHECK(session.times().rebuilt_tokens == 65);
    CHECK(session.declared_length() == 400);
    check_honest(session, shape, directory);
    // Before the switch the short tables, behind it the long ones, as a fresh run of the text has them.
    const Ids text = joined_ids(second, first_ids(answer, 65 - second.size()));
    Session above(*tiny.model, pool, session_options({}));
    CHECK(answer_greedily(above, text, 30 - (65 - second.size())).ids ==
          Ids(answer.begin() + static_cast<std::ptrdiff_t>(65 - second.size()), answer.end()));

    // A conversation that is short again is as it was, and a prompt may cross at once.
    CHECK(answer_greedily(session, prompt, options).ids.size() == 30);
    REQUIRE(changes.size() >= 2);
    CHECK(changes[1].from == 400);
    CHECK(changes[1].to == 64);
    answer_greedily(session, random_ids(90, 101, 8), options);
    CHECK(session.declared_length() == 400);
    check_honest(session, shape, directory);
  }
}

TEST_CASE("models whose tables do not depend on the length are never computed again", "[session]") {
  for (const Variant& variant : cache_variants()) {
    const TinyModel tiny = make_model(variant.contract, "q8");
    CHECK(model::declared_length_for(*tiny.model, 1, 400) == 400);
    const bool indexed = variant.name.find("chosen keys") != std::string::npos;
    CHECK((model::length_hash(*tiny.model, 50, 400) != model::length_hash(*tiny.model, 400, 400)) == indexed);
    CHECK(model::length_hash(*tiny.model, 500, 400) == model::length_hash(*tiny.model, 400, 400));
  }
}

TEST_CASE("a snapshot knows the length it was declared for", "[snapshot]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(ntk_contract(64), "q8");
  base::ThreadPool pool(1);
  SessionShape follows;
  follows.follow_length = true;
  for (const std::size_t n : {40, 100}) {
    Session writer(*tiny.model, pool, session_options(follows));
    answer_greedily(writer, random_ids(n, 101), 3);
    const FileBytes saved = snapshot_of(writer, directory);
    Session reader(*tiny.model, pool, session_options(follows));
    CHECK(engine::restore_snapshot(reader, saved, "saved").n_tokens == n + 2);
    CHECK(reader.declared_length() == writer.declared_length());
    const Ids next = joined_ids(reader.tokens(), random_ids(30, 101, 9));
    CHECK(answer_greedily(reader, next, 20).ids == answer_greedily(writer, next, 20).ids);
    CHECK(snapshot_of(reader, directory) == snapshot_of(writer, directory));
    // Declared otherwise: nothing of it can be used, and it is no error.
    SessionShape other;
    other.total_length = 200;
    Session fixed(*tiny.model, pool, session_options(other));
    const engine::RestoreResult result = engine::restore_snapshot(fixed, saved, "saved");
    CHECK(result.other_length);
    CHECK(result.n_tokens == 0);
    CHECK(fixed.tokens().empty());
    CHECK(answer_greedily(fixed, next, 5).ids.size() == 5);
  }
}

TEST_CASE("a declared length that changes nothing keeps what is held", "[session]") {
  const TinyModel tiny = make_model(ntk_contract(64), "q8");
  base::ThreadPool pool(1);
  SessionShape shape;
  shape.total_length = 30;
  Session session(*tiny.model, pool, session_options(shape));
  answer_greedily(session, random_ids(20, 101), 3);
  CHECK_FALSE(session.declare_length(64));
  CHECK(session.tokens().size() == 22);
  CHECK(session.declare_length(65));
  CHECK(session.tokens().empty());
  CHECK(session.cache().length(0) == 0);
}

TEST_CASE("an answer goes on when the context is full", "[session]") {
  const SessionDirectory directory;
  for (const engine::OverflowPolicy policy : {engine::OverflowPolicy::shift, engine::OverflowPolicy::sinks}) {
    for (const Variant& variant : cache_variants()) {
      INFO(variant.name);
      const TinyModel tiny = make_model(variant.contract, "q8");
      base::ThreadPool pool(2);
      SessionShape shape;
      shape.context = 64;
      Session session(*tiny.model, pool, session_options(shape));
      engine::TokenWindow window({policy, 10, 4}, 64);
      std::size_t n_full = 0;
      Ids kept;
      GenerateOptions options;
      options.max_new_tokens = 150;
      options.on_full = [&](std::span<const std::int32_t> text) {
        CHECK(text.size() == 65);
        kept.assign(text.begin(), text.end());
        const std::optional<engine::OverflowReport> report = window.shrink(kept, 1);
        REQUIRE(report);
        CHECK(report->n_kept == kept.size());
        ++n_full;
        return kept;
      };
      const Ids prompt = random_ids(30, 101, 2);
      const Answer answer = answer_greedily(session, prompt, options);
      CHECK(answer.reason == FinishReason::length);
      CHECK(answer.ids.size() == 150);
      CHECK(n_full >= 3);
      CHECK(session.tokens().size() <= 64);
      check_honest(session, shape, directory);
      // What follows the last drop is what a fresh session answers to the kept ids.
      Session fresh(*tiny.model, pool, session_options(shape));
      const std::size_t rest = session.tokens().size() - kept.size();
      CHECK(first_ids(answer_greedily(fresh, kept, rest + 1).ids, rest) ==
            Ids(session.tokens().begin() + static_cast<std::ptrdiff_t>(kept.size()), session.tokens().end()));
    }
  }
}

TEST_CASE("without a policy, or with one that gives up, a full context ends the answer", "[session]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  SessionShape shape;
  shape.context = 64;
  Session session(*tiny.model, pool, session_options(shape));
  GenerateOptions options;
  options.max_new_tokens = 100;
  CHECK(answer_greedily(session, random_ids(60, 101), options).ids.size() == 5);
  options.on_full = [](std::span<const std::int32_t>) { return Ids{}; };
  const Answer answer = answer_greedily(session, random_ids(60, 101), options);
  CHECK(answer.reason == FinishReason::length);
  CHECK(answer.ids.size() == 5);
  CHECK(session.tokens().size() == 64);
}

}  // namespace quern::tests
