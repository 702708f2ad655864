// Guest memory: where bytes go, which accesses are allowed, and what a refused one leaves behind.
#include "device_sim/core/guest_memory.h"

#include <doctest/doctest.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "device_sim/core/effects.h"
#include "device_sim/core/touched_pages.h"

namespace gpusim {
namespace {

constexpr uint64_t kLinear = 0x40000, kWindows = 0x100000;

MachineConfig config_of(MemoryModel model, uint32_t cores = 5) {
  MachineConfig c;
  c.cores = cores;
  c.memory_model = model;
  c.linear_base = kLinear;
  c.linear_size = 4 * kPageSize;
  c.window_base = kWindows;
  c.window_shift = 13;
  return c;
}

struct Memory : GuestMemory {
  explicit Memory(const MachineConfig& config, uint32_t lanes_shift = 2) {
    configure(config, lanes_shift);
    set_permissions_all(config.linear_base, config.linear_size, kRead | kWrite);
    const bool is_private = config.memory_model == MemoryModel::kPrivate;
    set_permissions_all(config.window_base,
                        uint64_t{is_private ? 1 : config.cores} << config.window_shift,
                        kRead | kWrite);
  }
  std::vector<uint8_t> bytes(uint32_t core, uint64_t address, size_t n) const {
    std::vector<uint8_t> out(n);
    REQUIRE(read(core, address, out));
    return out;
  }
  bool put(uint32_t core, uint64_t address, std::vector<uint8_t> in) {
    return write(core, address, in);
  }
};

TEST_CASE("storage interleaves the windows of neighbouring cores word by word") {
  const Memory m(config_of(MemoryModel::kShared, 9));
  const MemoryView& v = m.view();
  CHECK(v.window_index(1, 0) == v.window_index(0, 0) + 8);
  CHECK(v.window_index(0, 8) == v.window_index(0, 0) + 4 * 8);
  CHECK(v.window_index(0, 7) == v.window_index(0, 0) + 7);
  // Of 4 cores each, 1 KiB of every window makes a page; those of the 3 groups follow each other.
  CHECK(v.window_index(4, 0) == v.window_index(0, 0) + kPageSize);
  CHECK(v.window_index(0, 1024) == v.window_index(0, 0) + 3 * kPageSize);
  std::set<uint64_t> bytes, pages;
  for (uint32_t core = 0; core < 9; ++core) {
    for (uint64_t offset = 0; offset < 8192; ++offset) bytes.insert(v.window_index(core, offset));
    for (uint64_t offset = 0; offset < 8192; offset += kPageSize)
      pages.insert(v.window_page_index(core, offset));
  }
  CHECK(bytes.size() == 9 * 8192);
  CHECK(*bytes.rbegin() < windows_storage_bytes(v));
  CHECK(pages.size() == 9 * 2);
  CHECK(*pages.rbegin() < window_pages_bytes(v));
}

TEST_CASE("windows keep their contents and rights in either layout") {
  constexpr uint32_t kCores = 9;
  constexpr uint64_t kZone = kCores * 8192;
  Memory m(config_of(MemoryModel::kShared, kCores));
  std::vector<uint8_t> all(kZone);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i % 4096 < 300 ? i * 7 : 0);
  REQUIRE(m.put(0, kWindows, all));
  REQUIRE(m.set_permissions(0, kWindows + 3 * kPageSize, kPageSize, kRead));
  const uint8_t* const interleaved = m.view().windows;
  m.reserve_other_layout();
  CHECK(m.interleave(0) == 2 * 3);  // of 3 groups what begins each of the windows' two pages
  CHECK(m.view().windows != interleaved);
  // Plain: by address, one after the other.
  CHECK(std::equal(all.begin(), all.end(), m.view().windows));
  CHECK(m.bytes(0, kWindows, kZone) == all);
  CHECK(m.permissions(0, kWindows + 3 * kPageSize) == kRead);
  CHECK(m.permissions(0, kWindows + 4 * kPageSize) == (kRead | kWrite));
  // What becomes zero meanwhile is zero afterwards.
  REQUIRE(m.put(0, kWindows + 8192, std::vector<uint8_t>(64)));
  std::fill_n(all.begin() + 8192, 64, uint8_t{0});
  m.interleave(2);
  CHECK(m.view().windows == interleaved);
  CHECK(m.bytes(0, kWindows, kZone) == all);
  m.interleave(0);
  CHECK(m.bytes(0, kWindows, kZone) == all);
}

TEST_CASE("memory that is cleared goes back to the system, where it is more than a few pages") {
  MachineConfig config = config_of(MemoryModel::kShared);
  config.linear_base = 1 << 20;
  config.linear_size = 100 * kPageSize;
  config.window_base = 2 << 20;
  Memory m(config);
  const std::vector<uint8_t> ones(config.linear_size, 1);
  REQUIRE(m.put(0, config.linear_base, ones));
  constexpr uint64_t kBegin = 3 * kPageSize + 100, kEnd = 50 * kPageSize + 7;
  REQUIRE(m.fill_zero(0, config.linear_base + kBegin, kEnd - kBegin));
  const TouchedPages touched(m.view().linear, config.linear_size);
  CHECK(touched(m.view().linear + 3 * kPageSize));
  CHECK_FALSE(touched(m.view().linear + 4 * kPageSize));
  CHECK_FALSE(touched(m.view().linear + 49 * kPageSize));
  CHECK(touched(m.view().linear + 50 * kPageSize));
  const std::vector<uint8_t> found = m.bytes(0, config.linear_base, config.linear_size);
  for (uint64_t i = 0; i < found.size(); ++i)
    if (found[i] != (i < kBegin || i >= kEnd)) FAIL_CHECK(i);
}

// Whether the system was asked for huge pages there.
bool wishes_huge_pages(const uint8_t* p) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(p);
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      is_inside = begin <= address && address < end;
    else if (is_inside && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

TEST_CASE("large arrays of the linear zone get huge pages, where the system has any") {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) return;
  constexpr uint64_t kMiB = 1 << 20;
  MachineConfig config = config_of(MemoryModel::kShared);
  config.linear_base = kMiB;
  config.linear_size = 64 * kMiB;
  config.window_base = 65 * kMiB;
  GuestMemory m;
  m.configure(config, 2);
  m.set_permissions_all(2 * kMiB, 16 * kMiB, kRead | kWrite);
  m.set_permissions_all(20 * kMiB, 8 * kMiB, kRead | kWrite);  // a thread's stack
  m.set_permissions_all(30 * kMiB, 16 * kMiB, kRead);
  m.set_permissions_all(50 * kMiB, 16 * kMiB, kRead | kWrite);  // into the windows: refused
  const auto at = [&](uint64_t address) { return m.view().linear + (address - kMiB); };
  CHECK(wishes_huge_pages(at(2 * kMiB)));
  CHECK(wishes_huge_pages(at(18 * kMiB - 1)));
  for (const uint64_t address : {kMiB, 18 * kMiB, 20 * kMiB, 30 * kMiB, 50 * kMiB})
    CHECK_FALSE(wishes_huge_pages(at(address)));
}

TEST_CASE("words that grow from core to core reach every window") {
  Memory m(config_of(MemoryModel::kShared, 9));
  const std::vector<CoreWord> words{{7, 0}, {100, 3}};
  REQUIRE(m.write_windows(kWindows + 8192 - 16, words));
  for (uint32_t core = 0; core < 9; ++core) {
    const std::vector<uint8_t> found = m.bytes(0, kWindows + (core + 1) * 8192 - 16, 16);
    CHECK(found[0] == 7);
    CHECK(found[8] == 100 + 3 * core);
  }
  CHECK_FALSE(m.write_windows(kWindows + 8192 - 8, words));  // past the end of the window
  CHECK_FALSE(m.write_windows(kWindows + 4, words));
  Memory own(config_of(MemoryModel::kPrivate, 9));
  CHECK_FALSE(own.write_windows(kWindows, words));
}

TEST_CASE("a range is its bytes one by one, wherever it begins and ends") {
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
    // From inside a page of the linear zone, from inside a window into the next one.
    for (const uint64_t base : {kLinear + kPageSize - 9, kWindows + kPageSize - 9,
                                kWindows + (model == MemoryModel::kShared ? 8192 - 20 : 0)}) {
      for (uint64_t skip = 0; skip < 9; ++skip) {
        for (const size_t size : {0, 1, 7, 8, 9, 31, 40}) {
          CAPTURE(base + skip);
          CAPTURE(size);
          Memory m(config_of(model));
          std::vector<uint8_t> in(size);
          for (size_t i = 0; i < size; ++i) in[i] = static_cast<uint8_t>(i + 1);
          REQUIRE(m.put(1, base + skip, in));
          CHECK(m.bytes(1, base + skip, size) == in);
          for (size_t i = 0; i < size; ++i) CHECK(m.bytes(1, base + skip + i, 1)[0] == in[i]);
          CHECK(m.bytes(1, base + skip + size, 1)[0] == 0);
          if (base + skip > kWindows) CHECK(m.bytes(1, base + skip - 1, 1)[0] == 0);
          REQUIRE(m.fill_zero(1, base + skip, size));
          CHECK(m.bytes(1, base + skip, size) == std::vector<uint8_t>(size));
        }
      }
    }
  }
}

TEST_CASE("cores share the linear zone; windows are one after the other, or one for each") {
  Memory shared(config_of(MemoryModel::kShared)), own(config_of(MemoryModel::kPrivate));
  CHECK(shared.put(0, kLinear + 5, {1, 2, 3}));
  CHECK(shared.bytes(4, kLinear + 5, 3) == std::vector<uint8_t>{1, 2, 3});
  CHECK(shared.put(0, kWindows + 3 * 8192 + 7, {9, 8}));
  CHECK(shared.bytes(1, kWindows + 3 * 8192 + 7, 2) == std::vector<uint8_t>{9, 8});
  CHECK(!shared.put(0, kWindows + 5 * 8192 - 1, {1, 1}));
  CHECK(shared.bytes(0, kWindows + 5 * 8192 - 1, 1) == std::vector<uint8_t>{0});
  CHECK(own.put(2, kWindows + 8, {7}));
  CHECK(own.bytes(2, kWindows + 8, 1) == std::vector<uint8_t>{7});
  CHECK(own.bytes(1, kWindows + 8, 1) == std::vector<uint8_t>{0});
  CHECK(!own.put(0, kWindows + 8192, {1}));
  CHECK(own.write_all(kWindows + 8190, std::vector<uint8_t>{5, 6}));
  for (uint32_t core = 0; core < 5; ++core)
    CHECK(own.bytes(core, kWindows + 8190, 2) == std::vector<uint8_t>{5, 6});
}

TEST_CASE("the end of a private window may lie elsewhere") {
  constexpr uint64_t kStack = 0x5500000000;
  MachineConfig config = config_of(MemoryModel::kPrivate);
  config.stack_base = kStack;
  config.stack_size = kPageSize;
  GuestMemory m;
  m.configure(config, 2);
  REQUIRE(m.set_permissions_all(kWindows, kPageSize, kRead | kWrite));
  REQUIRE(m.set_permissions_all(kStack, kPageSize, kRead | kWrite));
  CHECK(!m.set_permissions_all(kWindows + kPageSize, 1, kRead));
  CHECK(!m.set_permissions_all(kStack, kPageSize + 1, kRead));
  const MemoryView& v = m.view();
  for (uint32_t core = 0; core < 5; ++core) {
    REQUIRE(m.write(core, kWindows + 16, std::vector<uint8_t>{uint8_t(core + 1)}));
    CHECK(v.store<uint64_t>(core, kStack + 16, core + 100));
    CHECK(v.store<uint32_t>(core, kStack + kPageSize - 4, core + 200));
  }
  for (uint32_t core = 0; core < 5; ++core) {
    std::vector<uint8_t> byte(1);
    REQUIRE(m.read(core, kWindows + 16, byte));
    CHECK(byte[0] == core + 1);
    REQUIRE(m.read(core, kStack + 16, byte));
    CHECK(byte[0] == core + 100);
    uint32_t last = 0;
    CHECK(v.load(core, kStack + kPageSize - 4, &last));
    CHECK(last == core + 200);
    CHECK(!v.load(core, kStack + kPageSize - 2, &last));
    CHECK(!v.load(core, kStack - 2, &last));
    CHECK(!v.load(core, kWindows + kPageSize - 2, &last));
    CHECK(!v.store(core, kWindows + kPageSize, last));
  }
  CHECK(m.fill_zero(3, kStack, kPageSize));
  uint64_t word = 1;
  CHECK(v.load(3, kStack + 16, &word));
  CHECK(word == 0);
  CHECK(v.load(2, kStack + 16, &word));
  CHECK(word == 102);
  CHECK(!m.fill_zero(3, kWindows, kPageSize + 1));
}

TEST_CASE("host accesses go from window to window and from the linear zone into touching ones") {
  MachineConfig config = config_of(MemoryModel::kShared);
  config.window_base = kLinear + config.linear_size;
  Memory m(config);
  std::vector<uint8_t> pattern(3 * 8192 + 50);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 7 + 1);
  const uint64_t at = config.window_base - 21;
  CHECK(m.write(0, at, pattern));
  CHECK(m.bytes(3, at, pattern.size()) == pattern);
  CHECK(m.fill_zero(0, at + 3, pattern.size() - 6));
  std::fill(pattern.begin() + 3, pattern.end() - 3, uint8_t{0});
  CHECK(m.bytes(0, at, pattern.size()) == pattern);
  CHECK(!m.write(0, config.window_base + 5 * 8192 - 20, pattern));
}

TEST_CASE("host accesses refuse ranges that wrap round or leave the zones") {
  Memory m(config_of(MemoryModel::kShared));
  std::vector<uint8_t> two(2);
  CHECK(!m.read(0, kLinear - 1, two));
  CHECK(!m.read(0, kLinear + 4 * kPageSize - 1, two));
  CHECK(!m.read(0, ~uint64_t{0}, two));
  CHECK(!m.fill_zero(0, kLinear + 1, ~uint64_t{0}));
  CHECK(!m.fill_zero(0, kWindows + 1, ~uint64_t{0}));
  CHECK(!m.set_permissions(0, kLinear + 1, ~uint64_t{0}, kRead));
  CHECK(m.permissions(0, kLinear - 1) == 0);
  CHECK(m.permissions(0, kLinear) == (kRead | kWrite));
  CHECK(m.read(0, 12345, std::span<uint8_t>{}));
}

TEST_CASE("permissions hold for the pages that a range touches") {
  Memory m(config_of(MemoryModel::kShared));
  CHECK(m.set_permissions(0, kLinear + kPageSize - 1, 2, kRead));
  CHECK(m.permissions(0, kLinear) == kRead);
  CHECK(m.permissions(0, kLinear + kPageSize) == kRead);
  CHECK(m.permissions(0, kLinear + 2 * kPageSize) == (kRead | kWrite));
  CHECK(m.set_permissions(0, kLinear + 3 * kPageSize, 0, 0));
  CHECK(m.permissions(0, kLinear + 3 * kPageSize) == (kRead | kWrite));
  const MemoryView& v = m.view();
  CHECK(v.byte(0, kLinear, kRead) != nullptr);
  CHECK(v.byte(0, kLinear, kRead | kWrite) == nullptr);
  CHECK(v.byte(0, kLinear, kExecute) == nullptr);
  CHECK(v.byte(0, kLinear + 2 * kPageSize, kRead | kWrite) != nullptr);
  CHECK(v.byte(0, kWindows + 5 * 8192, kRead) == nullptr);
  CHECK(v.byte(0, 0, kRead) == nullptr);
  CHECK(v.byte(0, ~uint64_t{0}, kRead) == nullptr);
}

// Unaligned, across words, pages, windows and zones: as if byte by byte, all or nothing.
template <class T>
void check_every_place(Memory& m, uint64_t from, uint64_t to, uint8_t salt) {
  const MemoryView& v = m.view();
  for (uint64_t address = from; address < to; ++address) {
    const T value = static_cast<T>(0x8877665544332211 + salt + address);
    bool readable = true, writable = true;
    for (uint64_t i = 0; i < sizeof(T); ++i) {
      readable &= (m.permissions(1, address + i) & kRead) != 0;
      writable &= (m.permissions(1, address + i) & kWrite) != 0;
    }
    std::vector<uint8_t> before(to - from + 16);
    const bool whole = m.read(1, from - 8, before);
    CAPTURE(address);
    REQUIRE(v.store(1, address, value) == writable);
    T back = 0;
    REQUIRE(v.load(1, address, &back) == readable);
    if (readable && writable) REQUIRE(back == value);
    if (!whole) continue;
    std::vector<uint8_t> after = m.bytes(1, from - 8, before.size());
    if (writable) std::memcpy(before.data() + (address - from + 8), &value, sizeof(T));
    REQUIRE(after == before);
  }
}

TEST_CASE("accesses at any address do what single bytes would") {
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
    MachineConfig config = config_of(model);
    config.window_base = kLinear + config.linear_size;  // touching, to cross from one to the other
    Memory m(config);
    const uint64_t windows = config.window_base;
    m.set_permissions(1, kLinear, kPageSize, kRead);
    m.set_permissions(1, kLinear + 2 * kPageSize, kPageSize, kWrite);
    m.set_permissions(1, windows + kPageSize, kPageSize, kRead);
    for (const uint64_t middle :
         {kLinear + 16, kLinear + kPageSize, kLinear + 2 * kPageSize, kLinear + 3 * kPageSize,
          windows, windows + 64, windows + kPageSize, windows + 2 * kPageSize}) {
      CAPTURE(middle);
      check_every_place<uint8_t>(m, middle - 16, middle + 16, 1);
      check_every_place<uint16_t>(m, middle - 16, middle + 16, 2);
      check_every_place<uint32_t>(m, middle - 16, middle + 16, 3);
      check_every_place<uint64_t>(m, middle - 16, middle + 16, 4);
    }
  }
}

TEST_CASE("an access that wraps round the address space is refused") {
  MachineConfig config = config_of(MemoryModel::kShared);
  config.linear_base = 0;
  const Memory m(config);
  uint64_t value = 0;
  CHECK(!m.view().load(0, ~uint64_t{0} - 2, &value));
  CHECK(!m.view().store(0, ~uint64_t{0} - 2, value));
}

struct Registers {
  uint64_t slots[16] = {};
  uint64_t get(Slot s) const { return slots[s]; }
  void set(Slot s, uint64_t value) { slots[s] = value; }
};

TEST_CASE("atomics want their natural alignment and a page that may be read and written") {
  Memory m(config_of(MemoryModel::kPrivate));
  m.set_permissions(0, kLinear, kPageSize, kRead);
  Registers r;
  StopInfo stop;
  r.slots[1] = kWindows + 4;
  r.slots[2] = 5;
  Uop add{.op = Op::amo_add, .d = 3, .a = 1, .b = 2, .aux = 3};
  CHECK(!execute_amo<Op::amo_add>(add, r, m.view(), 0, stop));
  CHECK(stop.fault == Fault::kAlignment);
  CHECK(stop.address == kWindows + 4);
  add.aux = 2;
  CHECK(m.put(0, kWindows, {0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0x77}));
  CHECK(execute_amo<Op::amo_add>(add, r, m.view(), 0, stop));
  CHECK(r.slots[3] == 0xfffffffe);
  CHECK(m.bytes(0, kWindows + 4, 5) == std::vector<uint8_t>{3, 0, 0, 0, 0x77});
  r.slots[1] = kLinear;
  CHECK(!execute_amo<Op::amo_add>(add, r, m.view(), 0, stop));
  CHECK(stop.fault == Fault::kStoreAccess);
}

TEST_CASE("a pair is swapped as one, also in interleaved windows") {
  Memory m(config_of(MemoryModel::kPrivate));
  Registers r;
  StopInfo stop;
  const Uop cas{.op = Op::cas128, .d = 4, .a = 1, .b = 2};
  r.slots[1] = kWindows + 16;
  r.slots[2] = 0x1111;
  r.slots[3] = 0x2222;
  CHECK(execute_cas128(cas, r, m.view(), 3, stop));
  CHECK(m.bytes(3, kWindows + 16, 9) == std::vector<uint8_t>{0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x22});
  // Not equal any more: nothing is stored and what was there comes back.
  r.slots[2] = 7;
  CHECK(execute_cas128(cas, r, m.view(), 3, stop));
  CHECK(r.slots[4] == 0x1111);
  CHECK(r.slots[5] == 0x2222);
  CHECK(m.bytes(3, kWindows + 16, 1) == std::vector<uint8_t>{0x11});
  CHECK(m.bytes(2, kWindows + 16, 1) == std::vector<uint8_t>{0});
}

}  // namespace
}  // namespace gpusim
