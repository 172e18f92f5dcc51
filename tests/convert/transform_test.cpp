// Views of source tensors: every transform against the same selection done by hand.
#include "convert/transform.hpp"

#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "catch.hpp"

using namespace quern;
using convert::RowView;

namespace {

using Texts = std::vector<std::string>;

// A float tensor whose values count up from 0.
struct Counting {
  std::vector<float> values;
  checkpoint::SourceTensor tensor{};

  explicit Counting(std::vector<std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    values.resize(count);
    std::iota(values.begin(), values.end(), 0.0F);
    tensor.name = "t";
    tensor.type = checkpoint::DType::f32;
    tensor.shape = std::move(shape);
    tensor.values = count;
    tensor.bytes = {reinterpret_cast<const std::byte*>(values.data()), values.size() * 4};
  }
};

std::vector<float> all_of(const RowView& view, std::size_t step) {
  std::vector<float> out(view.rows() * view.columns());
  for (std::size_t row = 0; row < view.rows(); row += step) {
    const std::size_t n = std::min(step, view.rows() - row);
    view.read(row, n, out.data() + row * view.columns(), view.columns());
  }
  return out;
}

// The view read whole and in parts equals `expected`, [rows, columns].
void require_view(const Counting& source, const Texts& transforms, std::size_t rows,
                  std::size_t columns, const std::vector<float>& expected) {
  const RowView view(source.tensor, transforms, "test");
  REQUIRE(view.rows() == rows);
  REQUIRE(view.columns() == columns);
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, rows})
    REQUIRE(all_of(view, step) == expected);
}

std::string failure_of(const Counting& source, const Texts& transforms) {
  try {
    const RowView view(source.tensor, transforms, "test");
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an expert of a tensor of experts, plain and transposed") {
  const Counting source({4, 6, 5});  // experts, out, in
  std::vector<float> expected;
  for (int i = 0; i < 30; ++i) expected.push_back(static_cast<float>(2 * 30 + i));
  require_view(source, {"part 2 of 4"}, 6, 5, expected);

  std::vector<float> turned;
  for (int out = 0; out < 5; ++out)
    for (int in = 0; in < 6; ++in) turned.push_back(static_cast<float>(2 * 30 + in * 5 + out));
  require_view(source, {"part 2 of 4", "transpose"}, 5, 6, turned);
}

TEST_CASE("gate and up of an expert: halves and interleaved rows") {
  const Counting halves({3, 8, 2});
  std::vector<float> up;
  for (int row = 4; row < 8; ++row)
    for (int c = 0; c < 2; ++c) up.push_back(static_cast<float>(16 + row * 2 + c));
  require_view(halves, {"part 1 of 3", "part 1 of 2"}, 4, 2, up);

  const Counting interleaved({3, 2, 8});  // experts, in, out
  std::vector<float> odd;
  for (int out = 1; out < 8; out += 2)
    for (int in = 0; in < 2; ++in) odd.push_back(static_cast<float>(32 + in * 8 + out));
  require_view(interleaved, {"part 2 of 3", "transpose", "every 2 from 1"}, 4, 2, odd);
  const Counting bias({3, 8});  // the same transforms as its weight
  require_view(bias, {"part 2 of 3", "transpose", "every 2 from 1"}, 4, 1, {17, 19, 21, 23});
}

TEST_CASE("rows picked out of rows") {
  const Counting source({12, 1});
  require_view(source, {"every 3 from 2"}, 4, 1, {2, 5, 8, 11});
  require_view(source, {"every 3 from 2", "part 1 of 2"}, 2, 1, {8, 11});
  require_view(source, {"part 1 of 2", "every 2 from 0"}, 3, 1, {6, 8, 10});
  require_view(source, {"group_rows 3 1 3", "every 2 from 1"}, 3, 1, {2, 6, 10});
  const Counting ones({1, 1, 4, 2});  // ones in front do not count
  require_view(ones, {}, 4, 2, {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a vector, or a part of one, is a matrix of one row") {
  const Counting source({12});
  for (const Texts& transforms : {Texts{}, Texts{"part 1 of 2"}, Texts{"every 3 from 2"}}) {
    RowView view(source.tensor, transforms, "test");
    const std::vector<float> values = all_of(view, view.rows());
    view.as_one_row();
    REQUIRE(view.rows() == 1);
    REQUIRE(view.columns() == values.size());
    REQUIRE(all_of(view, 1) == values);
  }
}

TEST_CASE("transforms that do not fit are refused with the numbers") {
  const Counting source({4, 6, 5});
  CHECK(contains(failure_of(source, {"part 4 of 4"}), "cannot take part 4 of 4 of 24 rows"));
  CHECK(contains(failure_of(source, {"part 0 of 5"}), "of 24 rows"));
  CHECK(contains(failure_of(source, {"every 5 from 0"}), "of 24 rows"));
  CHECK(contains(failure_of(source, {"every 2 from 2"}), "of 24 rows"));
  CHECK(
      contains(failure_of(source, {"every 2 from 0", "transpose"}), "only `part` may come before"));
  CHECK(contains(failure_of(source, {"transpose", "transpose"}), "twice"));
  CHECK(contains(failure_of(source, {"every 2"}), "unknown transform"));
  CHECK(contains(failure_of(Counting({2, 2, 2, 2}), {}), "number of dimensions"));
  CHECK(contains(failure_of(Counting({2, 0, 2}), {}), "empty"));
}
