#include "host/linux/signals.h"

#include <doctest/doctest.h>

namespace gpusim::host {
namespace {

TEST_CASE("pending signals: standard ones once, real-time ones queued, faults first") {
  SignalQueue queue;
  CHECK(queue.set() == 0);
  CHECK_FALSE(queue.take(~uint64_t{0}));
  for (int i = 0; i < 3; ++i) {
    queue.add({.number = SIGUSR1, .code = i});
    queue.add({.number = 40, .value = static_cast<uint64_t>(i)});
  }
  queue.add({.number = SIGSEGV, .is_fault = true});
  queue.add({.number = SIGHUP});
  CHECK(queue.set() ==
        (signal_bit(SIGUSR1) | signal_bit(40) | signal_bit(SIGSEGV) | signal_bit(SIGHUP)));
  CHECK(queue.take(signal_bit(40))->value == 0);
  CHECK(queue.take(~uint64_t{0})->number == SIGSEGV);
  CHECK(queue.take(~uint64_t{0})->number == SIGHUP);
  CHECK(queue.take(~uint64_t{0})->code == 0);  // the first of SIGUSR1
  CHECK(queue.take(~uint64_t{0})->value == 1);
  CHECK(queue.take(~uint64_t{0})->value == 2);
  CHECK_FALSE(queue.take(~uint64_t{0}));
  queue.add({.number = SIGUSR2});
  queue.remove(SIGUSR2);
  CHECK(queue.set() == 0);
}

TEST_CASE("an alternate stack knows what lies on it") {
  const SignalStack stack{.base = 0x1000, .flags = 0, .size = 0x2000};
  CHECK_FALSE(stack.contains(0x1000));
  CHECK(stack.contains(0x1001));
  CHECK(stack.contains(0x3000));  // empty
  CHECK_FALSE(stack.contains(0x3001));
}

}  // namespace
}  // namespace gpusim::host
