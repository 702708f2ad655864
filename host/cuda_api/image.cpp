#include "host/cuda_api/image.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "device_sim/base/error.h"
#include "host/cuda_api/lz4_block.h"

namespace gpusim::cuda_api {
namespace {

constexpr size_t kEntryHeader = 64;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000;
// The largest PTX that is taken: nvcc's own limits are far below.
constexpr uint64_t kMostText = uint64_t{1} << 30;

template <typename T>
T read(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(fmt::format("fat binary: {}", what));
}

std::string decompress_zstd(const Entry& entry) {
  std::string text(entry.size_bytes, 0);
  const size_t size =
      ZSTD_decompress(text.data(), text.size(), entry.stored.data(), entry.stored.size());
  if (ZSTD_isError(size))
    fail(fmt::format("its PTX is spoiled (zstd: {})", ZSTD_getErrorName(size)));
  if (size != text.size()) fail("its PTX is spoiled (zstd: another size than the header says)");
  return text;
}

std::string list_architectures(const std::vector<Entry>& entries) {
  std::set<uint32_t> found;
  for (const Entry& e : entries) found.insert(e.architecture);
  std::string text;
  for (const uint32_t a : found) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", a);
  return text;
}

}  // namespace

std::vector<Entry> read_container(std::span<const std::byte> bytes) {
  if (bytes.size() < 16) fail("it is cut off before the end of its header");
  if (read<uint32_t>(bytes, 0) != kContainerMagic) fail("it does not begin with its magic number");
  const auto version = read<uint16_t>(bytes, 4);
  const auto header = read<uint16_t>(bytes, 6);
  const auto payload = read<uint64_t>(bytes, 8);
  if (version != 1) fail(fmt::format("version {} is not known, only 1", version));
  if (header < 16 || header > bytes.size()) fail(fmt::format("a header of {} bytes", header));
  if (payload > bytes.size() - header)
    fail(
        fmt::format("it says {} bytes of entries, {} can be read", payload, bytes.size() - header));
  std::span<const std::byte> rest = bytes.subspan(header, payload);
  std::vector<Entry> entries;
  while (!rest.empty()) {
    if (rest.size() < kEntryHeader) fail("an entry's header is cut off");
    const auto kind = read<uint16_t>(rest, 0);
    const auto size_of_header = read<uint32_t>(rest, 4);
    const auto stored = read<uint64_t>(rest, 8);
    if (size_of_header < kEntryHeader || size_of_header > rest.size())
      fail(fmt::format("an entry's header of {} bytes", size_of_header));
    if (stored > rest.size() - size_of_header)
      fail(fmt::format("an entry of {} bytes, {} are left", stored, rest.size() - size_of_header));
    Entry e;
    e.kind = static_cast<EntryKind>(kind);
    e.architecture = read<uint32_t>(rest, 28);
    e.flags = read<uint64_t>(rest, 40);
    e.is_compressed = (e.flags & (kFlagLz4 | kFlagZstd)) != 0;
    // Padded to 8 bytes; the compressed size is without padding.
    const uint64_t compressed = read<uint32_t>(rest, 16);
    e.stored = rest.subspan(size_of_header, stored);
    if (e.is_compressed) {
      if (compressed > stored)
        fail(fmt::format("an entry of {} bytes holds {} compressed ones", stored, compressed));
      e.stored = e.stored.first(compressed);
    }
    e.size_bytes = e.is_compressed ? read<uint64_t>(rest, 56) : stored;
    if (e.kind == EntryKind::kPtx || e.kind == EntryKind::kElf) entries.push_back(e);
    rest = rest.subspan(size_of_header + stored);
  }
  return entries;
}

std::string ptx_text(const Entry& entry) {
  if (entry.size_bytes > kMostText)
    fail(fmt::format("{} bytes of PTX: more than {} are not taken", entry.size_bytes, kMostText));
  std::string text;
  if ((entry.flags & kFlagZstd) != 0) {
    text = decompress_zstd(entry);
  } else if ((entry.flags & kFlagLz4) != 0) {
    auto decompressed = decompress_lz4_block(entry.stored, entry.size_bytes);
    if (!decompressed) fail("its PTX is spoiled (LZ4)");
    text = std::move(*decompressed);
  } else {
    text.assign(reinterpret_cast<const char*>(entry.stored.data()), entry.stored.size());
  }
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

Image highest_ptx(std::span<const std::byte> container) {
  const std::vector<Entry> entries = read_container(container);
  const Entry* best = nullptr;
  for (const Entry& e : entries)
    if (e.kind == EntryKind::kPtx && (best == nullptr || e.architecture > best->architecture))
      best = &e;
  if (best == nullptr) {
    if (entries.empty()) fail("it has neither PTX nor machine code");
    throw Error(fmt::format(
        "the program's kernels are there as machine code only ({}), and gpusim runs PTX: build it "
        "with nvcc -arch=sm_{}, or add -gencode arch=compute_{},code=compute_{}",
        list_architectures(entries), entries.back().architecture, entries.back().architecture,
        entries.back().architecture));
  }
  return {.ptx = ptx_text(*best), .architecture = best->architecture};
}

size_t readable_bytes(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                   &std::fclose);
  if (maps == nullptr) return 0;
  uintptr_t end = wanted;  // as far as mappings follow each other
  char line[4608];
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    unsigned long from = 0, to = 0;
    char rights[5] = {};
    if (std::sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3) continue;
    if (to <= end) continue;
    if (from > end || rights[0] != 'r') break;
    end = to;
  }
  return end - wanted;
}

}  // namespace gpusim::cuda_api
