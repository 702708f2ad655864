#include "host/linux/abi.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "host/linux/calls.h"
#include "host/linux/signal_frame.h"
#include "tests/unit/host/toy_module.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

Reply own_call(Kernel&, Call&) { return Reply::result(0); }

TEST_CASE("each guest ISA has its Linux") {
  for (const GuestIsa* isa : all_isas()) {
    INFO(isa->name);
    const LinuxAbi* const abi = find_linux_abi(isa->name);
    REQUIRE(abi != nullptr);
    CHECK(!abi->signal_return.empty());
    CHECK(abi->signal_return.size() % isa->insn_align == 0);
    CHECK(abi->call_bytes % isa->insn_align == 0);
    CHECK(8 * abi->word_bytes == isa->register_bits);
    CHECK(abi->call_bytes <= isa->longest_insn);
    Module module = toy_module();
    module.isa = isa->name;
    CHECK(abi->make_signal_frame(module) != nullptr);
    bool can_write = false;
    for (uint64_t number = 0; number < 512; ++number) {
      const SystemCall call = find_call(*abi, number);
      can_write |= call.name != nullptr && std::string(call.name) == "write" && call.handler;
    }
    CHECK(can_write);
  }
  CHECK(find_linux_abi("pdp11") == nullptr);
}

TEST_CASE("an ISA may number system calls in its own way and have some of its own") {
  static constexpr OwnCall kOwn[] = {{900, {"own", own_call}}};
  LinuxAbi abi = linux_abi(toy_module());
  CHECK(find_call(abi, 900).name == nullptr);
  abi.own_calls = kOwn;
  CHECK((find_call(abi, 900).handler == own_call));
  CHECK((find_call(abi, 64).handler == find_handler(64)));
  abi.generic_number = [](uint64_t number) { return number + 63; };
  CHECK((find_call(abi, 1).handler == find_handler(64)));
  CHECK((find_call(abi, 900).handler == own_call));
}

TEST_CASE("flags of open that differ between ISAs") {
  LinuxAbi abi = linux_abi(toy_module());
  CHECK(host_open_flags(abi, 0040000 | 02000000 | 1) == (O_DIRECTORY | O_CLOEXEC | O_WRONLY));
  CHECK(guest_open_flags(abi, O_NOFOLLOW | O_APPEND) == (0100000 | 02000));
  static constexpr OpenFlag kGeneric[] = {{0200000, O_DIRECTORY}, {0400000, O_NOFOLLOW}};
  abi.open_flags = kGeneric;
  CHECK(host_open_flags(abi, 0200000) == O_DIRECTORY);
  CHECK(guest_open_flags(abi, O_NOFOLLOW) == 0400000);
}

}  // namespace
}  // namespace gpusim::host
