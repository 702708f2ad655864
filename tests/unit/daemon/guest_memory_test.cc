#include "qemu_bridge/daemon/guest_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>

#include "device_sim/base/error.h"
#include "host/offload/offload_error.h"
#include "qemu_bridge/daemon/serial_transport.h"
#include "tests/unit/daemon/seed.h"

using namespace gpusim::daemon;
using gpusim::FileDescriptor;
using gpusim::offload::FilePiece;
using gpusim::offload::OffloadError;

namespace {

constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();

FileDescriptor file_of_pages(uint64_t pages) {
  FileDescriptor file(memfd_create("ram", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), static_cast<off_t>(pages * kPageSize)) == 0);
  // Each page tells its number.
  for (uint64_t i = 0; i < pages; ++i)
    REQUIRE(pwrite(file.get(), &i, sizeof i, static_cast<off_t>(i * kPageSize)) == sizeof i);
  return file;
}

// [page 16, 24) and [24, 32) adjoin but lie elsewhere in the file; [40, 44) is another file,
// read-only; the last page of all is RAM, too.
GuestMemory memory() {
  std::vector<FileDescriptor> files;
  files.push_back(file_of_pages(32));
  files.push_back(file_of_pages(4));
  return GuestMemory(
      std::move(files),
      {{.gpa = 40 * kPageSize, .size_bytes = 4 * kPageSize, .file = 1, .read_only = true},
       {.gpa = 16 * kPageSize, .size_bytes = 8 * kPageSize, .offset = 8 * kPageSize},
       {.gpa = 24 * kPageSize, .size_bytes = 8 * kPageSize},
       {.gpa = kTop - 2 * kPageSize + 1, .size_bytes = kPageSize, .offset = 31 * kPageSize}});
}

int error_of(const auto& f) {
  try {
    f();
  } catch (const OffloadError& error) {
    CHECK(std::string(error.what()).size() > 10);
    return error.number();
  }
  return 0;
}

size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

}  // namespace

TEST_CASE("bytes lie in one region, whatever the numbers") {
  const GuestMemory m = memory();
  CHECK(m.size_bytes() == 21 * kPageSize);
  CHECK(m.bytes(16 * kPageSize, 8 * kPageSize, true) != nullptr);
  CHECK(m.bytes(16 * kPageSize, 8 * kPageSize + 1, true) == nullptr);
  CHECK(m.bytes(16 * kPageSize - 1, 1, false) == nullptr);
  CHECK(m.bytes(32 * kPageSize - 1, 1, true) != nullptr);
  CHECK(m.bytes(32 * kPageSize, 1, true) == nullptr);
  CHECK(m.bytes(32 * kPageSize - 1, 2, true) == nullptr);
  CHECK(m.bytes(20 * kPageSize, kTop, false) == nullptr);
  CHECK(m.bytes(20 * kPageSize, kTop - 20 * kPageSize + 1, false) == nullptr);
  CHECK(m.bytes(kTop, 1, false) == nullptr);
  CHECK(m.bytes(kTop - kPageSize, 1, false) != nullptr);
  CHECK(m.bytes(kTop - kPageSize, 2, false) == nullptr);
  CHECK(m.bytes(kTop - kPageSize, kTop, false) == nullptr);
  CHECK(m.bytes(40 * kPageSize, 8, true) == nullptr);
  CHECK(m.bytes(40 * kPageSize, 8, false) != nullptr);
  CHECK(*reinterpret_cast<uint64_t*>(m.bytes(17 * kPageSize, 8, false)) == 9);
  CHECK(GuestMemory().bytes(0, 1, false) == nullptr);
}

TEST_CASE("copies may cross adjoining regions only") {
  const GuestMemory m = memory();
  std::vector<uint8_t> two(2 * kPageSize);
  REQUIRE(m.copy_out(23 * kPageSize, two));
  uint64_t first, second;
  std::memcpy(&first, two.data(), 8);
  std::memcpy(&second, two.data() + kPageSize, 8);
  CHECK(first == 15);
  CHECK(second == 0);
  CHECK_FALSE(m.copy_out(31 * kPageSize, two));
  CHECK_FALSE(m.copy_out(15 * kPageSize, two));
  CHECK_FALSE(m.copy_out(kTop - 8, two));
  CHECK(m.copy_out(kTop, {}));
}

TEST_CASE("extents become pieces of files, neighbours merged") {
  const GuestMemory m = memory();
  const auto pieces = [&](std::vector<gpusim_extent> extents, bool writable = true,
                          uint64_t most = 100) {
    uint64_t size = 0;
    for (const gpusim_extent& e : extents) size += e.size_bytes;
    return m.pieces(extents, size, writable, most);
  };
  const uint64_t p = kPageSize;
  CHECK(pieces({{16 * p, p}, {17 * p, 2 * p}, {19 * p, p}}).size() == 1);
  // Over the border, where the file jumps.
  const auto over = pieces({{22 * p, 4 * p}});
  REQUIRE(over.size() == 2);
  CHECK(over[0].offset == 14 * p);
  CHECK(over[0].size_bytes == 2 * p);
  CHECK(over[1].offset == 0);
  CHECK(over[1].size_bytes == 2 * p);
  // One page many times.
  CHECK(pieces({{16 * p, p}, {16 * p, p}}).size() == 2);
  CHECK(pieces({{40 * p, p}}, false).size() == 1);
  CHECK(error_of([&] { pieces({{40 * p, p}}); }) == EACCES);
  CHECK(error_of([&] { pieces({{16 * p, p}, {18 * p, p}, {20 * p, p}}, true, 2); }) == ENOMEM);
  CHECK(error_of([&] { pieces({{16 * p, p}}, true, 0); }) == ENOMEM);
  CHECK(error_of([&] { pieces({{15 * p, p}}); }) == EFAULT);
  CHECK(error_of([&] { pieces({{31 * p, 2 * p}}); }) == EFAULT);
  CHECK(error_of([&] { pieces({{kTop - 2 * p + 1, 2 * p}}); }) == EFAULT);
  CHECK(error_of([&] { pieces({{kTop - p + 1, p}}); }) == EFAULT);
  CHECK(error_of([&] { pieces({{16 * p + 1, p}}); }) == EINVAL);
  CHECK(error_of([&] { pieces({{16 * p, p - 1}}); }) == EINVAL);
  CHECK(error_of([&] { pieces({{16 * p, 0}}); }) == EINVAL);
  const gpusim_extent list[2] = {{16 * p, p}, {17 * p, p}};
  CHECK(error_of([&] { m.pieces(list, 3 * p, true, 9); }) == EINVAL);
  CHECK(error_of([&] { m.pieces(list, p, true, 9); }) == EINVAL);
  CHECK(error_of([&] { m.pieces({}, p, true, 9); }) == EINVAL);
  // A sum that wraps around to the right size.
  const gpusim_extent wraps[2] = {{16 * p, kTop - p + 1}, {17 * p, 2 * p}};
  CHECK(error_of([&] { m.pieces(wraps, p, true, 9); }) == EINVAL);
}

TEST_CASE("pieces are the pages that the extents name") {
  const uint64_t seed = gpusim::test::seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  const GuestMemory m = memory();
  for (int round = 0; round < 2000; ++round) {
    std::vector<gpusim_extent> extents;
    uint64_t size = 0;
    bool all_ram = true;
    for (uint64_t i = random() % 6 + 1; i != 0; --i) {
      const uint64_t page = 14 + random() % 20, count = 1 + random() % 5;
      for (uint64_t k = page; k < page + count; ++k) all_ram &= k >= 16 && k < 32;
      extents.push_back({page * kPageSize, count * kPageSize});
      size += count * kPageSize;
    }
    std::vector<FilePiece> pieces;
    const int error = error_of([&] { pieces = m.pieces(extents, size, true, 100); });
    REQUIRE(error == (all_ram ? 0 : EFAULT));
    if (error != 0) continue;
    std::vector<uint64_t> wanted, got;  // pages of the file
    for (const gpusim_extent& e : extents)
      for (uint64_t k = e.gpa / kPageSize; k < (e.gpa + e.size_bytes) / kPageSize; ++k)
        wanted.push_back(k < 24 ? k - 8 : k - 24);
    for (const FilePiece& piece : pieces)
      for (uint64_t k = 0; k < piece.size_bytes / kPageSize; ++k)
        got.push_back(piece.offset / kPageSize + k);
    REQUIRE(got == wanted);
  }
}

TEST_CASE("regions that cannot be are refused, and nothing stays mapped") {
  const auto refused = [](RamRegion second) {
    std::vector<FileDescriptor> files;
    files.push_back(file_of_pages(8));
    try {
      GuestMemory m(std::move(files), {{.gpa = 0, .size_bytes = 4 * kPageSize}, second});
      return false;
    } catch (const gpusim::Error&) {
      return true;
    }
  };
  const uint64_t p = kPageSize;
  (void)refused({.gpa = 0, .size_bytes = p});  // the first error thrown may map things for good
  const size_t before = mappings();
  CHECK_FALSE(refused({.gpa = 4 * p, .size_bytes = 8 * p}));
  CHECK(refused({.gpa = 3 * p, .size_bytes = p}));
  CHECK(refused({.gpa = 0, .size_bytes = p}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = 9 * p}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = 8 * p, .offset = p}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = p, .offset = kTop - p + 1}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = 0}));
  CHECK(refused({.gpa = 4 * p + 1, .size_bytes = p}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = p, .offset = 512}));
  CHECK(refused({.gpa = 4 * p, .size_bytes = p, .file = 1}));
  CHECK(refused({.gpa = kTop - p + 1, .size_bytes = 2 * p}));
  CHECK(mappings() <= before + 2);
}

TEST_CASE("--ram FILE[@GPA][:SIZE][+OFFSET]") {
  const RamFile plain = parse_ram_file("/dev/shm/ram");
  CHECK(plain.path == "/dev/shm/ram");
  CHECK(plain.gpa == 0x40000000);
  CHECK(!plain.size_bytes);
  CHECK(plain.offset == 0);
  const RamFile whole = parse_ram_file("a/b@0x80000000:2G+512M");
  CHECK(whole.path == "a/b");
  CHECK(whole.gpa == 0x80000000);
  CHECK(whole.size_bytes == uint64_t{2} << 30);
  CHECK(whole.offset == 512u << 20);
  CHECK(parse_ram_file("vm@home:x+y/ram:4096").path == "vm@home:x+y/ram");
  CHECK(parse_ram_file("vm@1/ram").path == "vm@1/ram");
  CHECK(parse_ram_file("ram@0").gpa == 0);
  for (const char* bad : {"", "@5", ":1M", "ram@0xg", "ram:12Q", "ram:99999999999999999999",
                          "ram:18446744073709551615G"})
    CHECK_THROWS_AS(parse_ram_file(bad), gpusim::Error);
}
