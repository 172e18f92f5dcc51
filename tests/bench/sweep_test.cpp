#include "bench/sweep.hpp"

#include "base/error.hpp"
#include "bench/case.hpp"
#include "catch.hpp"

namespace quern::bench {
namespace {

using Values = std::vector<std::size_t>;
using Words = std::vector<std::string>;

Values sweep(const Words& words, SweepBounds bounds = {0, 1000000}) {
  return parse_sweep("-p", words, bounds);
}

std::string error_of(const Words& words, SweepBounds bounds = {0, 1000000}) {
  try {
    sweep(words, bounds);
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST_CASE("lists, ranges and repeated options keep the order typed") {
  CHECK(sweep({"512"}) == Values{512});
  CHECK(sweep({"1,8,64"}) == Values{1, 8, 64});
  CHECK(sweep({"8,1", "8"}) == Values{8, 1, 8});
  CHECK(sweep({"1-4"}) == Values{1, 2, 3, 4});
  CHECK(sweep({"0-4096+1024"}) == Values{0, 1024, 2048, 3072, 4096});
  CHECK(sweep({"1-8*2"}) == Values{1, 2, 4, 8});
  CHECK(sweep({"1-9*3,5"}) == Values{1, 3, 9, 5});
  CHECK(sweep({"3-3"}) == Values{3});
  CHECK(sweep({"1-10+4"}) == Values{1, 5, 9});
  CHECK(sweep({"2-100*10"}) == Values{2, 20});
  CHECK(sweep({"4k"}) == Values{4096});
  CHECK(sweep({"1K,0-2k+1k"}) == Values{1024, 0, 1024, 2048});
  CHECK(sweep({"1k-4k*2"}) == Values{1024, 2048, 4096});
  CHECK(sweep({"2M,1G,1T"}, {0, SIZE_MAX}) == Values{2u << 20, 1u << 30, std::size_t{1} << 40});
  CHECK(sweep({}).empty());
}

TEST_CASE("whatever is no sweep is refused with what was got and expected") {
  for (const char* word : {"", ",", "1,", "a", "1-", "-1", "1-2-3", "k", "1kk", "1kB", "1 k", "1k2", "1000k", "18014398509481984k", "1-2*", "1-2+", "1-2x3", "1 2", "1.5", "0x10", "1-2+1,",
                           "+1", "*2", "1*2", "1+2", "4-1", "0-8*2", "1-8*1", "1-8*0", "1-8+0", "18446744073709551616",
                           "99999999999999999999999", "1000001", "1-1000001", "1-1000000"}) {
    INFO(word);
    const std::string text = error_of({word});
    CHECK(text.rfind("-p", 0) == 0);
    const bool told = text.find("got") != std::string::npos || text.find("more than") != std::string::npos;
    CHECK(told);
  }
  CHECK(error_of({"0"}, {1, 8}).find("1 to 8") != std::string::npos);
  CHECK(error_of({"9"}, {1, 8}).find("got \"9\"") != std::string::npos);
  CHECK(error_of({std::string(10000, '1')}).size() < 300);
  CHECK(error_of(Words(kMaxSweepValues + 1, "1")).find("more than") != std::string::npos);
  CHECK(sweep({"1-18446744073709551615*4294967296"}, {0, SIZE_MAX}).size() <= 3);
}

TEST_CASE("a step beyond the largest number ends the range") {
  CHECK(sweep({"18446744073709551614-18446744073709551615+1"}, {0, SIZE_MAX}).size() == 2);
}

TEST_CASE("pairs") {
  const auto pairs = parse_pairs("-pg", {"512,128", "1,0"}, {0, 1000});
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0] == std::pair<std::size_t, std::size_t>{512, 128});
  for (const char* word : {"", "1", "1,2,3", "a,1", "1,b", "1,2x", "1,", ",1", "1001,1"}) {
    INFO(word);
    CHECK_THROWS_AS(parse_pairs("-pg", {word}, {0, 1000}), base::Error);
  }
}

TEST_CASE("labels are those of llama-bench") {
  Case one;
  one.n_prompt = 512;
  CHECK(one.label() == "pp512");
  one.n_gen = 128;
  CHECK(one.label() == "pp512+tg128");
  one.n_depth = 4096;
  CHECK(one.label() == "pp512+tg128 @ d4096");
  one.n_prompt = 0;
  CHECK(one.label() == "tg128 @ d4096");
  one = {};
  one.n_prompt = 8;
  one.n_gen = 4;
  one.n_parallel = 16;
  CHECK(one.label() == "pp8+tg4 x16");
  CHECK(one.tokens() == 16 * 12);
}

Grid small_grid() {
  Grid grid;
  grid.prompts = {64, 0};
  grid.answers = {0, 16};
  grid.depths = {0, 32};
  grid.batches = grid.ubatches = {512};
  grid.threads = {1, 2};
  grid.k_types = grid.v_types = {"int8"};
  grid.pairs = {{8, 4}};
  return grid;
}

TEST_CASE("every combination is a row, in llama-bench's order") {
  std::vector<std::string> labels;
  for (const Case& one : cases_of(small_grid())) labels.push_back(one.label() + "/" + std::to_string(one.n_threads));
  CHECK(labels == std::vector<std::string>{"pp64/1", "tg16/1", "pp8+tg4/1", "pp64 @ d32/1", "tg16 @ d32/1",
                                           "pp8+tg4 @ d32/1", "pp64/2", "tg16/2", "pp8+tg4/2", "pp64 @ d32/2",
                                           "tg16 @ d32/2", "pp8+tg4 @ d32/2"});
  Grid batched = small_grid();
  batched.parallel = {1, 4};
  batched.prompts = {8};
  batched.answers = {2};
  CHECK(cases_of(batched).size() == 2 * 2 * 2);
  Grid nothing = small_grid();
  nothing.prompts = nothing.answers = {0};
  nothing.pairs.clear();
  CHECK_THROWS_AS(cases_of(nothing), base::Error);
  Grid huge = small_grid();
  huge.depths.assign(1000, 1);
  CHECK_THROWS_AS(cases_of(huge), base::Error);
}

}  // namespace
}  // namespace quern::bench
