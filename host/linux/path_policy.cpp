#include "host/linux/path_policy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "device_sim/base/error.h"

namespace gpusim::host {
namespace fs = std::filesystem;
namespace {

constexpr int kMostLinks = 40;         // as Linux
constexpr unsigned kMostDepth = 1000;  // each folder of a chain takes a descriptor
constexpr const char* kDevices[] = {"null", "zero", "random", "urandom"};

bool is_device_name(const std::string& name) {
  return std::find(std::begin(kDevices), std::end(kDevices), name) != std::end(kDevices);
}

FileDescriptor open_name(int folder, const std::string& name, struct stat& status) {
  FileDescriptor fd(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::fstat(fd.get(), &status) < 0) return {};
  return fd;
}

// Doors to gpusim's own process, wherever they are mounted.
bool shows_processes(int fd) {
  struct statfs host;
  return ::fstatfs(fd, &host) < 0 || host.f_type == PROC_SUPER_MAGIC || host.f_type == SYSFS_MAGIC;
}

// A root that contains them does not mean them.
bool is_reserved(const FolderRef& at, const std::string& name) {
  return !at->parent && (name == "proc" || name == "sys" || name == "dev");
}

Place failed(int error) {
  Place place;
  place.error = error;
  return place;
}
// Outside the roots nothing is told, not even what exists.
Place outside() {
  Place place = failed(EACCES);
  place.is_outside = true;
  return place;
}

}  // namespace

int reopen(int fd, int flags) {
  return ::open(descriptor_path(fd).c_str(), (flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC |
                                                 O_NOCTTY);
}
std::string descriptor_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }
std::string link_target(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

std::string Place::path() const {
  if (own != OwnFile::kNone) return own_path;
  if (self) return self->path();
  return folder->parent ? folder->path() + "/" + name : "/" + name;
}
bool Place::may_look() const {
  return own != OwnFile::kNone || (self ? self->is_visible() : folder->is_readable);
}
bool Place::may_read() const {
  if (own != OwnFile::kNone) return true;
  return self ? self->is_readable : folder->is_readable && !is_device();
}
bool Place::may_change() const {
  if (own != OwnFile::kNone) return false;
  return self ? self->is_writable : folder->is_writable && !is_device();
}
bool Place::may_change_entry() const {
  return own == OwnFile::kNone && folder && folder->is_writable && (!self || self->is_writable);
}

PathPolicy::PathPolicy(std::vector<AllowedRoot> roots, const std::string& program,
                       const std::string& sysroot)
    : program_(fs::absolute(program).lexically_normal()) {
  if (::access("/proc/self/fd", X_OK) < 0)
    throw Error("/proc is not mounted: gpusim opens the files of guests through /proc/self/fd");
  std::error_code error;
  if (const fs::path resolved = fs::canonical(program, error); !error) program_ = resolved;
  program_file_ = FileDescriptor(::open(program_.c_str(), O_PATH | O_CLOEXEC));

  const auto top = std::make_shared<Folder>();
  struct stat status {};
  top->fd = open_name(AT_FDCWD, "/", status);
  if (!top->fd) throw Error(fmt::format("/: {}", std::strerror(errno)));
  top->device = status.st_dev;
  top->inode = status.st_ino;
  top->is_known = true;
  host_root_ = top;
  known_.push_back(top);
  devices_ = add_known(host_root_, "dev");

  // Public data that C libraries read of their own accord.
  for (const char* data : {"/usr/share/zoneinfo", "/usr/share/locale", "/usr/lib/locale"})
    if (fs::is_directory(data, error)) roots.push_back({data, false});
  if (!sysroot.empty()) roots.push_back({sysroot, false});
  for (AllowedRoot& root : roots) {
    const fs::path folder = fs::canonical(root.folder, error);
    if (error || !fs::is_directory(folder, error))
      throw Error(fmt::format("--root {}: not a folder", root.folder));
    root.folder = folder;
  }
  // A root in another one has the rights of both: the outer one comes first.
  std::sort(roots.begin(), roots.end(),
            [](const AllowedRoot& a, const AllowedRoot& b) { return a.folder < b.folder; });
  for (const AllowedRoot& root : roots) {
    std::shared_ptr<Folder> at = known_.front();
    for (const fs::path& name : fs::path(root.folder).relative_path())
      if (at) at = add_known(at, name);
    if (!at) continue;  // in /proc or /sys, which no guest gets
    at->is_readable = true;
    at->is_writable |= root.writable;
  }
  if (!sysroot.empty())
    sysroot_ = walk(nullptr, fs::canonical(sysroot, error), Last::kFollow, host_root_).self;
}

PathPolicy PathPolicy::isolated(const std::string& program) {
  PathPolicy policy;
  policy.is_isolated_ = true;
  policy.program_ = "/" + program;
  return policy;
}

std::shared_ptr<Folder> PathPolicy::add_known(const FolderRef& at, const std::string& name) {
  struct stat status {};
  FileDescriptor fd = open_name(at->fd.get(), name, status);
  if (!fd || !S_ISDIR(status.st_mode)) return nullptr;
  std::shared_ptr<Folder> folder = enter(at, name, std::move(fd), status);
  if (!folder || folder->is_known) return folder;
  folder->is_known = true;
  known_.push_back(folder);
  return folder;
}

// The folder `name` of `at`; null if no guest may be in it.
std::shared_ptr<Folder> PathPolicy::enter(const FolderRef& at, const std::string& name,
                                          FileDescriptor fd, const struct stat& status) const {
  for (const std::shared_ptr<Folder>& k : known_)
    if (k->device == status.st_dev && k->inode == status.st_ino) return k;
  if (status.st_dev != at->device && shows_processes(fd.get())) return nullptr;
  auto folder = std::make_shared<Folder>();
  folder->fd = std::move(fd);
  folder->parent = at;
  folder->name = name;
  folder->device = status.st_dev;
  folder->inode = status.st_ino;
  folder->is_readable = at->is_readable && !is_reserved(at, name);
  folder->is_writable = at->is_writable && !is_reserved(at, name);
  folder->depth = at->depth + 1;
  return folder;
}

// The first name of the path comes off the end first. A slash at the end means the folder itself.
void PathPolicy::push(std::vector<Step>& steps, const std::string& path, bool is_hosts) {
  if (path.ends_with('/')) steps.push_back({".", is_hosts});
  for (size_t end = path.size(); end != 0;) {
    const size_t slash = path.rfind('/', end - 1);
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    if (begin != end) steps.push_back({path.substr(begin, end - begin), is_hosts});
    end = slash == std::string::npos ? 0 : slash;
  }
  if (path.starts_with('/')) steps.push_back({"/", is_hosts});
}

Place PathPolicy::own(OwnFile kind, const std::string& path, Last last) const {
  Place place;
  place.own = kind;
  place.own_path = path;
  place.status.st_nlink = 1;
  place.status.st_ino = 1;
  place.status.st_blksize = 4096;
  switch (kind) {
    case OwnFile::kNoTerminal:
      return failed(ENXIO);
    case OwnFile::kText:
      place.status.st_mode = S_IFREG | 0444;
      break;
    case OwnFile::kFolder:
      place.status.st_mode = S_IFDIR | 0555;
      break;
    case OwnFile::kProgram:
      place.status.st_mode = S_IFLNK | 0777;
      if (last != Last::kFollow) break;
      place.file = FileDescriptor(::fcntl(program_file_.get(), F_DUPFD_CLOEXEC, 0));
      if (!place.file || ::fstat(place.file.get(), &place.status) < 0) return failed(ENOENT);
      break;
    default:
      place.file = FileDescriptor(::open(path.c_str(), O_PATH | O_CLOEXEC));
      if (!place.file || ::fstat(place.file.get(), &place.status) < 0) return failed(errno);
  }
  return place;
}

// What the steps name in /proc or /sys, where nothing is the host's: names are all there is to it, and
// a name must stand for a folder there before the next one counts, `..` as well. kNone without an
// error: they lead back to /, and the steps that are left go on there.
Place PathPolicy::find_in_proc(std::vector<Step>& steps, const std::string& first, Last last) const {
  std::string path = "/" + first;
  while (true) {
    const OwnFile kind = own_file_in_proc(path);
    if (kind == OwnFile::kNone) return outside();
    if (steps.empty()) return own(kind, path, last);
    if (kind != OwnFile::kFolder) return failed(ENOTDIR);
    const std::string name = std::move(steps.back().name);
    steps.pop_back();
    if (name == "..")
      path.resize(path.rfind('/'));
    else if (name != ".")
      path += "/" + name;
    if (path.empty()) return {};
  }
}

// The own file at `step`, which is a name in `at`, or kNone.
Place PathPolicy::find_own(const FolderRef& at, const std::string& name,
                           const std::vector<Step>& rest) const {
  if (at == devices_ && (name == "tty" || is_device_name(name))) {
    if (!rest.empty()) return failed(ENOTDIR);
    return own(name == "tty" ? OwnFile::kNoTerminal : OwnFile::kDevice, "/dev/" + name);
  }
  if (at == host_root_ && name == "etc" && !rest.empty() && rest.back().name == "localtime")
    return rest.size() == 1 ? own(OwnFile::kZone, "/etc/localtime") : failed(ENOTDIR);
  return {};
}

Place PathPolicy::find_isolated(const std::string& path) const {
  const std::string normal = fs::path(path).lexically_normal();
  if (normal.starts_with("/dev/") && is_device_name(normal.substr(5)))
    return own(OwnFile::kDevice, normal);
  return outside();
}

Place PathPolicy::find(const FolderRef& start, const std::string& path, Last last) const {
  if (path.empty()) return failed(ENOENT);
  if (is_isolated_) return find_isolated(path);
  // What is not there is looked for where it is without a sysroot, and made there.
  if (sysroot_ && path.starts_with('/'))
    if (Place place = walk(sysroot_, path, last, sysroot_); place.error == 0) return place;
  Place place = walk(start, path, last, host_root_);
  // Where libraries and programs are looked for: those of this machine are none of the guest's.
  const auto begins = [&](const char* with) { return path.starts_with(with); };
  if (sysroot_ && place.is_outside &&
      (begins("/etc/ld.so.") || begins("/lib/") || begins("/lib64/") || begins("/usr/") ||
       begins("/bin/") || begins("/sbin/")))
    return failed(ENOENT);
  return place;
}

Place PathPolicy::walk(const FolderRef& start, const std::string& path, Last last,
                       const FolderRef& top) const {
  FolderRef at = start ? start : host_root_;
  std::vector<Step> steps;
  push(steps, path, /*is_hosts=*/false);
  Place place;
  if (last == Last::kEntry && path.ends_with('/') && steps.size() > 1 && steps[1].name != "/") {
    steps.erase(steps.begin());
    place.has_slash = true;
  }
  int links = 0;
  while (!steps.empty()) {
    const Step step = std::move(steps.back());
    steps.pop_back();
    place.name.clear();
    if (step.name == "/") {
      at = top;
      continue;
    }
    if (step.name == ".") continue;
    if (step.name == "..") {
      if (at == top) continue;
      // Else the answer would tell whether the folder exists.
      if (!at->is_visible() && !step.is_hosts) return outside();
      if (at->parent) at = at->parent;
      continue;
    }
    if (at == host_root_ && (step.name == "proc" || step.name == "sys")) {
      Place found = find_in_proc(steps, step.name, last);
      if (found.own == OwnFile::kNone && found.error == 0) continue;
      return found;
    }
    if (Place found = find_own(at, step.name, steps); found.own != OwnFile::kNone || found.error)
      return found;
    const bool is_last = steps.empty();
    struct stat status {};
    FileDescriptor fd = open_name(at->fd.get(), step.name, status);
    if (!fd) {
      const int error = errno;
      if (!at->is_readable) return outside();
      if (error != ENOENT || !is_last) return failed(error);
      place.error = error;
      place.folder = at;
      place.name = step.name;
      return place;
    }
    if (S_ISLNK(status.st_mode) && (!is_last || last == Last::kFollow)) {
      std::array<char, 4096> target;
      const ssize_t size = ::readlinkat(fd.get(), "", target.data(), target.size());
      if (++links > kMostLinks || size <= 0) return at->is_readable ? failed(ELOOP) : outside();
      push(steps, std::string(target.data(), static_cast<size_t>(size)), !at->is_readable);
      continue;
    }
    if (!S_ISDIR(status.st_mode)) {
      if (!at->is_readable) return outside();
      if (!is_last || place.has_slash) return failed(ENOTDIR);
      if (status.st_dev != at->device && shows_processes(fd.get())) return outside();
      place.folder = at;
      place.name = step.name;
      place.file = std::move(fd);
      place.status = status;
      return place;
    }
    if (at->depth >= kMostDepth) return failed(ENAMETOOLONG);
    FolderRef next = enter(at, step.name, std::move(fd), status);
    if (!next) return outside();
    // The name is removed or renamed where it was found, which need not be where a root lies.
    place.folder = at;
    place.name = step.name;
    at = next;
  }
  if (!at->is_visible()) return outside();
  if (place.name.empty()) place.folder = at->parent;
  place.self = at;
  if (::fstat(at->fd.get(), &place.status) < 0) return failed(errno);
  return place;
}

}  // namespace gpusim::host
