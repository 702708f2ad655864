// The record locks (fcntl F_SETLK) of one guest process.
#pragma once
#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "device_sim/base/file_descriptor.h"

namespace gpusim::host {

class OpenFile;

// They belong to the guest's process, of which several may live in gpusim's: so each process opens
// a file that it locks once more, and the host's locks belong to that open file (F_OFD_SETLK). They
// exclude other guest processes and others of the host alike, and go with the first descriptor of
// the file that the process closes, as POSIX has it.
class RecordLocks {
 public:
  using FileId = std::pair<dev_t, ino_t>;
  struct Range {
    int64_t first, last;  // last: INT64_MAX for locks to the end of the file
    int16_t type;         // F_RDLCK, F_WRLCK
  };

  // Takes, changes or gives back: `range` counts from the start of the file. 0 or an error number,
  // EAGAIN if another owner has a lock there.
  int set(const OpenFile& file, const struct flock& range);
  // The first lock of another owner that `range` would meet, in its place; F_UNLCK: none.
  int find_other(const OpenFile& file, struct flock* range);
  // A descriptor of the file was closed.
  void forget(const OpenFile& file);
  // Whether this process has such a lock on all of that range.
  bool has(const FileId& file, const struct flock& lock) const;

  struct Locked {
    FileDescriptor file;
    std::vector<Range> ranges;
  };
  const std::map<FileId, Locked>& files() const { return files_; }

  // Hears what the process has on a file once that changed.
  using Listener = std::function<void(const FileId& file, const std::vector<Range>& ranges)>;
  void set_listener(Listener listener);

 private:
  Locked* open(const OpenFile& file, int* error);

  std::map<FileId, Locked> files_;
  Listener listener_;
};

// Locks only exist between processes, which cannot share pipes, sockets and their like.
bool can_be_locked(const OpenFile& file, RecordLocks::FileId* id = nullptr);

}  // namespace gpusim::host
