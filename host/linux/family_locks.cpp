// Which process of a run has a record lock: the host knows their files alone (RecordLocks).
#include <algorithm>
#include <limits>

#include "host/linux/family_table.h"

namespace gpusim::host {
namespace {

int64_t last_of(const struct flock& lock) {
  return lock.l_len == 0 ? std::numeric_limits<int64_t>::max() : lock.l_start + lock.l_len - 1;
}

}  // namespace

// The lock on waiters keeps these in order, too.
void Family::publish_locks(const RecordLocks::FileId& file,
                           const std::vector<RecordLocks::Range>& ranges) {
  const SharedFutexes locked = futexes();
  for (Table::Lock& l : table_->locks)
    if (l.process == entry_ && l.device == file.first && l.inode == file.second) l.is_used = false;
  auto next = ranges.begin();
  for (const bool reclaims : {false, true})
    for (Table::Lock& l : table_->locks) {
      if (next == ranges.end()) return;
      if (l.is_used && !(reclaims && !lives(l.process))) continue;
      l = {.is_used = true,
           .process = entry_,
           .type = next->type,
           .device = file.first,
           .inode = file.second,
           .first = next->first,
           .last = next->last};
      ++next;
    }
}

void Family::forget_locks() {
  const SharedFutexes locked = futexes();
  for (Table::Lock& l : table_->locks)
    if (l.process == entry_) l.is_used = false;
}

std::optional<int32_t> Family::holder_of(const RecordLocks::FileId& file,
                                         const struct flock& lock) {
  const SharedFutexes locked = futexes();
  for (const Table::Lock& l : table_->locks)
    if (l.is_used && l.process != entry_ && l.device == file.first && l.inode == file.second &&
        l.type == lock.l_type && l.first <= last_of(lock) && l.last >= lock.l_start &&
        lives(l.process))
      return table_->entries[l.process].pid.load();
  return std::nullopt;
}

}  // namespace gpusim::host
