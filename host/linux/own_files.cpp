// Formats: proc(5), and Documentation/filesystems/proc.rst and
// Documentation/admin-guide/cputopology.rst of Linux.
#include "host/linux/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>

#include "device_sim/core/memory_view.h"
#include "host/linux/mapped_areas.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

// Everything below works on one process as the calling core sees it.
class Writer {
 public:
  Writer(Kernel& kernel, const Call& call) : kernel_(kernel), call_(call) {}

  std::string cpuinfo() const {
    const GuestIsa* isa = find_isa(kernel_.module().isa);
    if (!isa) return {};
    const std::string lines = isa->cpu_lines(find_cpu(*isa, kernel_.module().cpu).value_or(0));
    std::string text;
    for (uint32_t cpu = 0; cpu < cpus(); ++cpu)
      text += fmt::format("processor\t: {}\n{}\n", cpu, lines);
    return text;
  }

  std::string cpu_list() const {
    return cpus() == 1 ? "0\n" : fmt::format("0-{}\n", cpus() - 1);
  }

  std::string cpu_times() const {
    std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
    for (uint32_t cpu = 0; cpu < cpus(); ++cpu)
      text += fmt::format("cpu{} 0 0 0 0 0 0 0 0 0 0\n", cpu);
    return text + "intr 0\nctxt 0\nbtime 0\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
  }

  // As sysinfo says it.
  std::string meminfo() const {
    const uint64_t total = kernel_.memory_size_bytes() / 1024;
    std::string text;
    for (const auto& [name, kib] : {std::pair("MemTotal:", total), {"MemFree:", total / 2},
                                    {"MemAvailable:", total / 2}, {"Buffers:", uint64_t{0}},
                                    {"Cached:", uint64_t{0}}, {"SwapTotal:", uint64_t{0}},
                                    {"SwapFree:", uint64_t{0}}})
      text += fmt::format("{:<15} {:>8} kB\n", name, kib);
    return text;
  }

  std::string maps() const {
    std::string text;
    for (const MappedArea& a : areas()) {
      const std::string head = fmt::format(
          "{:08x}-{:08x} {}{}{}p 00000000 00:00 0 ", a.begin, a.end, a.rights & kRead ? 'r' : '-',
          a.rights & kWrite ? 'w' : '-', a.rights & kExecute ? 'x' : '-');
      text += a.name.empty() ? head + "\n" : fmt::format("{:<73}{}\n", head, a.name);
    }
    return text;
  }

  std::string status() const {
    const uint64_t kib = size_bytes() / 1024;
    return fmt::format(
        "Name:\t{}\nUmask:\t{:04o}\nState:\tR (running)\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\n"
        "TracerPid:\t0\nUid:\t{}\t{}\t{}\t{}\nGid:\t{}\t{}\t{}\t{}\nFDSize:\t64\nGroups:\t\n"
        "VmPeak:\t{:>8} kB\nVmSize:\t{:>8} kB\nVmLck:\t       0 kB\nVmHWM:\t{:>8} kB\n"
        "VmRSS:\t{:>8} kB\nThreads:\t{}\nCpus_allowed_list:\t{}",
        name(), call_.process->umask, pid(), pid(), pid() - 1, ::getuid(), ::geteuid(),
        ::geteuid(), ::geteuid(), ::getgid(), ::getegid(), ::getegid(), ::getegid(), kib, kib, kib,
        kib, threads(), cpu_list());
  }

  // The fields that are zero say what gpusim does not keep: times, faults, signals, limits.
  std::string stat() const {
    const auto [code, end_code] = code_range();
    const uint32_t first = kernel_.starts_alone() ? 0 : call_.core;
    std::string text = fmt::format("{} ({}) R {} {} {} 0 -1 0 0 0 0 0 0 0 0 0 20 0 {} 0 0 {} {} {} "
                                   "{} {} {}",
                                   pid(), name(), pid() - 1, pid(), pid(), threads(), size_bytes(),
                                   size_bytes() / kPageSize, ~uint64_t{0}, code, end_code,
                                   kernel_.plan().stack_top(first));
    for (int field = 29; field <= 52; ++field) text += field == 38 ? " 17" : " 0";
    return text + "\n";
  }

  std::string statm() const {
    const uint64_t pages = size_bytes() / kPageSize;
    const auto [code, end_code] = code_range();
    return fmt::format("{} {} 0 {} 0 {} 0\n", pages, pages,
                       (page_up(end_code) - page_down(code)) / kPageSize, pages);
  }

  std::string name() const {
    const std::string& own = kernel_.thread(call_.core).name;
    const std::string& program = kernel_.paths().program();
    return own.empty() ? program.substr(program.rfind('/') + 1).substr(0, 15) : own;
  }

 private:
  uint32_t cpus() const { return kernel_.cpus(); }
  int64_t pid() const { return call_.process->pid; }
  uint32_t threads() const { return kernel_.is_private() ? 1 : kernel_.alive(); }

  AddressRange code_range() const {
    AddressRange range{~uint64_t{0}, 0};
    for (const Segment& s : kernel_.module().segments)
      if (s.flags & kExecute) {
        range.begin = std::min(range.begin, s.address);
        range.end = std::max(range.end, s.address + s.size_bytes);
      }
    return range;
  }

  uint64_t size_bytes() const {
    uint64_t size = 0;
    for (const MappedArea& a : areas()) size += a.end - a.begin;
    return size;
  }

  std::vector<MappedArea> areas() const {
    // Threads that pthread_create makes have stacks of their own among the mappings.
    const uint32_t first = kernel_.is_private() || !kernel_.starts_alone() ? call_.core : 0;
    return mapped_areas(kernel_, *call_.process, call_.core, {first});
  }

  Kernel& kernel_;
  const Call& call_;
};

using Text = std::string (*)(const Writer&);
struct Entry {
  const char* path;
  Text text;
};
// All that there is of file systems: one, of which statfs(2) tells the sizes.
std::string mounts() { return "gpusim / gpusim rw 0 0\n"; }

constexpr Entry kTexts[] = {
    {"/proc/cpuinfo", [](const Writer& w) { return w.cpuinfo(); }},
    {"/proc/filesystems", [](const Writer&) { return std::string("\tgpusim\n"); }},
    {"/proc/loadavg", [](const Writer&) { return std::string("0.00 0.00 0.00 1/1 1000\n"); }},
    {"/proc/meminfo", [](const Writer& w) { return w.meminfo(); }},
    {"/proc/mounts", [](const Writer&) { return mounts(); }},
    {"/proc/self/comm", [](const Writer& w) { return w.name() + "\n"; }},
    {"/proc/self/maps", [](const Writer& w) { return w.maps(); }},
    {"/proc/self/mounts", [](const Writer&) { return mounts(); }},
    {"/proc/self/stat", [](const Writer& w) { return w.stat(); }},
    {"/proc/self/statm", [](const Writer& w) { return w.statm(); }},
    {"/proc/self/status", [](const Writer& w) { return w.status(); }},
    {"/proc/stat", [](const Writer& w) { return w.cpu_times(); }},
    {"/proc/sys/fs/pipe-max-size", [](const Writer&) { return std::string("1048576\n"); }},
    {"/proc/sys/kernel/osrelease", [](const Writer&) { return std::string("6.1.0\n"); }},
    {"/proc/sys/kernel/pid_max", [](const Writer&) { return std::string("4194304\n"); }},
    {"/proc/sys/vm/overcommit_memory", [](const Writer&) { return std::string("1\n"); }},
    {"/proc/uptime", [](const Writer&) { return std::string("0.00 0.00\n"); }},
    {"/proc/version", [](const Writer&) { return std::string("Linux version 6.1.0 (gpusim)\n"); }},
    {"/sys/devices/system/cpu/online", [](const Writer& w) { return w.cpu_list(); }},
    {"/sys/devices/system/cpu/possible", [](const Writer& w) { return w.cpu_list(); }},
    {"/sys/devices/system/cpu/present", [](const Writer& w) { return w.cpu_list(); }},
};

constexpr std::string_view kDescriptors = "/proc/self/fd";

// Names in one of the folders, and what they stand for (DT_REG and its kin).
std::map<std::string, uint8_t> entries(const Call& call, const std::string& folder) {
  std::map<std::string, uint8_t> names{{".", DT_DIR}, {"..", DT_DIR}};
  const auto add = [&](std::string_view path, uint8_t type) {
    if (!path.starts_with(folder + "/")) return;
    path.remove_prefix(folder.size() + 1);
    const size_t end = path.find('/');
    names.emplace(path.substr(0, end), end == path.npos ? type : uint8_t{DT_DIR});
  };
  for (const Entry& entry : kTexts) add(entry.path, DT_REG);
  add("/proc/self/exe", DT_LNK);
  add("/proc/self/fd", DT_DIR);
  if (folder == kDescriptors) {
    const std::vector<FileRef>& files = call.process->files.all();
    for (size_t fd = 0; fd < files.size(); ++fd)
      if (files[fd]) names.emplace(std::to_string(fd), DT_LNK);
    // The number that the listing itself gets.
    const auto free = std::ranges::find(files, nullptr);
    names.emplace(std::to_string(free - files.begin()), DT_LNK);
  }
  return names;
}

// Documentation: getdents(2), struct linux_dirent64.
std::string listing(const std::map<std::string, uint8_t>& names) {
  struct Head {
    uint64_t inode;
    int64_t next;
    uint16_t size_bytes;
    uint8_t type;
  };
  constexpr size_t kNameAt = 19, kAlign = 8;
  std::string text;
  for (const auto& [name, type] : names) {
    const size_t size_bytes = (kNameAt + name.size() + kAlign) / kAlign * kAlign;
    const Head head{1, static_cast<int64_t>(text.size() + size_bytes),
                    static_cast<uint16_t>(size_bytes), type};
    std::string record(size_bytes, '\0');
    std::memcpy(record.data(), &head, kNameAt);
    name.copy(record.data() + kNameAt, name.size());
    text += record;
  }
  return text;
}

}  // namespace

OwnFile own_file_in_proc(const std::string& path) {
  if (path == "/proc/self/exe") return OwnFile::kProgram;
  if (path == kDescriptors) return OwnFile::kFolder;
  for (const Entry& entry : kTexts) {
    const std::string_view known = entry.path;
    if (known == path) return OwnFile::kText;
    if (known.starts_with(path) && known[path.size()] == '/') return OwnFile::kFolder;
  }
  return OwnFile::kNone;
}

std::string own_text(Kernel& kernel, const Call& call, const std::string& path) {
  for (const Entry& entry : kTexts)
    if (entry.path == path) return entry.text(Writer(kernel, call));
  return listing(entries(call, path));
}

FileRef make_text_file(const std::string& path, const std::string& text) {
  const FileDescriptor made(::memfd_create("gpusim-text", MFD_CLOEXEC));
  if (!made) return nullptr;
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(made.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return nullptr;
    done += static_cast<size_t>(n);
  }
  const int fd = reopen(made.get(), O_RDONLY);
  if (fd < 0) return nullptr;
  const bool is_folder = own_file_in_proc(path) == OwnFile::kFolder;
  auto file = std::make_shared<OpenFile>(
      fd, /*owned=*/true, is_folder ? OpenFile::Kind::kFolder : OpenFile::Kind::kOther, path);
  file->is_text = true;
  return file;
}

static constexpr const char* kStandard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};

std::optional<int> number_in_path(std::string_view path) {
  for (int number = 0; number < 3; ++number)
    if (path == kStandard[number]) return number;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number >= 0 && std::to_string(number) == digits) return number;
  }
  return std::nullopt;
}

std::string descriptor_target(const OpenFile& file, int number) {
  struct stat host {};
  if (::fstat(file.host_fd(), &host) < 0) return {};
  if (S_ISFIFO(host.st_mode)) return fmt::format("pipe:[{}]", host.st_ino);
  if (S_ISSOCK(host.st_mode)) return fmt::format("socket:[{}]", host.st_ino);
  if (!file.path().empty()) return file.path();
  if (!file.is_owned() && number < 3) return kStandard[number];
  return "anon_inode:[file]";
}

}  // namespace gpusim::host
