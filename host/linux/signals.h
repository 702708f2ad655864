// Signals: what is pending, who gets it, and the way into a handler and back.
#pragma once
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpusim::host {

inline constexpr int kSignalCount = 64;

// As rt_sigaction has it.
struct SignalAction {
  uint64_t handler = 0;  // 0: default, 1: ignore
  uint64_t flags = 0, restorer = 0, mask = 0;
  bool has_handler() const { return handler > 1; }
};
enum SignalFlags : uint64_t {
  kSaNoCldStop = 1,
  kSaNoCldWait = 2,
  kSaSigInfo = 4,
  kSaRestorer = 0x04000000,
  kSaOnStack = 0x08000000,
  kSaRestart = 0x10000000,
  kSaNoDefer = 0x40000000,
  kSaResetHand = 0x80000000,
};

// As sigaltstack has it.
struct SignalStack {
  uint64_t base = 0;
  int32_t flags = 2;  // SS_DISABLE
  int32_t pad = 0;
  uint64_t size = 0;
  static constexpr int32_t kOnStack = 1, kDisable = 2;
  bool contains(uint64_t address) const { return address > base && address - base <= size; }
};

// What a handler hears about its signal; asm-generic/siginfo.h.
struct SignalInfo {
  int32_t number = 0, code = 0;
  uint64_t address = 0;  // faults: si_addr
  int32_t pid = 0;       // others: the sender
  uint32_t uid = 0;
  uint64_t value = 0;
  bool is_fault = false;
};
enum SignalCode : int32_t {
  kSiUser = 0,
  kSiTkill = -6,
  kSiTimer = -2,
  kSegvMapErr = 1,
  kSegvAccErr = 2,
  kBusAdrAln = 1,
  kBusAdrErr = 2,
  kIllIllOpc = 1,
  kTrapBrkpt = 1,
};

constexpr uint64_t signal_bit(int number) { return uint64_t{1} << (number - 1); }
// SIGKILL and SIGSTOP cannot be blocked, caught or ignored.
inline constexpr uint64_t kUnblockable = signal_bit(SIGKILL) | signal_bit(SIGSTOP);
// Those that stop a process, unless it catches or ignores them.
inline constexpr uint64_t kStopping =
    signal_bit(SIGSTOP) | signal_bit(SIGTSTP) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU);
inline constexpr uint64_t kSynchronous = signal_bit(SIGSEGV) | signal_bit(SIGBUS) |
                                         signal_bit(SIGILL) | signal_bit(SIGTRAP) |
                                         signal_bit(SIGFPE);
constexpr bool is_ignored_by_default(int number) {
  return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

// Signals that wait; each number below 32 at most once, as on Linux.
class SignalQueue {
 public:
  void add(const SignalInfo& info);
  uint64_t set() const;
  // Takes the first with a number in `allowed`; faults, then the lowest number.
  std::optional<SignalInfo> take(uint64_t allowed);
  void remove(int number);
  bool has_timer(int32_t id) const;
  size_t size() const { return waiting_.size(); }

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a);

 private:
  std::vector<SignalInfo> waiting_;
};

}  // namespace gpusim::host
