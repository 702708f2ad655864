// Which host files a guest may open.
#pragma once
#include <string>
#include <vector>

#include "host/options.h"

namespace gpusim::host {

// Symbolic links and `..` are resolved before a path is judged. The guest has no system call that
// makes links, so what was judged is what is opened.
class PathPolicy {
 public:
  // `program`: what /proc/self/exe names. Throws UserError for a root that is no folder.
  PathPolicy(std::vector<AllowedRoot> roots, const std::string& program);
  // No file of the host but its null and random devices; `program` is a name that is never opened.
  static PathPolicy isolated(const std::string& program);

  struct Verdict {
    int error = 0;          // 0: open `host_path`
    std::string host_path;  // without symbolic links
  };
  // `path` is absolute.
  Verdict judge(const std::string& path, bool for_writing) const;

  // The same for what the last part of the path itself names, a link too: to look at it, to remove
  // or to rename it.
  Verdict judge_entry(const std::string& path, bool for_writing) const;

  const std::string& program() const { return program_; }

 private:
  PathPolicy() = default;
  Verdict check_roots(const std::string& path, bool for_writing) const;

  bool is_isolated_ = false;
  std::vector<AllowedRoot> roots_;  // canonical
  std::string program_;             // absolute
};

}  // namespace gpusim::host
