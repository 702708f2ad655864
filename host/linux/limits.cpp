#include "host/linux/limits.h"

#include <sys/resource.h>

#include <algorithm>

#include "host/linux/file_table.h"

namespace gpusim::host {

Limits::Limits(uint64_t stack_size_bytes) {
  values_.fill({kInfinite, kInfinite});
  // What C libraries size thread stacks by; the usual 8 MiB where the stack has less.
  values_[kStack].current = std::max<uint64_t>(stack_size_bytes, 8 << 20);
  values_[kCore].current = 0;  // a process that ends by a signal leaves no file
  // Each open file of a guest is one of the host's.
  rlimit host{};
  constexpr uint64_t kMost = FileTable::kMost;
  if (::getrlimit(RLIMIT_NOFILE, &host) == 0)
    values_[kOpenFiles] = {std::min<uint64_t>(host.rlim_cur, kMost),
                           std::min<uint64_t>(host.rlim_max, kMost)};
  constexpr uint64_t kSignals = 1 << 16;  // each takes memory of the host
  values_[kPendingSignals] = {kSignals, kSignals};
}

}  // namespace gpusim::host
