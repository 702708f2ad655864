#include "energy/power/attach/log_reader.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "device_sim/base/error.h"

namespace gpusim::power::attach {
namespace {

Seconds seconds(uint64_t ns) { return Seconds(static_cast<double>(ns) * 1e-9); }

// The fields of a Record as they lie in the file.
struct Plain {
  uint32_t kind, name;
  uint64_t begin_ns, end_ns;
  uint32_t thread;
  int32_t result;
  union {
    struct {
      uint64_t stream, bytes;
      uint32_t blocks, threads, device, estimated;
    } on;
    char text[32];
  };
};
static_assert(sizeof(Plain) == sizeof(Record));

}  // namespace

std::string readable(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string out = text;
  std::free(text);
  return out;
}

ProcessLog read_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(fmt::format("{}: cannot be read", path));
  struct {
    char magic[8];
    uint32_t record_bytes, timing;
    uint64_t records, dropped, begin_ns;
    uint32_t pid, parent;
    char pci_bus[16];
  } header;
  static_assert(sizeof header == sizeof(Header));
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.record_bytes != sizeof(Record) || header.timing > 2)
    throw Error(fmt::format("{}: not a log of gpusim power attach", path));
  ProcessLog log;
  log.pid = header.pid;
  header.pci_bus[sizeof header.pci_bus - 1] = 0;
  log.pci_bus = header.pci_bus;
  log.timing = static_cast<Timing>(header.timing);
  log.dropped = header.dropped;
  const uint64_t written = header.records - std::min(header.records, header.dropped);
  std::map<uint32_t, std::string> texts;
  std::vector<Plain> records;
  for (uint64_t i = 0; i < written; ++i) {
    Plain r;
    if (!in.read(reinterpret_cast<char*>(&r), sizeof r)) break;
    if (r.kind == static_cast<uint32_t>(RecordKind::kNone)) {
      ++log.unfinished;
    } else if (r.kind == static_cast<uint32_t>(RecordKind::kText)) {
      const size_t left = static_cast<size_t>(std::clamp(r.result, 0, 1 << 16));
      texts[r.name].append(r.text, std::min(left, sizeof r.text));
    } else {
      records.push_back(r);
    }
  }
  for (const Plain& r : records) {
    const auto at = texts.find(r.name);
    const std::string name = at != texts.end() ? at->second : "(unnamed)";
    const Seconds begin = seconds(r.begin_ns), end = seconds(std::max(r.begin_ns, r.end_ns));
    switch (static_cast<RecordKind>(r.kind)) {
      case RecordKind::kCall:
        log.calls.push_back({name, begin, end, r.thread, r.result, r.on.blocks == 1});
        break;
      case RecordKind::kKernel:
      case RecordKind::kCopy:
      case RecordKind::kSet:
      case RecordKind::kGraph:
        log.operations.push_back({static_cast<RecordKind>(r.kind), name, begin, end, r.thread,
                                  r.on.device, r.on.stream, r.on.bytes, r.on.blocks, r.on.threads,
                                  r.on.estimated != 0});
        break;
      case RecordKind::kNote:
        log.notes.push_back(name);
        break;
      default:
        throw Error(fmt::format("{}: a record of kind {}: the file is damaged", path, r.kind));
    }
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  std::stable_sort(log.calls.begin(), log.calls.end(), earlier);
  std::stable_sort(log.operations.begin(), log.operations.end(), earlier);
  std::sort(log.notes.begin(), log.notes.end());
  log.notes.erase(std::unique(log.notes.begin(), log.notes.end()), log.notes.end());
  return log;
}

std::vector<ProcessLog> read_logs(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".log") paths.push_back(entry.path());
  if (error) throw Error(fmt::format("{}: {}", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  std::vector<ProcessLog> logs;
  for (const std::string& path : paths) logs.push_back(read_log(path));
  const auto begin = [](const ProcessLog& l) {
    return l.calls.empty() ? Seconds(1e300) : l.calls.front().begin;
  };
  std::stable_sort(logs.begin(), logs.end(),
                   [&](const auto& a, const auto& b) { return begin(a) < begin(b); });
  return logs;
}

}  // namespace gpusim::power::attach
