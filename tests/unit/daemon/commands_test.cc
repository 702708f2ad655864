// The decoder before an engine that runs nothing. tests/system/daemon has every refusal, in a real
// daemon.
#include "qemu_bridge/daemon/commands.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "device_sim/uir/insn_class.h"
#include "tests/unit/daemon/fake_simulator.h"

using namespace gpusim;
using namespace gpusim::daemon;

namespace {

constexpr uint64_t kPages = 64;

struct Setup {
  Setup() {
    std::vector<FileDescriptor> files;
    files.emplace_back(memfd_create("ram", MFD_CLOEXEC));
    REQUIRE(ftruncate(files[0].get(), kPages * kPageSize) == 0);
    memory = GuestMemory(std::move(files), {{.gpa = 0, .size_bytes = kPages * kPageSize}});
    commands.emplace(memory, service, CommandOptions{.generation = 7, .backends = "fake: none\n"},
                     log, [this](uint64_t gpa) { done.push_back(gpa); });
  }
  gpusim_command* at(uint64_t gpa) {
    return reinterpret_cast<gpusim_command*>(memory.bytes(gpa, sizeof(gpusim_command), true));
  }
  gpusim_command& put(uint64_t gpa, uint16_t op, uint32_t context,
                      std::initializer_list<uint64_t> words = {}) {
    gpusim_command& c = *at(gpa);
    c = {};
    c.magic = GPUSIM_COMMAND_MAGIC;
    c.version = GPUSIM_WIRE_VERSION;
    c.op = op;
    c.context = context;
    c.generation = 7;
    c.ticket = next_ticket++;
    c.status = GPUSIM_PENDING;
    std::copy(words.begin(), words.end(), c.request.words.word);
    return c;
  }
  int run(uint16_t op, uint32_t context, std::initializer_list<uint64_t> words = {}) {
    put(0, op, context, words);
    commands->serve(0);
    return at(0)->status;
  }
  uint32_t open() {
    REQUIRE(run(GPUSIM_OP_CONTEXT_OPEN, 0) == 0);
    return static_cast<uint32_t>(at(0)->reply.word[0]);
  }
  // A context with page 32 mapped at 1 MiB.
  uint32_t open_with_page() {
    const uint32_t c = open();
    auto* extent = reinterpret_cast<gpusim_extent*>(memory.bytes(8 * kPageSize, 16, true));
    *extent = {32 * kPageSize, kPageSize};
    REQUIRE(run(GPUSIM_OP_MAP, c, {1 << 20, kPageSize, 3, 8 * kPageSize, 1}) == 0);
    return c;
  }
  void load(uint64_t gpa, uint32_t c) {
    put(gpa, GPUSIM_OP_LOAD, c, {1 << 20, 100});
    commands->serve(gpa);
  }

  GuestMemory memory;
  offload::Simulator service{{.address_space_bytes = uint64_t{1} << 32, .most_contexts = 4}};
  Log log;
  std::vector<uint64_t> done;
  std::optional<Commands> commands;
  uint64_t next_ticket = 1;
};

}  // namespace

TEST_CASE("every operation has a name") {
  for (uint16_t op = GPUSIM_OP_HELLO; op <= GPUSIM_OP_CLASSES; ++op)
    CHECK(operation_name(op) != nullptr);
  CHECK(std::string(operation_name(GPUSIM_OP_COUNTERS)) == "COUNTERS");
  CHECK(operation_name(0) == nullptr);
  CHECK(operation_name(GPUSIM_OP_CLASSES + 1) == nullptr);
}

TEST_CASE("commands that take time are answered when they end") {
  Setup s;
  const uint32_t c = s.open_with_page();
  s.done.clear();
  s.load(4096, c);
  s.load(8192, c);
  CHECK(s.at(4096)->status == GPUSIM_PENDING);
  CHECK(s.commands->in_flight() == 2);
  s.commands->serve(4096);  // another bell for the same one
  CHECK(test::waiting() == 2);
  CHECK(test::finish_one(0));
  CHECK(s.at(4096)->status == 0);
  CHECK(s.at(4096)->reply.word[0] == 1);
  CHECK(test::finish_one(-ENOEXEC));
  CHECK(s.at(8192)->status == -ENOEXEC);
  CHECK(std::string(s.at(8192)->reply.text) == "it could not be loaded");
  CHECK(s.done == std::vector<uint64_t>{4096, 8192});
  CHECK(s.commands->in_flight() == 0);

  gpusim_command& launch = s.put(4096, GPUSIM_OP_LAUNCH, c);
  launch.request.launch.program = 1;
  launch.request.launch.cores = 1;
  const uint64_t ticket = launch.ticket;
  s.commands->serve(4096);
  CHECK(s.run(GPUSIM_OP_UNMAP, c, {1 << 20, kPageSize}) == -EBUSY);
  CHECK(s.run(GPUSIM_OP_CANCEL, c, {ticket}) == 0);
  CHECK(s.at(4096)->status == -ECANCELED);
  CHECK(s.run(GPUSIM_OP_UNMAP, c, {1 << 20, kPageSize}) == 0);
}

TEST_CASE("tickets belong to their contexts and may come again once they have ended") {
  Setup s;
  const uint32_t a = s.open_with_page(), b = s.open_with_page();
  s.next_ticket = 500;
  s.load(4096, a);
  s.next_ticket = 500;
  s.load(8192, b);
  CHECK(s.commands->in_flight() == 2);
  s.next_ticket = 500;
  s.load(12288, a);
  CHECK(s.at(12288)->status == -EEXIST);
  CHECK(s.run(GPUSIM_OP_CANCEL, a, {500}) == 0);
  CHECK(s.at(4096)->status == -ECANCELED);
  CHECK(s.at(8192)->status == GPUSIM_PENDING);
  CHECK(s.run(GPUSIM_OP_CANCEL, a, {500}) == -ENOENT);
  s.next_ticket = 500;
  s.load(4096, a);
  CHECK(s.at(4096)->status == GPUSIM_PENDING);
}

TEST_CASE("a function that cannot be a kernel is refused with the engine's reason") {
  Setup s;
  const uint32_t c = s.open_with_page();
  s.load(4096, c);
  REQUIRE(test::finish_one(0));
  CHECK(s.run(GPUSIM_OP_CHECK, c, {1, 4}) == 0);
  CHECK(s.run(GPUSIM_OP_CHECK, c, {1, 0}) == -EOPNOTSUPP);
  CHECK(std::string(s.at(0)->reply.text) == "this cannot be a kernel");
  CHECK(s.run(GPUSIM_OP_CHECK, c, {2, 4}) == -ENOENT);
  CHECK(s.run(GPUSIM_OP_CHECK, c, {uint64_t{1} << 32, 4}) == -ENOENT);
  CHECK(s.run(GPUSIM_OP_CHECK, c, {1, 4, 5}) == -EINVAL);
}

TEST_CASE("what can be used up is limited, and comes back") {
  Setup s;
  for (int round = 0; round < 3; ++round) {
    const uint32_t c = s.open_with_page();
    for (uint32_t i = 0; i < CommandOptions().most_programs; ++i) {
      s.load(4096, c);
      REQUIRE(test::finish_one(0));
    }
    s.load(4096, c);
    CHECK(s.at(4096)->status == -ENOSPC);
    CHECK(s.run(GPUSIM_OP_UNLOAD, c, {3}) == 0);
    CHECK(s.run(GPUSIM_OP_UNLOAD, c, {3}) == -ENOENT);
    s.load(4096, c);
    CHECK(s.at(4096)->status == GPUSIM_PENDING);
    CHECK(test::finish_one(-ENOEXEC));  // which leaves its place
    s.load(4096, c);
    CHECK(test::finish_one(0));
    CHECK(s.run(GPUSIM_OP_RESET, c) == 0);
    CHECK(s.run(GPUSIM_OP_CONTEXT_CLOSE, c) == 0);
  }
  CHECK(test::open_contexts() == 0);
}

TEST_CASE("a guest that is gone is not written to") {
  Setup s;
  const uint32_t c = s.open_with_page();
  s.load(4096, c);
  std::vector<uint8_t> before(kPages * kPageSize), after(before);
  REQUIRE(s.memory.copy_out(0, before));
  s.done.clear();
  s.commands->abandon();
  REQUIRE(s.memory.copy_out(0, after));
  CHECK(before == after);
  CHECK(s.done.empty());
  CHECK(test::open_contexts() == 0);
  CHECK(test::waiting() == 0);
}

TEST_CASE("close_all answers") {
  Setup s;
  const uint32_t c = s.open_with_page();
  s.load(4096, c);
  s.commands->close_all();
  CHECK(s.at(4096)->status == -ECANCELED);
  CHECK(test::open_contexts() == 0);
}

TEST_CASE("a reply touches nothing but the reply and the status") {
  Setup s;
  const uint32_t c = s.open();
  s.put(4096, GPUSIM_OP_COUNTERS, c);
  std::vector<uint8_t> before(3 * kPageSize), after(before);
  std::memset(s.memory.bytes(0, 4096, true), 0xa5, 4096);
  REQUIRE(s.memory.copy_out(0, before));
  s.commands->serve(4096);
  REQUIRE(s.memory.copy_out(0, after));
  for (size_t i = 0; i < before.size(); ++i) {
    const bool is_status = i >= 4096 + offsetof(gpusim_command, status) &&
                           i < 4096 + offsetof(gpusim_command, status) + 4;
    const bool is_reply =
        i >= 4096 + offsetof(gpusim_command, reply) && i < 4096 + sizeof(gpusim_command);
    if (!is_status && !is_reply) REQUIRE(before[i] == after[i]);
  }
}

// As a driver of another gpusim sees it: the places are those of wire version 1, in numbers.
TEST_CASE("a command of another version is refused where that version looks") {
  constexpr size_t kSize = 1024, kStatus = 24, kText = 752;
  constexpr uint64_t kEnd = kPages * kPageSize;
  for (const uint16_t version : {2, 4})
    for (const uint64_t gpa : {uint64_t{4096}, kEnd - kSize}) {
      Setup s;
      gpusim_command c = s.put(0, GPUSIM_OP_CONTEXT_OPEN, 0);
      c.version = version;
      uint8_t* const block = s.memory.bytes(gpa, kSize, true);
      std::memcpy(block, &c, kSize);
      std::vector<uint8_t> behind(kSize, 0xa5);
      if (gpa + kSize < kEnd) std::memcpy(block + kSize, behind.data(), kSize);
      s.commands->serve(gpa);
      int32_t status = 0;
      std::memcpy(&status, block + kStatus, sizeof status);
      CHECK(status == -EPROTO);
      CHECK(std::string(reinterpret_cast<char*>(block) + kText) ==
            "the driver speaks wire version " + std::to_string(version) +
                ", this simulator 3: take both from one version of gpusim");
      if (gpa + kSize < kEnd) CHECK(std::memcmp(block + kSize, behind.data(), kSize) == 0);
      CHECK(s.done == std::vector<uint64_t>{gpa});
    }
}

TEST_CASE("a command whose end is beside guest memory is left alone") {
  Setup s;
  const uint64_t gpa = kPages * kPageSize - GPUSIM_COMMAND_BASE_BYTES;
  const gpusim_command c = s.put(0, GPUSIM_OP_CONTEXT_OPEN, 0);
  std::memcpy(s.memory.bytes(gpa, GPUSIM_COMMAND_BASE_BYTES, true), &c, GPUSIM_COMMAND_BASE_BYTES);
  s.commands->serve(gpa);
  CHECK(s.done.empty());
  CHECK(test::open_contexts() == 0);
}

TEST_CASE("the names of classes, from any on") {
  Setup s;
  const uint32_t context = s.open();
  for (uint64_t first = 0; first <= kInsnClassCount; ++first) {
    REQUIRE(s.run(GPUSIM_OP_CLASSES, context, {first}) == 0);
    const gpusim_reply& reply = s.at(0)->reply;
    CHECK(reply.word[0] == kInsnClassCount);
    std::string expected;
    for (uint64_t c = first; c < first + reply.word[1]; ++c)
      expected += std::string(kInsnClassNames[c]) + "\n";
    CHECK(reply.text == expected);
    CHECK((reply.word[1] > 0) == (first < kInsnClassCount));
  }
  CHECK(s.run(GPUSIM_OP_CLASSES, context, {~uint64_t{0}}) == 0);
  CHECK(s.at(0)->reply.word[1] == 0);
}

// The decoder must act on what it checked. A thread changes the table of extents all the time
// between one that is RAM and one that is not; what gets mapped is always the former.
TEST_CASE("memory that changes while a command is served") {
  Setup s;
  const uint32_t c = s.open();
  auto* extent = reinterpret_cast<gpusim_extent*>(s.memory.bytes(8 * kPageSize, 16, true));
  *extent = {32 * kPageSize, kPageSize};
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    std::atomic_ref<gpusim_u64> gpa(extent->gpa);
    for (uint64_t i = 0; !stop; ++i) {
      gpa.store(i % 2 ? 32 * kPageSize : uint64_t{1} << 40, std::memory_order_relaxed);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  int mapped = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const int status = s.run(GPUSIM_OP_MAP, c, {1 << 20, kPageSize, 3, 8 * kPageSize, 1});
    if (status == 0) {
      ++mapped;
      auto* here = s.memory.bytes(32 * kPageSize, 4, true);
      *reinterpret_cast<int*>(here) = i;
      CHECK(*reinterpret_cast<int*>(s.service.memory(c).pointer(1 << 20)) == i);
      CHECK(s.run(GPUSIM_OP_UNMAP, c, {1 << 20, kPageSize}) == 0);
    } else {
      ++refused;
      CHECK(status == -EFAULT);
    }
  }
  stop = true;
  changer.join();
  CHECK(mapped + refused == 4000);
}
