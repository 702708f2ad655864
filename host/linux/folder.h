// Folders of the host that the path of a guest leads through, held open.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>

#include "device_sim/base/file_descriptor.h"

namespace gpusim::host {

struct Folder;
using FolderRef = std::shared_ptr<const Folder>;

struct Folder {
  FileDescriptor fd;    // O_PATH
  FolderRef parent;     // that it was reached through, which is what `..` means; null: the host's /
  std::string name;     // in `parent`
  dev_t device = 0;
  ino_t inode = 0;
  bool is_readable = false, is_writable = false;  // the files in it
  bool is_known = false;  // a root or a parent of one: the folder itself may be looked at
  unsigned depth = 0;

  bool is_visible() const { return is_readable || is_known; }
  // Absolute, as it was walked: without symbolic links.
  std::string path() const {
    if (!parent) return "/";
    return (parent->parent ? parent->path() : std::string()) + "/" + name;
  }
};

}  // namespace gpusim::host
