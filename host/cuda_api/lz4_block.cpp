#include "host/cuda_api/lz4_block.h"

#include <cstdint>

namespace gpusim::cuda_api {
namespace {

constexpr size_t kShortestMatch = 4;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool is_at_end() const { return at_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - at_; }
  bool byte(uint8_t& value) {
    if (is_at_end()) return false;
    value = static_cast<uint8_t>(bytes_[at_++]);
    return true;
  }
  // A length of 15 goes on in bytes, up to the first below 255.
  bool length(size_t& value) {
    if (value != 15) return true;
    uint8_t more = 255;
    while (more == 255) {
      if (!byte(more)) return false;
      value += more;
    }
    return true;
  }
  const char* take(size_t count) {
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
    at_ += count;
    return begin;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::string> decompress_lz4_block(std::span<const std::byte> block,
                                                size_t size_bytes) {
  // One byte of a block gives at most 255 bytes: a size beyond that is a spoiled header.
  if (size_bytes / 255 > block.size()) return std::nullopt;
  std::string out;
  out.reserve(size_bytes);
  Reader in(block);
  while (!in.is_at_end()) {
    uint8_t token = 0, low = 0, high = 0;
    in.byte(token);
    size_t literals = token >> 4, match = token & 15;
    if (!in.length(literals)) return std::nullopt;
    if (literals > in.left() || literals > size_bytes - out.size()) return std::nullopt;
    out.append(in.take(literals), literals);
    if (in.is_at_end()) break;  // the last sequence has no match
    if (!in.byte(low) || !in.byte(high)) return std::nullopt;
    const size_t distance = low | size_t{high} << 8;
    if (!in.length(match)) return std::nullopt;
    match += kShortestMatch;
    if (distance == 0 || distance > out.size() || match > size_bytes - out.size())
      return std::nullopt;
    // Byte by byte: a match may overlap what it writes.
    for (size_t i = 0; i < match; ++i) out.push_back(out[out.size() - distance]);
  }
  if (out.size() != size_bytes) return std::nullopt;
  return out;
}

}  // namespace gpusim::cuda_api
