#include "energy/power/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "energy/error.h"
#include "energy/power/source.h"

namespace gpusim::power {
namespace {

int status_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// This process's environment with these variables ("NAME=value") in it. It is made before fork():
// behind it nothing may be allocated, since another thread could have held the heap's lock.
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

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::vector<std::string>& variables) {
  // The pipe closes when exec works, and brings errno when it does not.
  int ends[2];
  if (command.empty()) throw energy::Error("there is no command to run");
  if (::pipe2(ends, O_CLOEXEC) < 0)
    throw energy::Error(fmt::format("{}: {}", command[0], std::strerror(errno)));
  std::vector<char*> args;
  for (const std::string& a : command) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const std::vector<char*> environment = environment_with(variables);
  pid_ = ::fork();
  if (pid_ < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw energy::Error(fmt::format("{}: {}", command[0], std::strerror(error)));
  }
  if (pid_ == 0) {
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) ::signal(s, SIG_DFL);
    ::execvpe(args[0], args.data(), environment.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t n = ::write(ends[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(ends[1]);
  int error = 0;
  ssize_t n;
  do {
    n = ::read(ends[0], &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  ::close(ends[0]);
  began_ = monotonic_now();
  if (n == static_cast<ssize_t>(sizeof error)) {
    int ignored;
    while (::waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    throw energy::Error(fmt::format("{}: {}", command[0], std::strerror(error)));
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || status_) return;
  ::kill(pid_, SIGKILL);
  wait();
}

std::optional<int> ChildProcess::poll() {
  if (status_) return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status_of(status);
  return status_;
}

int ChildProcess::wait() {
  while (!status_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, 0);
    if (got == pid_)
      status_ = status_of(status);
    else if (errno != EINTR)
      status_ = 255;
  }
  return *status_;
}

void ChildProcess::send(int signal) {
  if (!status_) ::kill(pid_, signal);
}

Seconds CommandWorkload::start() {
  child_.emplace(command_);
  ended_.reset();
  return child_->began();
}

bool CommandWorkload::is_running() {
  if (!child_ || ended_) return false;
  if (!child_->poll()) return true;
  ended_ = monotonic_now();
  return false;
}

Seconds CommandWorkload::finish() {
  const int status = child_->wait();
  if (!ended_) ended_ = monotonic_now();
  if (status != 0)
    throw energy::Error(fmt::format("{}: it ended with status {}", command_[0], status));
  return *ended_;
}

}  // namespace gpusim::power
