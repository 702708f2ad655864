#include "host/linux/record_locks.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "host/linux/file_table.h"
#include "host/linux/path_policy.h"

namespace gpusim::host {
namespace {

using Range = RecordLocks::Range;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Range range_of(const struct flock& lock) {
  return {lock.l_start, lock.l_len == 0 ? kEnd : lock.l_start + lock.l_len - 1, lock.l_type};
}

// What was there gives way to the new range.
void replace(std::vector<Range>& ranges, const Range& with) {
  std::vector<Range> next;
  for (const Range& r : ranges) {
    if (r.last < with.first || r.first > with.last) {
      next.push_back(r);
      continue;
    }
    if (r.first < with.first) next.push_back({r.first, with.first - 1, r.type});
    if (r.last > with.last) next.push_back({with.last + 1, r.last, r.type});
  }
  if (with.type != F_UNLCK) next.push_back(with);
  std::sort(next.begin(), next.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  ranges = std::move(next);
}

}  // namespace

bool can_be_locked(const OpenFile& file, RecordLocks::FileId* id) {
  struct stat host;
  if (::fstat(file.host_fd(), &host) < 0) return false;
  if (id) *id = {host.st_dev, host.st_ino};
  return S_ISREG(host.st_mode) || S_ISDIR(host.st_mode);
}

RecordLocks::Locked* RecordLocks::open(const OpenFile& file, int* error) {
  FileId id;
  *error = 0;
  if (!can_be_locked(file, &id)) return nullptr;
  if (const auto known = files_.find(id); known != files_.end()) return &known->second;
  for (const int access : {O_RDWR, O_RDONLY, O_WRONLY})
    if (FileDescriptor fd(reopen(file.host_fd(), access | O_NONBLOCK)); fd)
      return &(files_[id] = {std::move(fd), {}});
  *error = errno;
  return nullptr;
}

int RecordLocks::set(const OpenFile& file, const struct flock& range) {
  int error;
  Locked* const locked = open(file, &error);
  if (!locked) return error;
  struct flock lock = range;
  lock.l_pid = 0;
  if (::fcntl(locked->file.get(), F_OFD_SETLK, &lock) < 0) return errno;
  replace(locked->ranges, range_of(range));
  if (FileId id; listener_ && can_be_locked(file, &id)) listener_(id, locked->ranges);
  return 0;
}

int RecordLocks::find_other(const OpenFile& file, struct flock* range) {
  int error;
  Locked* const locked = open(file, &error);
  if (!locked) {
    range->l_type = F_UNLCK;
    return error;
  }
  range->l_pid = 0;
  return ::fcntl(locked->file.get(), F_OFD_GETLK, range) < 0 ? errno : 0;
}

void RecordLocks::forget(const OpenFile& file) {
  FileId id;
  if (files_.empty() || !can_be_locked(file, &id)) return;
  if (files_.erase(id) != 0 && listener_) listener_(id, {});
}

void RecordLocks::set_listener(Listener listener) {
  listener_ = std::move(listener);
  for (const auto& [id, locked] : files_) listener_(id, locked.ranges);
}

bool RecordLocks::has(const FileId& file, const struct flock& lock) const {
  const auto locked = files_.find(file);
  if (locked == files_.end()) return false;
  const Range wanted = range_of(lock);
  int64_t reached = wanted.first;  // the host reports ranges that meet as one
  for (const Range& r : locked->second.ranges) {
    if (r.type != wanted.type || r.first > reached || r.last < reached) continue;
    if (r.last >= wanted.last) return true;
    reached = r.last + 1;
  }
  return false;
}

}  // namespace gpusim::host
