// signalfd: a file from which a guest reads its signals.
#pragma once
#include <span>

#include "host/linux/file_table.h"
#include "host/linux/guest_abi.h"
#include "host/linux/kernel.h"

namespace gpusim::host {

// Behind it stands a counter of the host, which is readable while a signal of the set waits for the
// thread that looks: so it can be polled together with other files.
class SignalFile final : public OpenFile {
 public:
  SignalFile(int host_fd, uint64_t its_set)
      : OpenFile(host_fd, /*owned=*/true, Kind::kSignals), set(its_set) {}
  void prepare_look(uint64_t pending_signals) override;

  uint64_t set;

 private:
  bool is_readable_ = false;
};

// read and readv on it.
Reply read_signals(Kernel& kernel, Call& call, const SignalFile& file,
                   std::span<const GuestIovec> vectors);

}  // namespace gpusim::host
