#include "standin/host_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "emulated/reach.h"
#include "standin/chip.h"
#include "standin/lanes.h"
#include "standin/memory.h"
#include "standin/queue.h"
#include "standin/report.h"
#include "standin/shared_memory.h"

// Of this program, or of the shared library that this is a part of.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start, _end;

namespace cuda_emulated {

uintptr_t reach_begin = 0;
size_t reach_bytes = 0;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr uintptr_t kPage = 4096;
std::map<uintptr_t, size_t> registered;

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// The first that ends behind `begin`.
auto behind(uintptr_t begin) {
  auto it = registered.upper_bound(begin);
  if (it != registered.begin() && std::prev(it)->first + std::prev(it)->second > begin) --it;
  return it;
}

bool lies_in(const void* p, const void* begin, size_t bytes) {
  return number(p) - number(begin) < bytes;
}

// Of variables and shared memory, which here are the host's, too.
bool is_kernels_own(const void* p) {
  constexpr size_t kShared = 1 << 18;
  return lies_in(p, shared_memory(0).data(), kShared) ||
         lies_in(p, &__ehdr_start, static_cast<size_t>(&_end - &__ehdr_start));
}

}  // namespace

bool offers(const char* what) {
  const char* const said = std::getenv("GPUSIM_EMULATED_HOST_MEMORY");
  const std::string all = std::string(",") + (said ? said : "register,read-only") + ",";
  return all.find(std::string(",") + what + ",") != std::string::npos;
}

bool is_registered(const void* p) {
  const auto it = behind(number(p));
  return it != registered.end() && it->first <= number(p);
}

void forget_registrations() {
  registered.clear();
  forget_reach();
}

int failure(const std::string& kind) {
  static std::map<std::string, uint64_t> times;
  static std::string known;
  const char* const said = std::getenv("GPUSIM_EMULATED_FAILURES");
  if (!said) return 0;
  if (known != said) times.clear();
  known = said;
  const std::string wanted = "," + kind + ":" + std::to_string(++times[kind]) + "=";
  const std::string all = std::string(",") + said;
  const size_t at = all.find(wanted);
  return at == std::string::npos ? 0 : std::atoi(all.c_str() + at + wanted.size());
}

void forget_reach() { reach_bytes = 0; }

bool has_host_atomics() { return offers("host-tables") || offers("atomics"); }
// Until somebody asks: the environment may yet say how many devices there are.
bool watches_exchanges = true;

void note_exchange(const void* p) {
  struct Exchange {
    int device = 0;
    uint64_t submitted = 0;
  };
  watches_exchanges = chips().size() > 1 && !has_host_atomics();
  if (!watches_exchanges) return;
  static std::map<uintptr_t, Exchange> last;  // by words
  const auto it = behind(number(p));
  if (it == registered.end() || it->first > number(p)) return;
  const Turn& turn = running_turn();
  Exchange& e = last[number(p) / sizeof(uint64_t)];
  if (e.submitted != 0 && turn.may_overlap(e.device, e.submitted))
    report(cudaErrorIllegalAddress,
           running_lane() + " makes an atomic operation on memory of the host, and device " +
               std::to_string(e.device) + " another at the same time: they are not one");
  e = {turn.device, turn.submitted};
}

void look_up_reach(const void* p, size_t size) {
  // Naming a lane reads debugging information: only where something is wrong.
  const auto who = [] { return in_kernel() ? running_lane() : std::string("an algorithm"); };
  if (is_device_memory(p)) {
    if (const std::string why = range_fault(p, size); !why.empty())
      report(cudaErrorIllegalAddress, who() + " accesses " + why);
    else
      std::tie(reach_begin, reach_bytes) = allocation_of(p);
    return;
  }
  const auto it = behind(number(p));
  if (it != registered.end() && it->first <= number(p)) {
    reach_begin = it->first;
    reach_bytes = it->second;
    return;
  }
  if (offers("pageable") || is_kernels_own(p)) return;
  report(cudaErrorIllegalAddress, who() + " accesses memory of the host that is not registered");
}

}  // namespace cuda_emulated

using namespace cuda_emulated;

cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned flags) {
  const Lock lock(interface_lock());
  if (sticky_error()) return static_cast<cudaError_t>(sticky_error());
  if (const int code = failure("register")) return static_cast<cudaError_t>(code);
  if (!offers("register")) return cudaErrorNotSupported;
  if ((flags & cudaHostRegisterReadOnly) && !offers("read-only")) return cudaErrorNotSupported;
  if (bytes == 0 || is_device_memory(p)) return cudaErrorInvalidValue;
  // A driver pins each page; here it only has to be mapped.
  const uintptr_t begin = number(p) / kPage * kPage, end = number(p) + bytes;
  if (msync(reinterpret_cast<void*>(begin), (end - begin + kPage - 1) / kPage * kPage, MS_ASYNC) !=
      0)
    return cudaErrorInvalidValue;
  const auto it = behind(number(p));
  if (it != registered.end() && it->first < end) return cudaErrorHostMemoryAlreadyRegistered;
  registered[number(p)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* p) {
  const Lock lock(interface_lock());
  finish_all();
  forget_reach();
  if (registered.erase(number(p)) == 0) return cudaErrorHostMemoryNotRegistered;
  return static_cast<cudaError_t>(sticky_error());
}
