// New processes: fork, execve, wait, and what a process is to others.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "host/linux/calls.h"
#include "host/linux/clone.h"
#include "host/linux/executable.h"
#include "host/linux/signal_frame.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

constexpr size_t kMostWords = 32768;
constexpr size_t kLongestWord = size_t{128} << 10;  // MAX_ARG_STRLEN

// The words at a null-terminated array of pointers; nothing: EFAULT.
std::optional<std::vector<std::string>> load_words(const Call& call, uint64_t address) {
  std::vector<std::string> words;
  for (; address != 0 && words.size() < kMostWords; address += call.word_bytes) {
    uint64_t at = 0;
    uint32_t narrow = 0;
    if (call.word_bytes == 4 ? !call.memory.load(address, &narrow)
                             : !call.memory.load(address, &at))
      return std::nullopt;
    at |= narrow;
    if (at == 0) break;
    std::optional<std::string> word = call.memory.string(at, kLongestWord);
    if (!word) return std::nullopt;
    words.push_back(std::move(*word));
  }
  return words;
}

void keep_open(int host_fd) { ::fcntl(host_fd, F_SETFD, 0); }

// Starts gpusim anew with the program. Returns an error number if that is not possible.
int start_successor(Kernel& kernel, Call& call, const std::vector<std::string>& words,
                    const Executable& program, const std::vector<std::string>& environment) {
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--argv0", program.arguments.empty() ? "" : program.arguments.front()});
  for (const std::string& e : environment)
    if (const size_t sign = e.find('='); sign != e.npos && sign != 0)
      all.insert(all.end(), {"--env", e});
  all.insert(all.end(), {program.path, "--"});
  if (!program.arguments.empty())
    all.insert(all.end(), program.arguments.begin() + 1, program.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);

  const std::string text = "GPUSIM_PROCESS=" + kernel.handover(*call.process, call.core);
  std::vector<char*> names;
  for (char** e = environ; *e; ++e) names.push_back(*e);
  names.push_back(const_cast<char*>(text.c_str()));
  names.push_back(nullptr);
  FileTable& files = call.process->files;
  for (int fd = 0; fd < files.limit(); ++fd)
    if (const FileRef file = files.share(fd); file && !files.closes_on_exec(fd))
      keep_open(file->host_fd());
  keep_open(kernel.family()->handover().table_fd);
  kernel.leave_memory();
  kernel.family()->let_go();
  ::execve("/proc/self/exe", argv.data(), names.data());
  const int error = errno;
  kernel.stay_in_memory();
  return error;
}

// This process stays to tell of its own run, and passes on how the program ended.
Reply stand_in(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {Reply::Kind::kSignal, WTERMSIG(status)};
  return {Reply::Kind::kExitProcess, WEXITSTATUS(status)};
}

}  // namespace

Reply clone_process(Kernel& kernel, Call& call, const CloneRequest& request) {
  if (const auto wait = kernel.vfork_waits().find(call.core); wait != kernel.vfork_waits().end()) {
    if (!kernel.family()->has_let_go(wait->second))
      return kernel.park_for_retry(call, {.from_outside = true, .for_child = true});
    const int32_t child = wait->second;
    kernel.vfork_waits().erase(wait);
    return Reply::result(child);
  }
  if ((request.flags & (kCloneVm | kCloneVfork)) == kCloneVm || (request.flags & kCloneThread)) {
    kernel.note_once("clone",
                     "a process that shares its parent's memory is not provided: clone "
                     "returns EINVAL");
    return Reply::error(EINVAL);
  }
  Family* const family = kernel.found_family();
  if (!family) {
    kernel.note_once(
        "fork",
        "system calls 220 (clone) and 435 (clone3) make new processes (fork, vfork, "
        "posix_spawn) only with --memory shared, a program that starts on one core, and "
        "a backend of the host, and not under --gdb or with --checkpoint: ENOSYS");
    return Reply::error(ENOSYS);
  }
  kernel.output().flush();
  const int32_t pid = family->fork();
  if (pid < 0) return Reply::error(-pid);
  if (pid > 0) {
    if (request.flags & kCloneParentSetTid)
      call.memory.store(request.parent_tid, static_cast<uint32_t>(pid));
    if (!(request.flags & kCloneVfork)) return Reply::result(pid);
    kernel.vfork_waits()[call.core] = pid;
    return kernel.park_for_retry(call, {.from_outside = true, .for_child = true});
  }
  kernel.become_child(call.core);
  const AbiSlots& abi = kernel.module().abi;
  const auto set = [&](int slot, uint64_t value) {
    if (slot != kNoSlot) kernel.backend().set_slot(call.core, static_cast<Slot>(slot), value);
  };
  if (request.stack_pointer != 0) set(abi.stack_pointer, request.stack_pointer);
  if (request.flags & kCloneSetTls) set(abi.thread_pointer, request.tls);
  Thread& thread = kernel.thread(call.core);
  if (request.flags & kCloneChildSetTid)
    call.memory.store(request.child_tid, static_cast<uint32_t>(thread.tid));
  thread.clear_child_tid = request.flags & kCloneChildClearTid ? request.child_tid : 0;
  return Reply::result(0);
}

Reply sys_execve(Kernel& kernel, Call& call) {
  const std::optional<std::string> path = call.memory.string(call.args[0]);
  const auto arguments = load_words(call, call.args[1]);
  const auto environment = load_words(call, call.args[2]);
  if (!path || !arguments || !environment) return Reply::error(EFAULT);
  Family* const family = kernel.found_family();
  if (!family) {
    kernel.note_once("execve",
                     "system call 221 (execve) needs --memory shared, a program that starts on one "
                     "core, and a backend of the host, and not --gdb or --checkpoint: ENOSYS");
    return Reply::error(ENOSYS);
  }
  const Executable program =
      find_executable(kernel.paths(), kernel.folder_of(*call.process), *path, *arguments);
  if (program.error != 0) return Reply::error(program.error);
  kernel.output().flush();
  const Kernel::Config::Successor successor = kernel.config().successor();
  if (successor.stands_in && !kernel.is_child()) {
    const pid_t child = ::fork();
    if (child < 0) return Reply::error(errno);
    if (child > 0) return stand_in(child);
    start_successor(kernel, call, successor.words, program, *environment);
    ::_exit(127);
  }
  return Reply::error(start_successor(kernel, call, successor.words, program, *environment));
}

namespace {

constexpr int64_t kThreadOptions = 0xe0000000;  // __WALL and its kin: all are children alike

// What a wait has found, or how the call ends or goes on. Nothing found and a result of 0: WNOHANG.
struct Found {
  Family::News news;
  Reply reply;
};

Found wait_for_child(Kernel& kernel, Call& call, const Family::Which& which, int64_t options) {
  Family* const family = kernel.family();
  if (!family) return {{}, Reply::error(ECHILD)};
  if (kernel.forgets_children(*call.process)) family->forget_ended();
  const auto news = family->take_news(which, static_cast<int>(options), (options & WNOWAIT) != 0);
  if (!news) return {{}, Reply::error(ECHILD)};
  if (news->pid != 0) return {*news, Reply::result(news->pid)};
  if (options & WNOHANG) return {{}, Reply::result(0)};
  if (kernel.deliverable(call.core) != 0) return {{}, Reply::error(EINTR)};
  return {
      {},
      kernel.park_for_retry(call, {.from_outside = true, .restartable = true, .for_child = true})};
}

// The fields of siginfo_t that waitid fills; all zero if there is no child.
template <class Word>
bool store_child(const Call& call, uint64_t address, const Family::News& news) {
  const GuestSigInfo<Word> info =
      news.pid != 0 ? guest_siginfo<Word>(child_signal(news)) : guest_siginfo<Word>({});
  constexpr size_t kSize = offsetof(GuestSigInfo<Word>, sender.value) + sizeof(int32_t);
  return call.memory.write(address, {reinterpret_cast<const uint8_t*>(&info), kSize});
}

}  // namespace

Reply sys_wait4(Kernel& kernel, Call& call) {
  constexpr int64_t kKnown = WNOHANG | WUNTRACED | WCONTINUED | kThreadOptions;
  using Kind = Family::Which::Kind;
  const int64_t options = static_cast<uint32_t>(call.args[2]);
  const int64_t id = call.int_arg(0);
  if (options & ~kKnown) return Reply::error(EINVAL);
  if (id == INT32_MIN) return Reply::error(ESRCH);
  const Family::Which which = id == -1 ? Family::Which{}
                              : id > 0 ? Family::Which{Kind::kProcess, id}
                                       : Family::Which{Kind::kGroup, -id};
  const Found found = wait_for_child(kernel, call, which, options | WEXITED);
  if (found.news.pid == 0) return found.reply;
  if (call.args[1] != 0 && !call.memory.store(call.args[1], found.news.status))
    return Reply::error(EFAULT);
  if (call.args[3] != 0 && !store_longs(call, call.args[3], found.news.usage.longs()))
    return Reply::error(EFAULT);
  return found.reply;
}

Reply sys_waitid(Kernel& kernel, Call& call) {
  constexpr int64_t kChanges = WEXITED | WSTOPPED | WCONTINUED;
  using Kind = Family::Which::Kind;
  const int64_t options = static_cast<uint32_t>(call.args[3]);
  if (options & ~(kChanges | WNOHANG | WNOWAIT | kThreadOptions) || !(options & kChanges))
    return Reply::error(EINVAL);
  const int64_t type = call.int_arg(0), id = call.int_arg(1);
  Family::Which which;
  switch (type) {
    case P_ALL:
      break;
    case P_PID:
      if (id <= 0) return Reply::error(EINVAL);
      which = {Kind::kProcess, id};
      break;
    case P_PGID:
      if (id < 0) return Reply::error(EINVAL);
      which = {Kind::kGroup, id};
      break;
    case P_PIDFD:  // there are none
      return Reply::error(id < 0 ? EINVAL : EBADF);
    default:
      return Reply::error(EINVAL);
  }
  const Found found = wait_for_child(kernel, call, which, options);
  if (found.reply.kind != Reply::Kind::kResult || found.reply.value < 0) return found.reply;
  if (call.args[4] != 0 && found.news.pid != 0 &&
      !store_longs(call, call.args[4], found.news.usage.longs()))
    return Reply::error(EFAULT);
  if (call.args[2] != 0) {
    const bool is_stored = call.word_bytes == 4
                               ? store_child<uint32_t>(call, call.args[2], found.news)
                               : store_child<uint64_t>(call, call.args[2], found.news);
    if (!is_stored) return Reply::error(EFAULT);
  }
  return Reply::result(0);
}

Reply sys_getppid(Kernel& kernel, Call&) {
  return Reply::result(kernel.family() ? kernel.family()->parent() : kFirstPid - 1);
}
// A process without relatives leads its group, in the session of what started it.
static bool is_own(const Call& call) {
  return call.int_arg(0) == 0 || call.int_arg(0) == call.process->pid;
}
Reply sys_getpgid(Kernel& kernel, Call& call) {
  Family* const family = kernel.family();
  if (family) return Reply::result(family->group_of(call.int_arg(0)));
  return is_own(call) ? Reply::result(call.process->pid) : Reply::error(ESRCH);
}
Reply sys_getsid(Kernel& kernel, Call& call) {
  Family* const family = kernel.family();
  if (family) return Reply::result(family->session_of(call.int_arg(0)));
  return is_own(call) ? Reply::result(kFirstPid - 1) : Reply::error(ESRCH);
}
Reply sys_setpgid(Kernel& kernel, Call& call) {
  Family* const family = kernel.family();
  return Reply::result(family ? family->set_group(call.int_arg(0), call.int_arg(1)) : 0);
}
Reply sys_setsid(Kernel& kernel, Call&) {
  Family* const family = kernel.family();
  return Reply::result(family ? family->start_session() : -EPERM);
}

}  // namespace gpusim::host
