#include "host/linux/path_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "host/error.h"

namespace gpusim::host {
namespace fs = std::filesystem;
namespace {

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto [end, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

}  // namespace

PathPolicy::PathPolicy(std::vector<AllowedRoot> roots, const std::string& program)
    : roots_(std::move(roots)), program_(fs::absolute(program).lexically_normal()) {
  std::error_code error;
  const fs::path resolved = fs::canonical(program, error);
  if (!error) program_ = resolved;
  // Public data that C libraries read of their own accord.
  for (const char* data : {"/usr/share/zoneinfo", "/usr/share/locale", "/usr/lib/locale"})
    if (fs::is_directory(data, error)) roots_.push_back({data, false});
  for (AllowedRoot& root : roots_) {
    const fs::path folder = fs::canonical(root.folder, error);
    if (error || !fs::is_directory(folder))
      throw UserError(fmt::format("--root {}: not a folder", root.folder));
    root.folder = folder;
  }
}

PathPolicy PathPolicy::isolated(const std::string& program) {
  PathPolicy policy;
  policy.is_isolated_ = true;
  policy.program_ = "/" + program;
  return policy;
}

PathPolicy::Verdict PathPolicy::judge(const std::string& path, bool for_writing) const {
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"})
    if (path == device) return {0, path};
  if (is_isolated_) return {EACCES, {}};
  if (path == "/proc/self/exe") return {for_writing ? ETXTBSY : 0, program_};
  if (path == "/dev/tty") return {ENXIO, {}};  // there is no controlling terminal
  if (path == "/etc/localtime" && !for_writing) {
    std::error_code error;
    const fs::path zone = fs::canonical(path, error);
    return error ? Verdict{error.value(), {}} : Verdict{0, zone};
  }

  // The file itself need not exist yet, its folder must.
  std::error_code error;
  const fs::path given = fs::path(path).lexically_normal();
  fs::path resolved = fs::canonical(given, error);
  const int why = error.value();
  if (why == ENOENT && fs::is_symlink(given)) return {EACCES, {}};  // would create its target
  if (why == ENOENT) {
    resolved = fs::canonical(fs::path(path).parent_path(), error);
    if (!error) resolved /= fs::path(path).filename();
  }
  if (error) {
    // Outside the roots nothing is told, not even what exists.
    const bool inside = std::any_of(roots_.begin(), roots_.end(), [&](const AllowedRoot& root) {
      return lies_in(given, root.folder);
    });
    return {inside ? why : EACCES, {}};
  }
  return check_roots(resolved, for_writing);
}

PathPolicy::Verdict PathPolicy::judge_entry(const std::string& path, bool for_writing) const {
  if (is_isolated_) return judge(path, for_writing);
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return judge(path, for_writing);
  const fs::path given(path.substr(0, end + 1));
  const std::string name = given.filename();
  // A folder's other names cannot be links.
  if (name.empty() || name == "." || name == "..") return judge(path, for_writing);
  for (const char* own : {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/proc/self/exe"})
    if (path == own) return for_writing ? Verdict{EACCES, {}} : judge(path, false);
  std::error_code error;
  const fs::path folder = fs::canonical(given.parent_path(), error);
  if (error) return judge(path, for_writing);  // which says why not
  return check_roots(folder / name, for_writing);
}

PathPolicy::Verdict PathPolicy::check_roots(const std::string& path, bool for_writing) const {
  const fs::path resolved(path);
  // A root that contains them does not mean gpusim's own process.
  for (const char* own : {"/proc", "/sys", "/dev"})
    if (lies_in(resolved, own)) return {EACCES, {}};
  bool readable = false, writable = false;
  for (const AllowedRoot& root : roots_) {
    if (!lies_in(resolved, root.folder)) continue;
    readable = true;
    writable |= root.writable;
  }
  if (!readable || (for_writing && !writable)) return {EACCES, {}};
  return {0, resolved};
}

}  // namespace gpusim::host
