#include "host/offload/lock_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <span>
#include <string_view>

#include "translator/common/translator.h"

namespace gpusim::offload {
namespace {

// Where C libraries wait for any lock that is taken: glibc, glibc, musl, musl.
constexpr std::string_view kWaiters[] = {"__lll_lock_wait", "__lll_lock_wait_private", "__lock",
                                         "__lockfile"};

// The outermost functions that take a lock: of a stream, of the heap, of a thread library, or
// of some table of the library's own. `_chk`: what -D_FORTIFY_SOURCE makes of the first ones.
constexpr std::string_view kLockers[] = {"__asprintf_chk",
                                         "__fgets_chk",
                                         "__fprintf_chk",
                                         "__fread_chk",
                                         "__overflow",
                                         "__printf_chk",
                                         "__uflow",
                                         "__vasprintf_chk",
                                         "__vfprintf_chk",
                                         "__vprintf_chk",
                                         "aligned_alloc",
                                         "asprintf",
                                         "atexit",
                                         "calloc",
                                         "clearenv",
                                         "closedir",
                                         "cnd_broadcast",
                                         "cnd_signal",
                                         "cnd_timedwait",
                                         "cnd_wait",
                                         "dprintf",
                                         "fclose",
                                         "fdopen",
                                         "fflush",
                                         "fgetc",
                                         "fgets",
                                         "fgetwc",
                                         "flockfile",
                                         "fopen",
                                         "fprintf",
                                         "fputc",
                                         "fputs",
                                         "fputwc",
                                         "fputws",
                                         "fread",
                                         "free",
                                         "freopen",
                                         "fscanf",
                                         "fseek",
                                         "ftell",
                                         "fwprintf",
                                         "fwrite",
                                         "getc",
                                         "getchar",
                                         "getdelim",
                                         "getline",
                                         "gmtime",
                                         "localtime",
                                         "localtime_r",
                                         "malloc",
                                         "memalign",
                                         "mktime",
                                         "mtx_lock",
                                         "mtx_timedlock",
                                         "mtx_trylock",
                                         "mtx_unlock",
                                         "perror",
                                         "posix_memalign",
                                         "printf",
                                         "pthread_cond_broadcast",
                                         "pthread_cond_signal",
                                         "pthread_cond_timedwait",
                                         "pthread_cond_wait",
                                         "pthread_create",
                                         "pthread_join",
                                         "pthread_mutex_lock",
                                         "pthread_mutex_timedlock",
                                         "pthread_mutex_trylock",
                                         "pthread_mutex_unlock",
                                         "pthread_once",
                                         "pthread_rwlock_rdlock",
                                         "pthread_rwlock_tryrdlock",
                                         "pthread_rwlock_trywrlock",
                                         "pthread_rwlock_unlock",
                                         "pthread_rwlock_wrlock",
                                         "putc",
                                         "putchar",
                                         "putenv",
                                         "puts",
                                         "pvalloc",
                                         "rand",
                                         "random",
                                         "readdir",
                                         "realloc",
                                         "reallocarray",
                                         "scanf",
                                         "sem_post",
                                         "sem_timedwait",
                                         "sem_wait",
                                         "setenv",
                                         "setlocale",
                                         "setvbuf",
                                         "srand",
                                         "srandom",
                                         "strftime",
                                         "syslog",
                                         "ungetc",
                                         "unsetenv",
                                         "valloc",
                                         "vasprintf",
                                         "vdprintf",
                                         "vfprintf",
                                         "vfscanf",
                                         "vprintf",
                                         "vscanf",
                                         "vwprintf",
                                         "wprintf"};

// C11 7.1.3: names that belong to the language's implementation. C++ compilers make such names of
// everybody's functions, too.
bool is_reserved(std::string_view name) {
  return name.size() >= 2 && name[0] == '_' &&
         (name[1] == '_' || std::isupper(static_cast<unsigned char>(name[1]))) &&
         !name.starts_with("_Z");
}

// Whose code an address is in, or null. A function without a size ends where the next one begins.
const Symbol* function_at(const Module& module, uint64_t address) {
  auto it = std::ranges::upper_bound(module.symbols, address, {}, &Symbol::address);
  while (it != module.symbols.begin()) {
    --it;
    if (!it->is_function) continue;
    if (it->size_bytes != 0 && address - it->address >= it->size_bytes) return nullptr;
    // The first of several names.
    while (it != module.symbols.begin() && std::prev(it)->address == it->address &&
           std::prev(it)->is_function)
      --it;
    return &*it;
  }
  return nullptr;
}

bool is_of_the_library(const Module& module, uint64_t address) {
  const auto names = std::ranges::equal_range(module.symbols, address, {}, &Symbol::address);
  return std::any_of(names.begin(), names.end(),
                     [](const Symbol& s) { return s.is_function && is_reserved(s.name); });
}

std::string name_of(const Module& module, uint64_t address) {
  const Symbol* const s = function_at(module, address);
  return s ? s->name : fmt::format("{:#x}", address);
}

std::string instead_of(std::string_view name) {
  if (name.find("lock") != name.npos || name.starts_with("pthread") || name.starts_with("mtx") ||
      name.starts_with("cnd") || name.starts_with("sem_"))
    return "use the locks of gpusim_sync.h among cores";
  if (name.find("alloc") != name.npos || name == "free" || name == "memalign")
    return "allocate before the launch: gpusim_buffer_create()";
  if (name.find("print") != name.npos || name.find("put") != name.npos || name == "fwrite")
    return "print with gpusim_printf() of gpusim_guest.h";
  return "call it before or after the launch";
}

void for_each_function(const Module& module, std::span<const std::string_view> names,
                       const auto& f) {
  for (const Symbol& s : module.symbols)
    if (s.is_function && std::ranges::find(names, s.name) != names.end()) f(s);
}

constexpr const char* kWhy =
    "which takes locks of the calling program, and a core might never give them back";

}  // namespace

LockGuard::LockGuard(const Module& module) : calls_(find_calls(module)) {
  // A program may have a rand() of its own: only what can come to wait for a lock is the library's.
  std::set<uint64_t> waiters;
  for_each_function(module, kWaiters, [&](const Symbol& s) { waiters.insert(s.address); });
  const std::set<uint64_t> reaching = callers_of(waiters);
  const auto guard = [&](const Symbol& s) {
    if (module.code.is_code(s.address)) names_.emplace(s.address, s.name);
  };
  for_each_function(module, kWaiters, guard);
  for_each_function(module, kLockers, [&](const Symbol& s) {
    if (waiters.empty() || reaching.contains(s.address)) guard(s);
  });
}

// With themselves.
std::set<uint64_t> LockGuard::callers_of(std::set<uint64_t> functions) const {
  std::vector<Call> back;
  for (const Call& c : calls_) back.push_back({c.to, c.from});
  std::ranges::sort(back);
  std::deque<uint64_t> next(functions.begin(), functions.end());
  for (; !next.empty(); next.pop_front())
    for (auto call = std::ranges::lower_bound(back, Call{next.front(), 0});
         call != back.end() && call->from == next.front(); ++call)
      if (functions.insert(call->to).second) next.push_back(call->to);
  return functions;
}

std::vector<uint64_t> LockGuard::addresses() const {
  std::vector<uint64_t> addresses;
  for (const auto& [address, name] : names_) addresses.push_back(address);
  return addresses;
}

const std::string* LockGuard::guarded(uint64_t address) const {
  const auto it = names_.find(address);
  return it == names_.end() ? nullptr : &it->second;
}

// Which function jumps or calls into which other one, as far as targets stand in the code.
std::vector<LockGuard::Call> LockGuard::find_calls(const Module& module) {
  std::vector<Call> calls;
  for (size_t i = 0; i < module.symbols.size(); ++i) {
    const Symbol& from = module.symbols[i];
    if (!module.code.is_code(from.address) || function_at(module, from.address) != &from) continue;
    uint64_t size = from.size_bytes;
    if (size == 0) {  // it ends where the next one begins
      const auto next = std::ranges::find_if(
          std::span(module.symbols).subspan(i),
          [&](const Symbol& s) { return s.is_function && s.address > from.address; });
      size = next == std::span(module.symbols).end() ? ~uint64_t{0} : next->address - from.address;
    }
    for (const uint64_t target : branch_targets(module, from.address, size)) {
      if (target - from.address < size) continue;
      const Symbol* const to = function_at(module, target);
      if (to && to->address != from.address) calls.push_back({from.address, to->address});
    }
  }
  std::ranges::sort(calls);
  const auto rest = std::ranges::unique(calls);
  calls.erase(rest.begin(), rest.end());
  return calls;
}

// The shortest way first. The library's inner functions are not looked into: many of them take a
// lock in rare cases only, or only of a stream that is nobody else's (snprintf).
std::optional<std::string> LockGuard::objection(const Module& module, uint64_t function) const {
  if (names_.empty()) return std::nullopt;
  const Symbol* const start = function_at(module, function);
  if (!start) return std::nullopt;
  std::map<uint64_t, uint64_t> came_from{{start->address, 0}};
  std::deque<uint64_t> next{start->address};
  while (!next.empty()) {
    const uint64_t at = next.front();
    next.pop_front();
    if (const std::string* const name = guarded(at)) {
      std::string way = *name;
      for (uint64_t a = at; (a = came_from[a]) != 0;) way = name_of(module, a) + " -> " + way;
      return fmt::format("{}() cannot be a kernel: it calls {}(), {}; {} ({})", start->name, *name,
                         kWhy, instead_of(*name), way);
    }
    if (at != start->address && is_of_the_library(module, at)) continue;
    for (auto call = std::ranges::lower_bound(calls_, Call{at, 0});
         call != calls_.end() && call->from == at; ++call)
      if (came_from.emplace(call->to, at).second) next.push_back(call->to);
  }
  return std::nullopt;
}

std::string LockGuard::complaint(const Module& module, const std::string& name, uint64_t caller) {
  // A function that ends with the call has left no trace.
  const Symbol* const from = function_at(module, caller);
  return fmt::format("the kernel called {}(){}, {}; {}", name,
                     from ? " from " + symbolize(module, caller) : "", kWhy, instead_of(name));
}

}  // namespace gpusim::offload
