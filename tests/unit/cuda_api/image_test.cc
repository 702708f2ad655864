#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zstd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device_sim/base/error.h"
#include "host/cuda_api/image.h"
#include "host/cuda_api/lz4_block.h"

namespace gpusim::cuda_api {
namespace {

constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

void append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

struct Piece {
  uint16_t kind;
  uint32_t architecture;
  std::string stored;  // as it lies in the file, without padding
  uint64_t flags = 0, size = 0;
};

std::string entry(const Piece& p) {
  std::string header(64, 0), stored = p.stored;
  stored.resize((stored.size() + 7) / 8 * 8);
  const uint16_t version = 0x101;
  const uint32_t header_size = 64, compressed = static_cast<uint32_t>(p.stored.size());
  const uint64_t padded = stored.size();
  std::memcpy(header.data(), &p.kind, 2);
  std::memcpy(header.data() + 2, &version, 2);
  std::memcpy(header.data() + 4, &header_size, 4);
  std::memcpy(header.data() + 8, &padded, 8);
  if (p.flags != 0) std::memcpy(header.data() + 16, &compressed, 4);
  std::memcpy(header.data() + 28, &p.architecture, 4);
  std::memcpy(header.data() + 40, &p.flags, 8);
  std::memcpy(header.data() + 56, &p.size, 8);
  return header + stored;
}

std::string container(const std::vector<Piece>& pieces) {
  std::string all;
  for (const Piece& p : pieces) all += entry(p);
  std::string bytes;
  const uint32_t magic = kContainerMagic;
  const uint16_t version = 1, header = 16;
  const uint64_t size = all.size();
  append(bytes, &magic, 4);
  append(bytes, &version, 2);
  append(bytes, &header, 2);
  append(bytes, &size, 8);
  return bytes + all;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), 0);
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string message_of(const std::string& bytes) {
  try {
    highest_ptx(bytes_of(bytes));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string kText =
    ".version 9.0\n.target sm_80\n.address_size 64\n// " + std::string(300, 'x') + "\n";
// The same text as an LZ4 block, by hand: literals, then a match of distance 1.
std::string lz4_of_text() {
  const size_t head = kText.find('x') + 1;  // 48 + 1 literals
  std::string block;
  block += static_cast<char>(0xff);
  block += static_cast<char>(head - 15);
  block += kText.substr(0, head);
  block += std::string("\x01\x00", 2);
  size_t rest = 299 - 4 - 15;  // of the match's length
  for (; rest >= 255; rest -= 255) block += static_cast<char>(0xff);
  block += static_cast<char>(rest);
  return block + std::string("\x10\n", 2);
}

}  // namespace

TEST_CASE("PTX in each form that nvcc writes") {
  const std::string plain = container({{1, 80, kText}});
  const std::string small = container({{1, 80, zstd(kText), kZstd, kText.size()}});
  const std::string fast = container({{1, 80, lz4_of_text(), kLz4, kText.size()}});
  for (const std::string& bytes : {plain, small, fast}) {
    const Image image = highest_ptx(bytes_of(bytes));
    CHECK(image.ptx == kText);
    CHECK(image.architecture == 80);
  }
}

TEST_CASE("the highest PTX wins, and machine code does not count") {
  const std::string bytes = container({{2, 90,
                                        "\x7f"
                                        "ELF"},
                                       {1, 75, "seventy-five"},
                                       {1, 90, "ninety"},
                                       {1, 80, "eighty"}});
  CHECK(highest_ptx(bytes_of(bytes)).ptx == "ninety");
  CHECK(highest_ptx(bytes_of(bytes)).architecture == 90);
}

TEST_CASE("a program without PTX is told what to do") {
  const std::string text = message_of(container({{2, 80,
                                                  "\x7f"
                                                  "ELF"}}));
  CHECK(text.find("machine code only (sm_80)") != std::string::npos);
  CHECK(text.find("-gencode arch=compute_80,code=compute_80") != std::string::npos);
}

TEST_CASE("what is spoiled is named") {
  CHECK(message_of("short").find("cut off") != std::string::npos);
  CHECK(message_of(std::string(64, 'a')).find("magic number") != std::string::npos);
  std::string bytes = container({{1, 80, kText}});
  CHECK(message_of(bytes.substr(0, bytes.size() - 9)).find("can be read") != std::string::npos);
  std::string spoiled = zstd(kText);
  spoiled.resize(spoiled.size() / 2);
  CHECK(message_of(container({{1, 80, spoiled, kZstd, kText.size()}})).find("spoiled") !=
        std::string::npos);
  // A size that would take all memory.
  CHECK(message_of(container({{1, 80, zstd(kText), kZstd, uint64_t{1} << 60}})) != "");
  CHECK(message_of(container({{1, 80, lz4_of_text(), kLz4, uint64_t{1} << 29}})).find("LZ4") !=
        std::string::npos);
}

TEST_CASE("an LZ4 block that lies is refused") {
  const auto refuses = [](const std::string& block, size_t size) {
    return !decompress_lz4_block(bytes_of(block), size).has_value();
  };
  CHECK(decompress_lz4_block(bytes_of(std::string("\x30"
                                                  "abc",
                                                  4)),
                             3) == "abc");
  CHECK(refuses(std::string("\x30"
                            "ab",
                            3),
                3));  // literals cut off
  CHECK(refuses(std::string("\x10"
                            "a\x02\x00\x10"
                            "b",
                            6),
                6));  // before the beginning
  CHECK(refuses(std::string("\x10"
                            "a\x00\x00\x10"
                            "b",
                            6),
                6));  // distance 0
  CHECK(refuses(std::string("\x10"
                            "a\x01",
                            3),
                6));  // half a distance
  CHECK(refuses(std::string("\x1f"
                            "a\x01\x00\xff\xff",
                            6),
                1 << 10));  // length without end
  CHECK(refuses(std::string("\x30"
                            "abc",
                            4),
                4));  // too little
}

TEST_CASE("mutated images give an error or a text, never a crash") {
  std::mt19937 random(20261125);
  const std::vector<std::string> seeds = {
      container({{1, 80, kText}}),
      container({{1, 80, zstd(kText), kZstd, kText.size()},
                 {2, 80,
                  "\x7f"
                  "ELF"}}),
      container({{1, 80, lz4_of_text(), kLz4, kText.size()}, {1, 90, "x"}})};
  size_t errors = 0, texts = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    const unsigned changes = 1 + random() % 4;
    for (unsigned i = 0; i < changes; ++i)
      bytes[random() % std::min<size_t>(bytes.size(), random() % 2 == 0 ? 96 : 1 << 20)] =
          static_cast<char>(random() % 3 == 0 ? 0xff : random());
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    // In memory of just that size, so that a sanitizer sees a read behind it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    try {
      highest_ptx({reinterpret_cast<const std::byte*>(exact.data()), exact.size()});
      ++texts;
    } catch (const Error&) {
      ++errors;
    }
  }
  CHECK(errors > 1000);
  CHECK(texts > 1000);
}

TEST_CASE("how far memory can be read") {
  const std::string text(5000, 'a');
  CHECK(readable_bytes(text.data()) >= text.size());
  CHECK(readable_bytes(nullptr) == 0);
}

}  // namespace gpusim::cuda_api
