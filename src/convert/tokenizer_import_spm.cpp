#include "convert/tokenizer_import_spm.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

using base::cat;
using base::reject;

namespace {

constexpr std::size_t kMostPieces = std::size_t{1} << 24;

// One field of a protobuf message: a number, or a stretch of bytes.
struct Field {
  std::uint32_t number;
  enum class Wire { varint, fixed64, bytes, fixed32 } wire;
  std::uint64_t value;
  base::Bytes bytes;
};

// The fields of one message in order; every length is checked against what is left.
class FieldReader {
 public:
  FieldReader(base::Bytes bytes, std::string_view where) : reader_(bytes, where) {}

  bool next(Field& out) {
    if (reader_.remaining() == 0) return false;
    const std::uint64_t key = varint();
    if (key >> 3 == 0 || key >> 32 != 0) fail("field without a number");
    out = {static_cast<std::uint32_t>(key >> 3), Field::Wire::varint, 0, {}};
    switch (key & 7) {
      case 0:
        out.value = varint();
        return true;
      case 1:
        out.wire = Field::Wire::fixed64;
        out.value = reader_.read<std::uint64_t>("a field");
        return true;
      case 2:
        out.wire = Field::Wire::bytes;
        out.bytes = reader_.take(varint(), "a field");
        return true;
      case 5:
        out.wire = Field::Wire::fixed32;
        out.value = reader_.read<std::uint32_t>("a field");
        return true;
      default:
        fail("unknown wire type");
    }
  }

  [[noreturn]] void fail(std::string_view what) const {
    reject(reader_.place(), cat("not a sentencepiece model: ", what));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = reader_.read<std::uint8_t>("a number");
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("number of more than ten bytes");
  }

  base::ByteReader reader_;
};

bool is(const Field& field, std::uint32_t number, Field::Wire wire) {
  return field.number == number && field.wire == wire;
}

bool flag(const Field& field) {
  return field.value != 0;
}

std::string text_of(const Field& field) {
  return std::string(base::as_text(field.bytes));
}

Piece read_piece(base::Bytes bytes, std::string_view where) {
  Piece piece;
  FieldReader reader(bytes, where);
  for (Field field; reader.next(field);) {
    if (is(field, 1, Field::Wire::bytes)) piece.text = text_of(field);
    if (is(field, 2, Field::Wire::fixed32)) {
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&piece.score, &bits, sizeof bits);
    }
    if (is(field, 3, Field::Wire::varint)) piece.type = static_cast<PieceType>(field.value);
  }
  if (piece.type < PieceType::normal || piece.type > PieceType::byte)
    reject(where, "piece of an unknown type", cat(static_cast<std::int64_t>(piece.type)));
  if (!std::isfinite(piece.score)) reject(where, "piece with a score that is no number");
  return piece;
}

void read_training(base::Bytes bytes, std::string_view where, SentencepieceModel& out) {
  FieldReader reader(bytes, where);
  for (Field field; reader.next(field);) {
    if (is(field, 44, Field::Wire::bytes)) out.unknown_text = text_of(field);
    if (field.wire != Field::Wire::varint) continue;
    const auto value = static_cast<std::int64_t>(field.value);
    if (field.number == 3) out.kind = static_cast<SentencepieceModel::Kind>(value);
    if (field.number == 24) out.space_as_suffix = flag(field);
    if (field.number == 35) out.byte_fallback = flag(field);
    if (field.number == 40) out.unk = value;
    if (field.number == 41) out.bos = value;
    if (field.number == 42) out.eos = value;
    if (field.number == 43) out.pad = value;
  }
}

void read_normalizing(base::Bytes bytes, std::string_view where, SentencepieceModel& out) {
  FieldReader reader(bytes, where);
  for (Field field; reader.next(field);) {
    if (is(field, 2, Field::Wire::bytes)) out.charsmap = text_of(field);
    if (is(field, 3, Field::Wire::varint)) out.add_prefix = flag(field);
    if (is(field, 4, Field::Wire::varint)) out.trim = flag(field);
    if (is(field, 5, Field::Wire::varint)) out.escape_spaces = flag(field);
  }
}

}  // namespace

SentencepieceModel parse_sentencepiece(base::Bytes bytes, std::string_view where) {
  SentencepieceModel out;
  FieldReader reader(bytes, where);
  for (Field field; reader.next(field);) {
    if (field.wire != Field::Wire::bytes) continue;
    if (field.number == 1) {
      if (out.pieces.size() == kMostPieces) reader.fail("too many pieces");
      out.pieces.push_back(read_piece(field.bytes, where));
    }
    if (field.number == 2) read_training(field.bytes, where, out);
    if (field.number == 3) read_normalizing(field.bytes, where, out);
  }
  if (out.pieces.empty()) reader.fail("it has no pieces");
  return out;
}

bool looks_like_sentencepiece(base::Bytes bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x0A} && bytes[2] == std::byte{0x0A};
}

}  // namespace quern::convert
