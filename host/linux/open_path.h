// Opens what a path of the guest names.
#pragma once
#include <sys/types.h>

#include "host/linux/file_table.h"
#include "host/linux/path_policy.h"

namespace gpusim::host {

struct Opened {
  int error = 0;
  bool is_outside = false;  // `error` is EACCES because no root allows it
  FileRef file;
  bool is_text = false;     // no file, but OwnFile::kText or kFolder, which `path` names
  bool is_pipe = false;     // a named pipe; ENXIO: it has no reader
  std::string path;
};
// `flags` and `mode` are those of open(2) on the host, `start` as for PathPolicy::find. Does not wait
// for the other end of a named pipe.
Opened open_path(const PathPolicy& paths, const FolderRef& start, const std::string& path, int flags,
                 mode_t mode);
// Whether this reading end of a pipe has, or had since it was opened, a writer.
bool has_met_writer(int fd);

}  // namespace gpusim::host
