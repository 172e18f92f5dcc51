#include "base/bytes.hpp"

#include <cstdint>
#include <vector>

#include "base/round_up.hpp"
#include "catch.hpp"

using namespace quern::base;

TEST_CASE("sizes that overflow are errors that name the place") {
  CHECK(checked_mul(1u << 31, 1u << 31, "x") == std::uint64_t{1} << 62);
  CHECK_THROWS_AS(checked_mul(std::uint64_t{1} << 33, std::uint64_t{1} << 31, "dims"), Error);
  CHECK_THROWS_AS(checked_add(UINT64_MAX, 1, "dims"), Error);
  // The safetensors demonstration whose product wraps to 4.
  const std::uint64_t first = checked_mul(4194305, 4194305, "shape");
  CHECK_THROWS_WITH(checked_mul(first, 211106198978564ull, "shape"), Catch::Contains("shape: size overflows"));
}

TEST_CASE("division upwards does not wrap, whatever a file says") {
  CHECK(divide_up(0, 7) == 0);
  CHECK(divide_up(7, 7) == 1);
  CHECK(divide_up(8, 7) == 2);
  CHECK(divide_up(5, UINT64_MAX) == 1);
  CHECK(divide_up(UINT64_MAX, UINT64_MAX) == 1);
  CHECK(divide_up(UINT64_MAX, 2) == std::uint64_t{1} << 63);
  CHECK(round_up(65, 64) == 128);
}

TEST_CASE("a reader never passes the end, whatever the length says") {
  const std::vector<std::byte> data(10);
  for (std::uint64_t length : {std::uint64_t{11}, std::uint64_t{1} << 63, UINT64_MAX}) {
    ByteReader reader(data, "f");
    CHECK_THROWS_AS(reader.take(length, "names"), Error);
    CHECK_THROWS_AS(checked_slice(data, 1, length, "f"), Error);
    CHECK_THROWS_AS(checked_slice(data, length, 1, "f"), Error);
  }
  ByteReader reader(data, "f");
  reader.read<std::uint64_t>("count");
  CHECK_THROWS_WITH(reader.read<std::uint32_t>("offset"),
                    "f:8: truncated in offset (got 2 bytes left, expected 4 bytes)");
}

TEST_CASE("text of files is shown safely") {
  CHECK(printable("a\x1b[2J\n\x7f") == "a\\x1b[2J\\x0a\\x7f");
  CHECK(printable("\xff\xc3\xa9\xc3") == "\\xff\xc3\xa9\\xc3");
  CHECK(printable("\xe2\x80\xae" "abc") == "\\xe2\\x80\\xae" "abc");  // right-to-left override
  CHECK(printable("\xc2\x9b" "31m") == "\\xc2\\x9b" "31m");           // C1 control
  CHECK(printable(std::string(500, 'x'), 10) == "xxxxxxxxxx...");
  CHECK(nearest("ropee", {"none", "rope", "alibi"}) == "rope");
  CHECK(nearest("zzzzzz", {"none", "rope"}).empty());
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(human_bytes(1536) == "1.50 KiB");
}
