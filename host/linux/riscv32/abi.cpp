#include "host/linux/riscv32/abi.h"

#include <fcntl.h>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/riscv/core_notes.h"
#include "host/linux/riscv/signal_frame.h"

namespace gpusim::host::riscv32 {
namespace {

// Two instructions: li a7, 139; ecall.
constexpr uint8_t kSignalReturn[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00};

// asm-generic/fcntl.h. Offsets have 64 bits anyway: O_LARGEFILE says nothing new.
constexpr OpenFlag kOpenFlags[] = {{0200000, O_DIRECTORY}, {0400000, O_NOFOLLOW}};

// System calls of 32-bit RISC-V (asm-generic/unistd.h without __ARCH_WANT_TIME32_SYSCALLS,
// __ARCH_WANT_NEW_STAT and __ARCH_WANT_SET_GET_RLIMIT): the generic functions behind 64-bit
// arguments in pairs of registers, low half first, and numbers of their own for times.
constexpr uint64_t pair(uint64_t low, uint64_t high) { return low | high << 32; }

// Offsets at these arguments, as the generic function has them.
template <Handler kGeneric, int kAt>
Reply with_offset(Kernel& kernel, Call& call) {
  auto& args = call.args;
  args[kAt] = pair(args[kAt], args[kAt + 1]);
  for (int i = kAt + 1; i < 5; ++i) args[i] = args[i + 1];
  return kGeneric(kernel, call);
}
// pread and the like keep the place of a second half: preadv has it on 64-bit Linux, too.
template <Handler kGeneric>
Reply with_position(Kernel& kernel, Call& call) {
  call.args[3] = pair(call.args[3], call.args[4]);
  return kGeneric(kernel, call);
}
Reply fallocate(Kernel& kernel, Call& call) {
  auto& args = call.args;
  args[2] = pair(args[2], args[3]);
  args[3] = pair(args[4], args[5]);
  return sys_fallocate(kernel, call);
}

// _llseek(fd, high, low, result, whence)
Reply llseek(Kernel& kernel, Call& call) {
  const uint64_t result_at = call.args[3];
  call.args[1] = pair(call.args[2], call.args[1]);
  call.args[2] = call.args[4];
  const Reply reply = sys_lseek(kernel, call);
  if (reply.kind != Reply::Kind::kResult || reply.value < 0) return reply;
  return Reply::result(call.memory.store(result_at, reply.value) ? 0 : -EFAULT);
}

// The offset counts pages of 4 KiB.
Reply mmap2(Kernel& kernel, Call& call) {
  call.args[5] <<= 12;
  return sys_mmap(kernel, call);
}

// Locks with 64-bit offsets have commands of their own; the older ones are not for new programs.
Reply fcntl64(Kernel& kernel, Call& call) {
  constexpr int64_t kGetLock = 5, kSetLockWait = 7, kGetLock64 = 12, kSetLockWait64 = 14;
  const int64_t command = call.int_arg(1);
  if (command >= kGetLock && command <= kSetLockWait) return Reply::error(EINVAL);
  if (command >= kGetLock64 && command <= kSetLockWait64)
    call.args[1] = static_cast<uint64_t>(command - kGetLock64 + kGetLock);
  return sys_fcntl(kernel, call);
}

// A null name: Linux has no such call here. A null function: its structures have longs or pointers,
// and are not translated.
constexpr OwnCall kCalls[] = {
    {25, {"fcntl64", fcntl64}},
    {43, {"statfs64", sys_statfs}},
    {44, {"fstatfs64", sys_fstatfs}},
    {45, {"truncate64", with_offset<sys_truncate, 1>}},
    {46, {"ftruncate64", with_offset<sys_ftruncate, 1>}},
    {47, {"fallocate", fallocate}},
    {62, {"_llseek", llseek}},
    {67, {"pread64", with_position<sys_pread64>}},
    {68, {"pwrite64", with_position<sys_pwrite64>}},
    {69, {"preadv", with_position<sys_preadv>}},
    {70, {"pwritev", with_position<sys_pwritev>}},
    {72, {}},  // pselect6 and others: times of 32 bits
    {73, {}},
    {79, {}},  // fstatat, fstat: statx
    {80, {}},
    {86, {}},
    {87, {}},
    {88, {}},
    {98, {}},
    {101, {}},
    {108, {}},
    {110, {}},
    {113, {}},
    {114, {}},
    {115, {}},
    {137, {}},
    {163, {}},  // getrlimit, setrlimit: prlimit64
    {164, {}},
    {169, {}},
    {187, {"msgctl", nullptr}},
    {188, {"msgrcv", nullptr}},
    {189, {"msgsnd", nullptr}},
    {191, {"semctl", nullptr}},
    {192, {}},
    {195, {"shmctl", nullptr}},
    {222, {"mmap2", mmap2}},
    {243, {}},
    {260, {}},
    {286, {"preadv2", with_position<sys_preadv2>}},
    {287, {"pwritev2", with_position<sys_pwritev2>}},
    // Times of 64 bits, in the structures that 64-bit Linux has.
    {403, {"clock_gettime64", sys_clock_gettime}},
    {406, {"clock_getres_time64", sys_clock_getres}},
    {407, {"clock_nanosleep_time64", sys_clock_nanosleep}},
    {408, {"timer_gettime64", sys_timer_gettime}},
    {409, {"timer_settime64", sys_timer_settime}},
    {410, {"timerfd_gettime64", sys_timerfd_gettime}},
    {411, {"timerfd_settime64", sys_timerfd_settime}},
    {412, {"utimensat_time64", sys_utimensat}},
    {413, {"pselect6_time64", sys_pselect6}},
    {414, {"ppoll_time64", sys_ppoll}},
    {417, {"recvmmsg_time64", sys_recvmmsg}},
    {420, {"semtimedop_time64", sys_semtimedop}},
    {421, {"rt_sigtimedwait_time64", sys_rt_sigtimedwait}},
    {422, {"futex_time64", sys_futex}},
};

}  // namespace

const LinuxAbi kAbi = {.isa = "riscv32",
                       .machine = "riscv32",
                       .word_bytes = 4,
                       .platform = nullptr,
                       .has_hwcap2 = false,
                       .sysroot = nullptr,
                       .call_bytes = 4,
                       .generic_number = nullptr,
                       .own_calls = kCalls,
                       .open_flags = kOpenFlags,
                       .signal_return = kSignalReturn,
                       .least_signal_stack = 2048,  // asm-generic/signal.h
                       .has_restorer = false,
                       .make_signal_frame = riscv::make_signal_frame<uint32_t>,
                       .core_notes = riscv::core_notes<uint32_t>,
                       .thread_control_block = 0,  // as of 64 bits
                       .global_pointer_symbol = "__global_pointer$"};

}  // namespace gpusim::host::riscv32
