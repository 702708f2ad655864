// Which host files a guest may reach.
#pragma once
#include <sys/stat.h>

#include <string>
#include <vector>

#include "host/linux/folder.h"
#include "host/options.h"

namespace gpusim::host {

// Files that are gpusim's to give, wherever the roots are.
enum class OwnFile : uint8_t {
  kNone,
  kDevice,      // /dev/null and its kin: the host's
  kNoTerminal,  // /dev/tty
  kProgram,     // /proc/self/exe, a symbolic link
  kZone,        // /etc/localtime
  kText,        // made by gpusim: /proc/cpuinfo
  kFolder,      // that holds such files: /proc
  kDescriptor,  // /proc/self/fd/0, /dev/stdin: what the guest has open under that number
};

// What a path names. Nobody can exchange it afterwards: use the descriptors, not the path.
struct Place {
  int error = 0;  // ENOENT with `folder`: nothing has this name, but something could be made there
  bool is_outside = false;  // `error` is EACCES because no root allows it
  FolderRef folder;         // that holds it; null for own files and for /
  std::string name;         // in `folder`; empty where the path ends with . or ..
  bool has_slash = false;   // Last::kEntry: one follows the name
  FolderRef self;           // if it is a folder
  FileDescriptor file;      // if it is something else; O_PATH
  struct stat status {};
  OwnFile own = OwnFile::kNone;
  std::string own_path;     // the name by which gpusim knows it

  int fd() const { return self ? self->fd.get() : file.get(); }
  bool is_link() const { return S_ISLNK(status.st_mode); }
  bool is_device() const { return S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode); }
  std::string path() const;  // absolute, without symbolic links

  // Whether the guest may learn that it is there and what it is like; read it; change it.
  bool may_look() const;
  bool may_read() const;
  bool may_change() const;
  // Whether names may be made, removed and renamed in `folder`, this one too.
  bool may_change_entry() const;
};

// A path is followed here, name by name, through descriptors: each step opens one name in the folder
// that the last step opened and never follows a link by itself. Where a name may lead, what it leads
// to and what is then used are the same descriptor, so that links that others exchange meanwhile
// change nothing. docs/adr/0023 has the reasons.
class PathPolicy {
 public:
  // `program`: what /proc/self/exe names. Absolute paths are looked for below `sysroot` first, if
  // it is not empty. Throws Error for a root that is no folder.
  PathPolicy(std::vector<AllowedRoot> roots, const std::string& program,
             const std::string& sysroot = {});
  // No file of the host but its null and random devices; `program` is a name that is never opened.
  static PathPolicy isolated(const std::string& program);

  // What becomes of a symbolic link that the path ends with.
  enum class Last : uint8_t {
    kFollow,
    kLook,   // it is meant itself, unless a slash follows
    kEntry,  // it is meant itself: to make, remove or rename the name
  };
  // `start`: where relative paths begin; null: they begin at /.
  Place find(const FolderRef& start, const std::string& path, Last last = Last::kFollow) const;

  const std::string& program() const { return program_; }
  // The program's file, O_PATH; negative if there is none.
  int program_fd() const { return program_file_.get(); }

 private:
  struct Step {
    std::string name;
    bool is_hosts = false;  // from a link outside of all roots
  };
  PathPolicy() = default;
  // `top`: where the path's / is, and that of links that lead out of it.
  Place walk(const FolderRef& start, const std::string& path, Last last,
             const FolderRef& top) const;
  Place find_isolated(const std::string& path) const;
  static void push(std::vector<Step>& steps, const std::string& path, bool is_hosts);
  Place find_in_proc(std::vector<Step>& steps, const std::string& first, Last last) const;
  Place find_own(const FolderRef& at, const std::string& name,
                 const std::vector<Step>& rest) const;
  Place own(OwnFile kind, const std::string& path, Last last = Last::kFollow) const;
  std::shared_ptr<Folder> enter(const FolderRef& at, const std::string& name, FileDescriptor fd,
                                const struct stat& status) const;
  std::shared_ptr<Folder> add_known(const FolderRef& at, const std::string& name);

  bool is_isolated_ = false;
  FolderRef host_root_, devices_;               // / and /dev
  FolderRef sysroot_;                           // null: none
  std::vector<std::shared_ptr<Folder>> known_;  // roots and their parents
  std::string program_;                         // absolute
  FileDescriptor program_file_;
};

// Opens once more what an O_PATH descriptor stands for; -1 and errno.
int reopen(int fd, int flags);
// In /proc and /sys nothing is the host's: own_files.cpp has the list. `path` has neither dots nor
// double slashes; kNone: nothing is there.
OwnFile own_file_in_proc(const std::string& path);
// A path to what an open descriptor stands for, for calls that take paths only.
std::string descriptor_path(int fd);
// What a symbolic link leads to, as it says it; empty if there is none.
std::string link_target(const std::string& path);

}  // namespace gpusim::host
