#include "qemu_bridge/daemon/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "device_sim/base/error.h"

#ifdef GPUSIM_HAVE_SECCOMP
#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#endif

namespace gpusim::daemon {
namespace {

void limit(int resource, rlim_t value, const char* what) {
  rlimit limits;
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limits) == 0 &&
      limits.rlim_max < value)
    value = limits.rlim_max;
  limits = {value, value};
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limits) != 0)
    throw Error(fmt::format("cannot limit {}: {}", what, std::strerror(errno)));
}

}  // namespace

void drop_privileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw Error(fmt::format("cannot give up privileges: {}", std::strerror(errno)));
  limit(RLIMIT_CORE, 0, "core files");
}

void limit_memory(uint64_t bytes) { limit(RLIMIT_DATA, bytes, "memory"); }

#ifdef GPUSIM_HAVE_SECCOMP
namespace {

// What threads, allocators, generated code, clocks and the transports use.
constexpr int kAllowed[] = {
    // memory
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mprotect), SCMP_SYS(mremap), SCMP_SYS(madvise),
    SCMP_SYS(brk), SCMP_SYS(mincore), SCMP_SYS(memfd_create), SCMP_SYS(ftruncate),
    SCMP_SYS(membarrier), SCMP_SYS(mlock), SCMP_SYS(munlock), SCMP_SYS(get_mempolicy),
    // descriptors that are there
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64),
    SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(dup),
    SCMP_SYS(pipe2), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg), SCMP_SYS(recvfrom),
    SCMP_SYS(sendmsg), SCMP_SYS(sendto), SCMP_SYS(shutdown), SCMP_SYS(fallocate),
    // threads
    SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_getscheduler), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(set_tid_address), SCMP_SYS(getcpu), SCMP_SYS(arch_prctl),
    // signals to itself: abort(), raise()
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigtimedwait), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall),
    // time and numbers
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(getrandom), SCMP_SYS(getrusage),
    SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getuid), SCMP_SYS(geteuid),
#ifdef __SANITIZE_ADDRESS__
    SCMP_SYS(pipe),  // the sanitizers try with a pipe whether they can read an object
#endif
};

// What libdw and the allocator use.
constexpr int kReaderAllowed[] = {
    SCMP_SYS(mmap),        SCMP_SYS(munmap),       SCMP_SYS(mprotect),  SCMP_SYS(mremap),
    SCMP_SYS(madvise),     SCMP_SYS(brk),          SCMP_SYS(read),      SCMP_SYS(pread64),
    SCMP_SYS(write),       SCMP_SYS(lseek),        SCMP_SYS(close),     SCMP_SYS(fstat),
    SCMP_SYS(dup),         SCMP_SYS(futex),        SCMP_SYS(getrandom), SCMP_SYS(exit),
    SCMP_SYS(exit_group),  SCMP_SYS(rt_sigreturn),
#ifdef __SANITIZE_ADDRESS__
    SCMP_SYS(pipe),        SCMP_SYS(pipe2),        SCMP_SYS(gettid),    SCMP_SYS(getpid),
    SCMP_SYS(sigaltstack), SCMP_SYS(sched_yield),
#endif
};

class Filter {
 public:
  Filter() : filter_(seccomp_init(SCMP_ACT_ERRNO(EACCES))) {
    if (!filter_) throw Error("the sandbox: no memory");
    // All threads, those that exist already, too.
    check(seccomp_attr_set(filter_, SCMP_FLTATR_CTL_TSYNC, 1), "one filter for all threads");
    // Not before a kernel that has it; then filters cost less.
    (void)seccomp_attr_set(filter_, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  }
  ~Filter() { seccomp_release(filter_); }
  Filter(const Filter&) = delete;

  template <typename... Conditions>
  void add(uint32_t action, int call, Conditions... conditions) {
    const int error = seccomp_rule_add(filter_, action, call, sizeof...(conditions), conditions...);
    // A call that this processor architecture does not have needs no rule.
    if (error == -EDOM || error == -EINVAL) return;
    check(error, "a rule");
  }
  void load() { check(seccomp_load(filter_), "switching it on"); }

 private:
  static void check(int error, const char* what) {
    if (error != 0) throw Error(fmt::format("the sandbox: {}: {}", what, std::strerror(-error)));
  }
  scmp_filter_ctx filter_;
};

}  // namespace

bool sandbox_available(std::string* why_not) {
  if (seccomp_api_get() >= 2) return true;  // 2: TSYNC
  if (why_not) *why_not = "the kernel does not filter system calls of several threads (seccomp)";
  return false;
}

void enter_sandbox(const SandboxOptions& options) {
  std::string why_not;
  if (!sandbox_available(&why_not)) throw Error("the sandbox: " + why_not);
  Filter filter;
  for (const int call : kAllowed) filter.add(SCMP_ACT_ALLOW, call);
  // Threads, no processes. clone3 hides its flags behind a pointer: the C library then takes clone.
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(clone),
             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  filter.add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  // Reading limits, and names of threads.
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0));
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(getrlimit));
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  // The C library's fstat().
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
  // Signals reach this process alone.
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self));
  if (options.may_open_files) {
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(openat));
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(open));
  }
  if (options.may_accept) {
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(accept4));
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(unlink));
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(unlinkat));
  }
  if (options.may_connect) {
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    filter.add(SCMP_ACT_ALLOW, SCMP_SYS(connect));
  }
  filter.load();
}

void enter_reader_sandbox() {
  Filter filter;
  for (const int call : kReaderAllowed) filter.add(SCMP_ACT_ALLOW, call);
  filter.add(SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
  filter.load();
}
#else
bool sandbox_available(std::string* why_not) {
  if (why_not) *why_not = "this gpusim was built without libseccomp";
  return false;
}

void enter_sandbox(const SandboxOptions&) {
  std::string why_not;
  sandbox_available(&why_not);
  throw Error("the sandbox: " + why_not);
}

void enter_reader_sandbox() { enter_sandbox({}); }
#endif

}  // namespace gpusim::daemon
