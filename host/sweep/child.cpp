#include "host/sweep/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "host/error.h"

namespace gpusim::sweep {
namespace {

constexpr size_t kMostErrors = 8192;  // bytes of standard error that are kept

[[noreturn]] void fail(const char* what) {
  throw host::UserError(fmt::format("cannot start a run: {}: {}", what, std::strerror(errno)));
}

}  // namespace

Child::Child(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) < 0) fail("pipe");
  if (::pipe2(err, O_CLOEXEC) < 0) {
    ::close(out[0]);
    ::close(out[1]);
    fail("pipe");
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only calls that are safe after fork. The terminal's Ctrl-C is for the study, which then kills
    // its runs; they die with it, however it ends.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    const int none = ::open("/dev/null", O_RDONLY);
    ::dup2(none, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(s, SIG_DFL);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  if (pid_ < 0) {
    close_pipes();
    fail("fork");
  }
  ::fcntl(out_, F_SETFL, O_NONBLOCK);
  ::fcntl(err_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  if (pid_ > 0) {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  close_pipes();
}

void Child::close_pipes() {
  for (int* fd : {&out_, &err_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

void Child::add_to(std::vector<pollfd>& list) const {
  for (const int fd : {out_, err_})
    if (fd >= 0) list.push_back({fd, POLLIN, 0});
}

void Child::read() {
  char piece[1 << 16];
  for (int* fd : {&out_, &err_}) {
    while (*fd >= 0) {
      const ssize_t n = ::read(*fd, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      if (n == 0) {
        ::close(*fd);
        *fd = -1;
        break;
      }
      const std::string_view bytes(piece, static_cast<size_t>(n));
      if (fd == &out_) {
        output_.add(bytes);
        result_.output_bytes += bytes.size();
      } else {
        result_.errors += bytes;
        if (result_.errors.size() > 2 * kMostErrors)
          result_.errors.erase(0, result_.errors.size() - kMostErrors);
      }
    }
  }
}

bool Child::has_ended() {
  if (pid_ < 0) return true;
  rusage usage{};
  int status = 0;
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return false;
  pid_ = -1;
  read();
  close_pipes();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  result_.by_signal = WIFSIGNALED(status);
  result_.status = result_.by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result_.wall_seconds = seconds_so_far();
  result_.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result_.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  result_.output_sha256 = output_.hex();
  return true;
}

void Child::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

double Child::seconds_so_far() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace gpusim::sweep
