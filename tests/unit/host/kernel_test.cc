// System calls against the scalar machine's memory, without running any code.
#include <doctest/doctest.h>

#include <cerrno>
#include <fstream>

#include "host/exit_status.h"
#include "tests/unit/host/kernel_machine.h"

namespace gpusim::host {
namespace {

TEST_CASE("files: write, seek, read back, stat, close") {
  Machine m;
  const int64_t fd = m.open(m.folder / "f", kReadWrite | kCreate);
  REQUIRE(fd == 3);
  m.put(kBuffer, "hello world");
  CHECK(m.result(64, {3, kBuffer, 11}) == 11);
  CHECK(m.result(62, {3, 6, 0}) == 6);
  CHECK(m.result(63, {3, kBuffer + 0x800, 100}) == 5);
  CHECK(m.get(kBuffer + 0x800, 5) == "world");
  CHECK(m.result(67, {3, kBuffer + 0x900, 5, 0}) == 5);
  CHECK(m.get(kBuffer + 0x900, 5) == "hello");
  CHECK(m.result(80, {3, kBuffer + 0x400}) == 0);
  uint64_t size;
  REQUIRE(m.backend->read_memory(0, kBuffer + 0x400 + 48, {reinterpret_cast<uint8_t*>(&size), 8}));
  CHECK(size == 11);
  CHECK(m.result(23, {3}) == 4);  // dup
  CHECK(m.result(57, {3}) == 0);
  CHECK(m.result(57, {3}) == -EBADF);
  CHECK(m.result(63, {4, kBuffer, 1}) == 0);  // the duplicate lives on, at the end of the file
  CHECK(m.result(63, {77, kBuffer, 1}) == -EBADF);
  CHECK(m.result(63, {~uint64_t{0}, kBuffer, 1}) == -EBADF);
}

TEST_CASE("vectors: writev and readv") {
  Machine m;
  REQUIRE(m.open(m.folder / "v", kReadWrite | kCreate) == 3);
  m.put(kBuffer, "abcdef");
  const uint64_t vectors[] = {kBuffer, 2, 0, 0, kBuffer + 3, 3};
  REQUIRE(m.backend->write_memory(0, kBuffer + 0x100,
                                  {reinterpret_cast<const uint8_t*>(vectors), sizeof vectors}));
  CHECK(m.result(66, {3, kBuffer + 0x100, 3}) == 5);
  CHECK(m.result(66, {3, kBuffer + 0x100, 1025}) == -EINVAL);
  CHECK(m.result(66, {3, 0x10, 3}) == -EFAULT);
  CHECK(m.result(62, {3, 0, 0}) == 0);
  CHECK(m.result(65, {3, kBuffer + 0x100, 3}) == 5);
  CHECK(m.get(kBuffer, 6) == "abcdef");
}

TEST_CASE("guest pointers are checked: EFAULT, whatever the call") {
  Machine m;
  REQUIRE(m.open(m.folder / "p", kReadWrite | kCreate) == 3);
  const uint64_t end = kToyData + 0x4000;  // of the data segment's pages
  CHECK(m.result(64, {3, 0, 5}) == -EFAULT);
  CHECK(m.result(64, {3, ~uint64_t{0} - 2, 5}) == -EFAULT);
  CHECK(m.result(64, {3, end - 4, 8}) == 4);  // as much as can be read
  CHECK(m.result(62, {3, 0, 0}) == 0);
  CHECK(m.result(63, {3, kToyText, 4}) == -EFAULT);  // read-only
  CHECK(m.result(64, {3, kToyText, 4}) == 4);
  CHECK(m.result(56, {static_cast<uint64_t>(-100), 8, 0}) == -EFAULT);
  CHECK(m.result(80, {3, end - 8}) == -EFAULT);
  CHECK(m.result(113, {0, 0}) == -EFAULT);
  CHECK(m.result(160, {0}) == -EFAULT);
  CHECK(m.result(278, {end - 4, 8}) == -EFAULT);
  CHECK(m.result(98, {0x1000, 0, 0}) == -EFAULT);
  CHECK(m.result(98, {0x1001, 0, 0}) == -EINVAL);
}

TEST_CASE("only allowed files open; the refusal is said once") {
  Machine m;
  CHECK(m.open("/etc/passwd", 0) == -EACCES);
  CHECK(m.open("/etc/shadow", 0) == -EACCES);
  CHECK(m.notes.size() == 1);
  CHECK(m.open("/dev/null", kWriteOnly) == 3);
  CHECK(m.open(m.folder / "absent", 0) == -ENOENT);
  CHECK(m.open("", 0) == -ENOENT);
}

TEST_CASE("folders: make, list, rename, remove; files relative to an open folder") {
  Machine m;
  const uint64_t cwd = static_cast<uint64_t>(-100);
  m.put(kBuffer, (m.folder / "d/").string());
  CHECK(m.result(34, {cwd, kBuffer, 0755}) == 0);
  CHECK(m.result(34, {cwd, kBuffer, 0755}) == -EEXIST);
  CHECK(m.open(m.folder / "d", 0) == 3);
  m.put(kBuffer, "f");
  CHECK(m.result(56, {3, kBuffer, kWriteOnly | kCreate, 0666}) == 4);
  CHECK(fs::exists(m.folder / "d" / "f"));
  CHECK(m.result(63, {3, kBuffer + 0x100, 8}) == -EISDIR);
  CHECK(m.result(61, {3, kBuffer + 0x100, 0x400}) > 0);
  CHECK(m.result(61, {3, kBuffer + 0x100, 0x400}) == 0);
  CHECK(m.result(61, {4, kBuffer + 0x100, 0x400}) == -ENOTDIR);
  m.put(kBuffer, (m.folder / "d" / "f").string());
  m.put(kBuffer + 0x200, (m.folder / "g").string());
  CHECK(m.result(38, {cwd, kBuffer, cwd, kBuffer + 0x200}) == 0);
  m.put(kBuffer + 0x400, "/etc/gpusim-test");
  CHECK(m.result(38, {cwd, kBuffer + 0x200, cwd, kBuffer + 0x400}) == -EACCES);
  CHECK(m.result(35, {cwd, kBuffer + 0x200, 0}) == 0);
  m.put(kBuffer, (m.folder / "d").string());
  CHECK(m.result(35, {cwd, kBuffer, 0x200}) == 0);
  CHECK_FALSE(fs::exists(m.folder / "d"));
}

TEST_CASE("pipes: an empty one parks its reader, end of file and no reader are told") {
  Machine m;
  CHECK(m.result(59, {kBuffer, 0}) == 0);
  int32_t fds[2];
  REQUIRE(m.backend->read_memory(0, kBuffer, {reinterpret_cast<uint8_t*>(fds), 8}));
  const auto in = static_cast<uint64_t>(fds[0]), out = static_cast<uint64_t>(fds[1]);
  CHECK(m.call(0, 63, {in, kBuffer + 0x100, 5}).kind == Reply::Kind::kParked);
  m.put(kBuffer + 0x200, "hello");
  CHECK(m.result(64, {out, kBuffer + 0x200, 5}, 1) == 5);
  CHECK(m.result(63, {in, kBuffer + 0x100, 5}) == 5);
  CHECK(m.get(kBuffer + 0x100, 5) == "hello");
  CHECK(m.result(57, {out}) == 0);
  CHECK(m.result(63, {in, kBuffer + 0x100, 5}) == 0);
}

TEST_CASE("a call that is not provided returns ENOSYS and is reported once by name") {
  Machine m;
  CHECK(m.result(220) == -ENOSYS);
  CHECK(m.result(220) == -ENOSYS);
  REQUIRE(m.notes.size() == 1);
  CHECK(m.notes[0].find("220 (clone)") != std::string::npos);
  CHECK(m.result(~uint64_t{0}) == -ENOSYS);
  CHECK(m.result(293) == -ENOSYS);  // rseq: silently, as C libraries expect
  CHECK(m.notes.size() == 2);
}

TEST_CASE("heap and mappings: rights, zeroes, limits") {
  Machine m;
  const int64_t start = m.result(214, {0});
  CHECK(start == static_cast<int64_t>(m.plan.heap_start));
  CHECK(m.backend->permissions(0, start) == 0);
  CHECK(m.result(214, {static_cast<uint64_t>(start) + 100}) == start + 100);
  CHECK(m.backend->permissions(0, start) == (kRead | kWrite));
  m.put(start, "dirt");
  CHECK(m.result(214, {static_cast<uint64_t>(start)}) == start);
  CHECK(m.backend->permissions(0, start) == 0);
  CHECK(m.result(214, {static_cast<uint64_t>(start) + 100}) == start + 100);
  CHECK(m.get(start, 4) == std::string(4, 0));
  CHECK(m.result(214, {uint64_t{1} << 46}) == start + 100);

  const int64_t a = m.result(222, {0, 8192, 3, 0x22, ~uint64_t{0}, 0});
  REQUIRE(a > 0);
  m.put(a, "x");
  CHECK(m.result(226, {static_cast<uint64_t>(a), 4096, 1}) == 0);
  CHECK(m.backend->permissions(0, a) == kRead);
  CHECK(m.result(215, {static_cast<uint64_t>(a), 8192}) == 0);
  CHECK(m.backend->permissions(0, a) == 0);
  CHECK(m.result(222, {0, 0, 3, 0x22, 0, 0}) == -EINVAL);
  CHECK(m.result(222, {0, uint64_t{1} << 60, 3, 0x22, 0, 0}) == -ENOMEM);
  CHECK(m.result(222, {0, 4096, 3, 0x02, 55, 0}) == -EBADF);
  CHECK(m.result(226, {kToyText, 4096, 3}) == -EACCES);  // code stays as it was translated
  CHECK(m.result(226, {uint64_t{1} << 45, 4096, 3}) == -ENOMEM);
  // Lengths whose pages no number counts are not lengths of 0.
  const auto mapped = static_cast<uint64_t>(a), endless = ~uint64_t{0};
  CHECK(m.result(226, {mapped, endless, 1}) == -ENOMEM);
  CHECK(m.result(232, {mapped, endless, kBuffer}) == -ENOMEM);
  CHECK(m.result(233, {mapped, endless, 0}) == -EINVAL);
  CHECK(m.result(226, {mapped, 0, 1}) == 0);
  CHECK(m.result(233, {mapped, 0, 0}) == 0);
}

TEST_CASE("fixed mappings over the heap, the image and a stack; holes; advice") {
  Machine m;
  const uint64_t fixed = 0x32, reserve = 0x100032, none = ~uint64_t{0};
  const uint64_t heap = m.plan.heap_start;
  CHECK(m.result(214, {heap + 0x4000}) == static_cast<int64_t>(heap + 0x4000));
  m.put(heap + 0x1000, "dirt");
  CHECK(m.result(222, {heap + 0x1000, 0x1000, 0, reserve, none, 0}) == -EEXIST);
  CHECK(m.result(222, {heap + 0x1000, 0x1000, 0, fixed, none, 0}) ==
        static_cast<int64_t>(heap + 0x1000));
  CHECK(m.backend->permissions(0, heap + 0x1000) == 0);
  CHECK(m.result(226, {heap + 0x1000, 0x1000, 3}) == 0);
  CHECK(m.get(heap + 0x1000, 4) == std::string(4, 0));
  CHECK(m.result(214, {0}) == static_cast<int64_t>(heap + 0x4000));

  m.put(heap + 0x2000, "dirt");
  CHECK(m.result(233, {heap + 0x2000, 0x1000, 4}) == 0);  // MADV_DONTNEED
  CHECK(m.get(heap + 0x2000, 4) == std::string(4, 0));
  CHECK(m.result(233, {heap + 0x2000, 0x1000, 6}) == -EINVAL);

  CHECK(m.result(215, {heap + 0x2000, 0x1000}) == 0);
  CHECK(m.backend->permissions(0, heap + 0x2000) == 0);
  CHECK(m.result(226, {heap + 0x2000, 0x1000, 3}) == -ENOMEM);  // a hole stays one
  CHECK(m.backend->permissions(0, heap + 0x2000) == 0);
  CHECK(m.result(233, {heap, 0x4000, 4}) == -ENOMEM);
  CHECK(m.result(228, {heap, 0x4000}) == -ENOMEM);  // mlock
  CHECK(m.result(228, {heap, 0x1000}) == 0);

  CHECK(m.result(222, {kToyData + 0x3000, 0x1000, 1, fixed, none, 0}) ==
        static_cast<int64_t>(kToyData + 0x3000));
  CHECK(m.backend->permissions(0, kToyData + 0x3000) == kRead);
  CHECK(m.result(222, {kToyText, 0x1000, 1, fixed, none, 0}) == -ENOMEM);
  const uint64_t stack = m.plan.stack_bottom(0);
  CHECK(m.result(222, {stack, 0x1000, 0, fixed, none, 0}) == static_cast<int64_t>(stack));
  CHECK(m.backend->permissions(0, stack) == 0);
  for (const uint64_t page : {stack + 0x1000, kToyData + 0x2000})
    for (const uint64_t rights : {0, 3}) CHECK(m.result(226, {page, 0x1000, rights}) == 0);
  CHECK(m.result(226, {stack - 0x1000, 0x1000, 3}) == -ENOMEM);  // the page that guards it
  CHECK(m.result(226, {0, ~uint64_t{0xfff}, 1}) == -ENOMEM);     // at once
  CHECK(m.result(215, {0, uint64_t{1} << 46}) == 0);             // even all of it
  CHECK(m.backend->permissions(0, stack + 0x1000) == 0);
  CHECK(m.backend->permissions(1, m.plan.stack_bottom(1)) == (kRead | kWrite));  // another's
}

TEST_CASE("limits of memory: the heap and mappings end there") {
  Machine m;
  const auto limit = [&](int64_t resource, uint64_t current) {
    m.store<uint64_t>(kBuffer, current);
    m.store<uint64_t>(kBuffer + 8, ~uint64_t{0});
    CHECK(m.result(164, {static_cast<uint64_t>(resource), kBuffer}) == 0);
  };
  const uint64_t heap = m.plan.heap_start, none = ~uint64_t{0};
  limit(2, 1 << 20);  // RLIMIT_DATA
  CHECK(m.result(214, {heap + (2 << 20)}) == static_cast<int64_t>(heap));
  CHECK(m.result(214, {heap + 0x1000}) == static_cast<int64_t>(heap + 0x1000));
  CHECK(m.result(222, {0, 2 << 20, 3, 0x22, none, 0}) == -ENOMEM);
  limit(2, none);
  limit(9, m.plan.stack_size_bytes + (1 << 20));  // RLIMIT_AS
  CHECK(m.result(222, {0, 2 << 20, 3, 0x22, none, 0}) == -ENOMEM);
  CHECK(m.result(222, {0, 0x1000, 3, 0x22, none, 0}) > 0);
}

TEST_CASE("mremap: in place where there is room, at a given place, keeping the old one") {
  Machine m;
  const uint64_t none = ~uint64_t{0}, heap = m.plan.heap_start;
  const uint64_t a = heap + 0x100000;
  REQUIRE(m.result(222, {a, 0x2000, 3, 0x32, none, 0}) == static_cast<int64_t>(a));
  m.put(a, "keep");
  CHECK(m.result(216, {a, 0x2000, 0x4000, 0}) == static_cast<int64_t>(a));
  CHECK(m.backend->permissions(0, a + 0x3000) == (kRead | kWrite));
  CHECK(m.result(216, {a, 0x4000, 0x1000, 3, a + 0x10000}) == static_cast<int64_t>(a + 0x10000));
  CHECK(m.get(a + 0x10000, 4) == "keep");
  CHECK(m.backend->permissions(0, a) == 0);
  CHECK(m.result(216, {a + 0x10000, 0x1000, 0x1000, 2, a}) == -EINVAL);
  CHECK(m.result(216, {a + 0x10000, 0x1000, 0x2000, 3, a + 0x10000}) == -EINVAL);
  CHECK(m.result(216, {a + 0x10000, 0x1000, 0x1000, 8}) == -EINVAL);
  CHECK(m.result(216, {a, 0x1000, 0x2000, 1}) == -EFAULT);
  const int64_t b = m.result(216, {a + 0x10000, 0x1000, 0x1000, 5});
  REQUIRE(b > 0);
  CHECK(m.get(b, 4) == "keep");
  CHECK(m.get(a + 0x10000, 4) == std::string(4, 0));
}

TEST_CASE("mremap moves contents") {
  Machine m;
  const uint64_t a = m.result(222, {0, 4096, 3, 0x22, ~uint64_t{0}, 0});
  m.put(a, "keep");
  m.result(222, {0, 4096, 3, 0x22, ~uint64_t{0}, 0});
  CHECK(m.result(216, {a, 4096, 8192, 0}) == -ENOMEM);
  const int64_t b = m.result(216, {a, 4096, 8192, 1});
  REQUIRE(b > 0);
  CHECK(m.get(b, 4) == "keep");
  CHECK(m.backend->permissions(0, b + 4096) == (kRead | kWrite));
  CHECK(m.backend->permissions(0, a) == 0);
}

TEST_CASE("private file mappings are copies, shared ones the file itself") {
  Machine m;
  std::ofstream(m.folder / "map") << "contents";
  REQUIRE(m.open(m.folder / "map", 0) == 3);
  const int64_t a = m.result(222, {0, 4096, 1, 2, 3, 0});
  REQUIRE(a > 0);
  CHECK(m.get(a, 9) == std::string("contents") + '\0');
  CHECK(m.result(222, {0, 4096, 3, 1, 3, 0}) == -EACCES);  // opened for reading only
  REQUIRE(m.open(m.folder / "map", kReadWrite) == 4);
  const int64_t b = m.result(222, {0, 4096, 3, 1, 4, 0});
  REQUIRE(b > 0);
  m.put(b, "changed");
  CHECK(m.get(a, 8) == "contents");
  std::string text;
  std::getline(std::ifstream(m.folder / "map"), text);
  CHECK(text == std::string("changed\0", 8));
  CHECK(m.result(215, {static_cast<uint64_t>(b), 4096}) == 0);
  m.put(b, "lost");
  std::getline(std::ifstream(m.folder / "map"), text);
  CHECK(text == std::string("changed\0", 8));
  Machine p(MemoryModel::kPrivate);
  REQUIRE(p.open(p.folder / "map", kReadWrite | kCreate) == 3);
  CHECK(p.result(222, {0, 4096, 3, 1, 3, 0}) == -ENODEV);
}

TEST_CASE("futex: a waiting core sleeps until another wakes it") {
  Machine m;
  CHECK(m.result(98, {kBuffer, 0, 7}, 0) == -EAGAIN);  // the value differs
  CHECK(m.call(1, 98, {kBuffer, 0, 0}).kind == Reply::Kind::kParked);
  CHECK(m.call(2, 98, {kBuffer, 128, 0}).kind == Reply::Kind::kParked);
  CHECK(m.result(98, {kBuffer, 1, 1}, 0) == 1);
  CHECK(m.kernel->waits().all().size() == 1);
  CHECK(m.result(98, {kBuffer, 1, 100}, 0) == 1);
  CHECK(m.result(98, {kBuffer, 77, 100}, 0) == -ENOSYS);
  const uint64_t timeout[2] = {0, 1000};
  REQUIRE(m.backend->write_memory(0, kBuffer + 64,
                                  {reinterpret_cast<const uint8_t*>(timeout), sizeof timeout}));
  CHECK(m.call(3, 98, {kBuffer, 0, 0, kBuffer + 64}).kind == Reply::Kind::kParked);
  m.kernel->expire(Clock::now() + std::chrono::seconds(1));
  CHECK(static_cast<int64_t>(m.backend->slot(3, 0)) == -ETIMEDOUT);
  CHECK(m.kernel->waits().empty());
}

TEST_CASE("exits and signals") {
  Machine m;
  CHECK(m.call(0, 93, {300}).kind == Reply::Kind::kExitThread);
  CHECK(m.call(0, 93, {300}).value == 44);
  CHECK(m.call(0, 94, {7}).kind == Reply::Kind::kExitProcess);
  const uint64_t pid = m.result(172), tid = m.result(178, {}, 2);
  const Reply abort = m.call(2, 131, {pid, tid, 6});
  CHECK(abort.kind == Reply::Kind::kSignal);
  CHECK(abort.value == 6);
  CHECK(m.result(129, {pid, 0}) == 0);
  CHECK(m.result(129, {1, 9}) == -ESRCH);
  CHECK(m.result(129, {pid, 17}) == 0);  // SIGCHLD is ignored
}

TEST_CASE("private: every core is a process with its own heap and files") {
  Machine m(MemoryModel::kPrivate, 3);
  const uint64_t start = m.result(214, {0}, 1);
  CHECK(m.result(214, {start + 4096}, 1) == static_cast<int64_t>(start + 4096));
  CHECK(m.result(214, {0}, 2) == static_cast<int64_t>(start));
  CHECK(m.backend->permissions(1, start) == (kRead | kWrite));
  CHECK(m.backend->permissions(2, start) == 0);
  CHECK(m.result(172, {}, 0) != m.result(172, {}, 1));
  CHECK(m.open(m.folder / "own", kReadWrite | kCreate) == 3);
  CHECK(m.result(57, {3}, 1) == -EBADF);
}

}  // namespace
}  // namespace gpusim::host
