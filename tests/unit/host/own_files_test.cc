// What guests read in /proc and /sys is about the guest.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(-100), kOut = kBuffer + 0x400;

std::string text_of(Machine& m, const std::string& path, uint32_t core = 0) {
  m.put(kBuffer, path, core);
  const int64_t fd = m.result(56, {kHere, kBuffer, 0, 0}, core);
  if (fd < 0) return "error " + std::to_string(-fd);
  std::string text;
  for (int64_t n; (n = m.result(63, {static_cast<uint64_t>(fd), kOut, 0x800}, core)) > 0;)
    text += m.get(kOut, static_cast<size_t>(n), core);
  CHECK(m.result(57, {static_cast<uint64_t>(fd)}, core) == 0);
  return text;
}
size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("processors: as many as there are cores, with what the guest's CPU has") {
  Machine m;
  const std::string info = text_of(m, "/proc/cpuinfo");
  CHECK(count(info, "processor\t: ") == 4);
  CHECK(info.find("Features\t: fp asimd aes pmull sha1 sha2 crc32 cpuid\n") != std::string::npos);
  CHECK(info.find("CPU part\t: 0xd07\n") != std::string::npos);  // Cortex-A57
  for (const char* name : {"online", "possible", "present"})
    CHECK(text_of(m, std::string("/sys/devices/system/cpu/") + name) == "0-3\n");
  CHECK(count(text_of(m, "/proc/stat"), "\ncpu") == 4);
  Machine alone(MemoryModel::kPrivate, 3);
  CHECK(count(text_of(alone, "/proc/cpuinfo", 2), "processor\t: ") == 1);
  CHECK(text_of(alone, "/sys/devices/system/cpu/online", 2) == "0\n");
}

TEST_CASE("maps have the program, the heap, mappings and the stack with their rights") {
  Machine m;
  const auto start = static_cast<uint64_t>(m.result(214, {0}));
  CHECK(m.result(214, {start + 0x2000}) == static_cast<int64_t>(start + 0x2000));
  const auto map = static_cast<uint64_t>(m.result(222, {0, 0x3000, 3, 0x22, ~uint64_t{0}, 0}));
  CHECK(m.result(226, {map + 0x1000, 0x1000, 0}) == 0);
  const std::string maps = text_of(m, "/proc/self/maps");
  CAPTURE(maps);
  uint64_t last = 0;
  bool has_heap = false, has_stack = false, has_hole = false, has_code = false;
  for (size_t at = 0; at < maps.size(); at = maps.find('\n', at) + 1) {
    unsigned long begin, end, offset, inode;
    unsigned major, minor;
    char rights[5], name[256] = "";
    const std::string line = maps.substr(at, maps.find('\n', at) - at);
    REQUIRE(std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %255s", &begin, &end, rights,
                        &offset, &major, &minor, &inode, name) >= 7);
    CHECK(begin >= last);
    CHECK(end > begin);
    last = end;
    const std::string_view r(rights), n(name);
    has_heap |= n == "[heap]" && begin == start && end == start + 0x2000 && r == "rw-p";
    has_stack |= n == "[stack]" && end == m.plan.stack_top(0) && r == "rw-p";
    has_hole |= begin == map + 0x1000 && end == map + 0x2000 && r == "---p";
    has_code |= begin == kToyText && r == "r-xp" && n == m.kernel->paths().program();
  }
  CHECK(has_heap);
  CHECK(has_stack);
  CHECK(has_hole);
  CHECK(has_code);
}

TEST_CASE("status, stat and meminfo agree with the system calls") {
  Machine m;
  const std::string pid = std::to_string(m.result(172));
  CHECK(text_of(m, "/proc/self/status").find("\nPid:\t" + pid + "\n") != std::string::npos);
  const std::string stat = text_of(m, "/proc/self/stat");
  CHECK(stat.starts_with(pid + " ("));
  CHECK(std::count(stat.begin(), stat.end(), ' ') == 51);  // 52 fields
  CHECK(text_of(m, "/proc/meminfo").starts_with("MemTotal: "));
  CHECK(count(text_of(m, "/proc/self/statm"), " ") == 6);
}

TEST_CASE("folders list what there is") {
  Machine m;
  const auto names = [&](const std::string& path, uint64_t size_bytes) {
    std::string found;
    const int64_t fd = m.open(path, 0);
    REQUIRE(fd >= 0);
    const auto file = static_cast<uint64_t>(fd);
    CHECK(m.result(63, {file, kOut, 8}) == -EISDIR);
    CHECK(m.result(61, {file, kOut, 16}) == -EINVAL);  // no room for one
    for (int64_t n; (n = m.result(61, {file, kOut, size_bytes})) > 0;)
      for (int64_t at = 0; at < n;) {
        const std::string record = m.get(kOut + static_cast<uint64_t>(at), 64);
        found += std::string(record.c_str() + 19) + ' ';
        at += static_cast<uint8_t>(record[16]);
      }
    CHECK(m.result(57, {file}) == 0);
    return found;
  };
  CHECK(names("/proc/self/fd", 0x400) == ". .. 0 1 2 3 ");
  CHECK(names("/dev/fd", 32) == ". .. 0 1 2 3 ");  // one by one
  CHECK(count(names("/proc/self", 0x400), "fd ") == 1);
  CHECK(count(names("/proc", 0x400), "self ") == 1);
  CHECK(names("/sys/devices/system/cpu", 0x400) == ". .. online possible present ");
  const auto self = static_cast<uint64_t>(m.open("/proc/self", 0));
  m.put(kBuffer, "comm");
  CHECK(m.result(56, {self, kBuffer, 0, 0}) > 0);
}

TEST_CASE("what is open is opened again by its number, with no more rights") {
  Machine m;
  const std::string file = m.folder / "file";
  const int64_t out = m.open(file, kWriteOnly | kCreate);
  CHECK(m.result(64, {static_cast<uint64_t>(out), kBuffer, 5}) == 5);
  const std::string name = "/proc/self/fd/" + std::to_string(out);
  CHECK(text_of(m, name).size() == 5);  // of a folder that may be read
  CHECK(m.open(name, kWriteOnly) > out);
  CHECK(m.open(name, kCreate | 0200) == -EEXIST);
  for (const char* path : {"/dev/fd/99", "/proc/self/fd/99"}) CHECK(m.open(path, 0) == -ENOENT);
  for (const char* path : {"/dev/fd/x", "/dev/fd/-1", "/dev/fd/0x1", "/dev/stdin2"})
    CHECK(m.open(path, 0) == -EACCES);
  const int64_t text = m.open("/proc/cpuinfo", 0);
  const std::string read_only = "/dev/fd/" + std::to_string(text);
  CHECK(text_of(m, read_only) == text_of(m, "/proc/cpuinfo"));
  CHECK(m.open(read_only, kReadWrite) == -EACCES);
  CHECK(m.open(read_only, 01000) == -EACCES);  // O_TRUNC
  const auto link = [&](const std::string& path) {
    m.put(kBuffer, path);
    const int64_t n = m.result(78, {kHere, kBuffer, kOut, 0x200});
    return n < 0 ? std::to_string(n) : m.get(kOut, static_cast<size_t>(n));
  };
  CHECK(link(name) == file);
  CHECK(link(read_only) == "/proc/cpuinfo");
  CHECK(link("/dev/fd/99") == std::to_string(-ENOENT));
}

TEST_CASE("such files are read-only and have a status; nothing else of the host is there") {
  Machine m;
  CHECK(m.open("/proc/cpuinfo", kReadWrite) == -EACCES);
  CHECK(m.open("/proc/cpuinfo", kWriteOnly | kCreate) == -EACCES);
  for (const char* path : {"/proc/cpuinfo/x", "/proc/cpuinfo/..", "/proc/self/exe/../maps"})
    CHECK(m.open(path, 0) == -ENOTDIR);
  // Names that are not there have no parents.
  for (const char* path : {"/proc/self/cwd/../maps", "/proc/self/cwd/..", "/proc/none/../cpuinfo"})
    CHECK(m.open(path, 0) == -EACCES);
  CHECK(m.open("/proc/self/environ", 0) == -EACCES);
  CHECK(m.open("/proc/1/maps", 0) == -EACCES);
  const auto mode = [&] {
    uint32_t value;
    REQUIRE(m.backend->read_memory(0, kOut + 16, {reinterpret_cast<uint8_t*>(&value), 4}));
    return value;
  };
  const int64_t fd = m.open("/proc/./self/../self/maps", 0);
  REQUIRE(fd >= 0);
  CHECK(m.result(64, {static_cast<uint64_t>(fd), kBuffer, 1}) == -EBADF);
  CHECK(m.result(80, {static_cast<uint64_t>(fd), kOut}) == 0);
  CHECK(mode() == (S_IFREG | 0444));
  for (const auto& [path, is] : {std::pair("/proc", S_IFDIR | 0555),
                                 {"/proc/self", S_IFDIR | 0555},
                                 {"/sys/devices/system", S_IFDIR | 0555},
                                 {"/proc/self/maps", S_IFREG | 0444},
                                 {"/proc/self/exe", S_IFLNK | 0777}}) {
    CAPTURE(path);
    m.put(kBuffer, path);
    CHECK(m.result(79, {kHere, kBuffer, kOut, 0x100}) == 0);
    CHECK(mode() == is);
    CHECK(m.result(53, {kHere, kBuffer, 0777}) == -EPERM);
  }
}

}  // namespace
}  // namespace gpusim::host
