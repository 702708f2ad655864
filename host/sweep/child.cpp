#include "host/sweep/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "device_sim/base/error.h"

namespace gpusim::sweep {
namespace {

constexpr size_t kMostErrors = 8192;  // bytes of standard error that are kept

}  // namespace

Child::Child(const std::vector<std::string>& words) {
  FileDescriptor ends[2];
  for (FileDescriptor* const side : {&out_, &err_}) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) < 0)
      throw Error(fmt::format("cannot start a run: pipe: {}", std::strerror(errno)));
    *side = FileDescriptor(pipe[0]);
    ends[side == &err_] = FileDescriptor(pipe[1]);
    ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  }
  // The terminal's Ctrl-C is for the study, which then kills its runs.
  process_.emplace(words, ChildSettings{.input = ChildSettings::kNoStream,
                                        .output = ends[0].get(),
                                        .error = ends[1].get(),
                                        .is_apart = true});
}

void Child::add_to(std::vector<pollfd>& list) const {
  for (const FileDescriptor* fd : {&out_, &err_})
    if (*fd) list.push_back({fd->get(), POLLIN, 0});
}

void Child::read() {
  char piece[1 << 16];
  for (FileDescriptor* fd : {&out_, &err_}) {
    while (*fd) {
      const ssize_t n = ::read(fd->get(), piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      if (n == 0) {
        *fd = FileDescriptor();
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
  if (has_ended_) return true;
  const std::optional<int> status = process_->poll();
  if (!status) return false;
  has_ended_ = true;
  read();
  out_ = FileDescriptor();
  err_ = FileDescriptor();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  const rusage& usage = process_->usage();
  result_.by_signal = process_->ended_by_signal().has_value();
  result_.status = *status;
  result_.wall_seconds = seconds_so_far();
  result_.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result_.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  result_.output_sha256 = output_.hex();
  return true;
}

void Child::kill() { process_->send(SIGKILL); }

double Child::seconds_so_far() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace gpusim::sweep
