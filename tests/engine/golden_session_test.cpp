// Checkpoints of real families, converted: their sessions are saved and restored bit for bit, and each
// refuses the snapshot of every other.
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "convert/convert.hpp"
#include "engine/session_cases.hpp"
#include "kernels/select.hpp"

namespace quern::tests {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<model::Model> converted(const fs::path& fixture, const fs::path& out, const std::string& type) {
  convert::ConvertOptions options;
  options.type = type;
  if (const fs::path recipe = fixture / "recipe.json"; fs::exists(recipe)) options.recipe_file = recipe.string();
  convert::convert(fixture, out, options, [](std::uint64_t, std::uint64_t) {});
  return model::Model::load(out, kernels::select_kernels());
}

const fs::path kFixtures = fs::path(QUERN_SOURCE_DIR) / "tests/data/fixtures";

}  // namespace

TEST_CASE("every family's session is restored with the bits it had", "[golden][snapshot]") {
  const SessionDirectory directory;
  std::size_t n = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFixtures)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    const std::unique_ptr<model::Model> model = converted(entry.path(), directory.path / name, "q8");
    if (!model->decoder || model->encoder || model->contract.head.kind != contract::HeadKind::lm) continue;
    SessionShape shape;
    if (model->contract.embedding.positions) shape.context = std::min<std::size_t>(model->contract.max_positions, 300);
    REQUIRE(shape.context > 98);
    check_restored(*model, std::min<std::size_t>(shape.context - 90, 150), shape, directory);
    shape.follow_length = true;
    check_restored(*model, std::min<std::size_t>(shape.context - 90, 40), shape, directory);
    ++n;
  }
  CHECK(n >= 20);
}

TEST_CASE("snapshots of the same structure with other weights are refused", "[golden][snapshot]") {
  const SessionDirectory directory;
  const auto one = converted(kFixtures / "llama2", directory.path / "one", "q8");
  const auto other = converted(kFixtures / "llama2", directory.path / "other", "f32");
  const auto stranger = converted(kFixtures / "gpt2", directory.path / "stranger", "q8");
  base::ThreadPool pool(1);
  engine::Session writer(*one, pool, session_options({}));
  answer_greedily(writer, random_ids(30, 64), 3);
  const FileBytes saved = snapshot_of(writer, directory);
  SessionShape shape;
  shape.context = 64;
  for (const model::Model* model : {other.get(), stranger.get()}) {
    engine::Session reader(*model, pool, session_options(shape));
    CHECK_THROWS_AS(engine::restore_snapshot(reader, saved, "saved"), base::Error);
    CHECK(reader.tokens().empty());
  }
  engine::Session same(*one, pool, session_options(shape));
  CHECK(engine::restore_snapshot(same, saved, "saved").n_tokens == 32);
}

}  // namespace quern::tests
