#include "host/offload/lost_pages.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>

#include "device_sim/core/memory_view.h"

namespace gpusim::offload {
namespace {

struct Piece {
  uintptr_t end = 0;
  std::atomic<uintptr_t> lost{0};  // the lowest page that is
};

// By address. The handler of a signal cannot be given anything: there is one table per process.
std::map<uintptr_t, Piece>& pieces() {
  static std::map<uintptr_t, Piece> table;
  return table;
}
std::atomic<bool> any_lost{false};

// A file is cut at its end: from the page on all of the piece is gone. One mapping takes its place,
// so that a kernel which touches every page does not use up what mappings a process may have.
bool replace(uintptr_t address) {
  const uintptr_t page = address & ~uintptr_t{kPageSize - 1};
  auto it = pieces().upper_bound(address);
  if (it == pieces().begin()) return false;
  Piece& piece = (--it)->second;
  if (address >= piece.end) return false;
  void* const at = reinterpret_cast<void*>(page);
  if (mmap(at, piece.end - page, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != at)
    return false;
  uintptr_t lowest = piece.lost.load(std::memory_order_relaxed);
  while ((lowest == 0 || page < lowest) && !piece.lost.compare_exchange_weak(lowest, page)) {
  }
  any_lost.store(true, std::memory_order_release);
  return true;
}

// The table is not being changed: who changes it touches no guest memory meanwhile.
void on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  if (info->si_code != BUS_ADRERR || !replace(reinterpret_cast<uintptr_t>(info->si_addr)))
    std::signal(SIGBUS, SIG_DFL);  // and again
  errno = error;
}

}  // namespace

void survive_lost_pages() {
  pieces();
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGBUS, &action, nullptr);
}

void note_mapped(const void* begin, uint64_t size_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  Piece& piece = pieces()[at];
  piece.end = at + size_bytes;
  piece.lost.store(0);
}

void note_unmapped(const void* begin, uint64_t size_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  pieces().erase(pieces().lower_bound(at), pieces().lower_bound(at + size_bytes));
}

std::optional<uintptr_t> lost_page(const void* begin, uint64_t size_bytes) {
  if (!any_lost.load(std::memory_order_acquire)) return std::nullopt;
  const auto at = reinterpret_cast<uintptr_t>(begin);
  for (auto it = pieces().lower_bound(at); it != pieces().end() && it->first < at + size_bytes;
       ++it)
    if (const uintptr_t lost = it->second.lost.load()) return lost;
  return std::nullopt;
}

}  // namespace gpusim::offload
