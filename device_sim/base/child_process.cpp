#include "device_sim/base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"

namespace gpusim {
namespace {

// This process's environment with these variables in it. It is made before fork(): behind it
// nothing may be allocated, since another thread could have held the heap's lock.
std::vector<char*> environment_with(const std::vector<std::string>& variables) {
  const auto is_set_anew = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(variables.begin(), variables.end(),
                       [&](const std::string& v) { return v.starts_with(name); });
  };
  std::vector<char*> environment;
  for (char** entry = ::environ; *entry; ++entry)
    if (!is_set_anew(*entry)) environment.push_back(*entry);
  for (const std::string& v : variables) environment.push_back(const_cast<char*>(v.c_str()));
  environment.push_back(nullptr);
  return environment;
}

// In the child: `from` becomes `stream`.
bool put_in_place(int from, int stream) {
  if (from != ChildSettings::kNoStream) return from == stream || ::dup2(from, stream) == stream;
  const int null = ::open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY);
  if (null < 0 || null == stream) return null == stream;
  const bool is_there = ::dup2(null, stream) == stream;
  ::close(null);
  return is_there;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildSettings& settings) {
  if (command.empty()) throw Error("there is no command to run");
  const auto fail = [&](int error) { throw Error(command[0] + ": " + std::strerror(error)); };
  // The pipe closes when exec works, and brings errno when it does not.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) fail(errno);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  std::vector<char*> args;
  args.reserve(command.size() + 1);
  for (const std::string& a : command) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const std::vector<char*> environment = environment_with(settings.variables);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail(errno);
  if (pid_ == 0) {
    if (settings.is_apart) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);
    }
    // What gpusim ignores, the program shall not.
    for (const int s : {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ}) ::signal(s, SIG_DFL);
    if (put_in_place(settings.input, 0) && put_in_place(settings.output, 1) &&
        put_in_place(settings.error, 2))
      ::execvpe(args[0], args.data(), environment.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t n = ::write(ends[1], &error, sizeof error);
    ::_exit(127);
  }
  write_end = FileDescriptor();
  int error = 0;
  ssize_t n;
  do {
    n = ::read(read_end.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof error)) {
    wait();
    fail(error);
  }
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  send(SIGKILL);
  wait();
}

std::optional<int> ChildProcess::collect(int options) {
  int status = 0;
  const pid_t got = ::wait4(pid_, &status, options, &usage_);
  if (got == pid_) {
    if (WIFSIGNALED(status)) signal_ = WTERMSIG(status);
    status_ = signal_ ? 128 + *signal_ : WEXITSTATUS(status);
  } else if (got < 0 && errno != EINTR) {
    status_ = 255;
  }
  return status_;
}

std::optional<int> ChildProcess::poll() { return status_ ? status_ : collect(WNOHANG); }

int ChildProcess::wait() {
  while (!status_) collect(0);
  return *status_;
}

void ChildProcess::send(int signal) {
  if (!status_) ::kill(pid_, signal);
}

}  // namespace gpusim
