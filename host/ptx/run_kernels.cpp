#include "host/ptx/run_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/nearest_name.h"
#include "host/output_file.h"
#include "host/ptx/memory.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {
namespace {

constexpr int kFindingsStatus = 66;  // of a run that would have ended with 0
constexpr uint64_t kMostBufferBytes = uint64_t{1} << 36;

// Memory that an argument is the address of.
struct Buffer {
  Pages pages;
  uint64_t size_bytes = 0;
  std::optional<host::OutputFile> written_to;
};

[[noreturn]] void bad(const std::string& text, const std::string& why) {
  throw Error(fmt::format("--arg {}: {}", text, why));
}

uint64_t size_of(const std::string& text, std::string_view size) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), value);
  const std::string_view unit(stop, static_cast<size_t>(size.data() + size.size() - stop));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc{} || shift < 0 || value == 0 || value > kMostBufferBytes >> shift)
    bad(text, "expected a size such as buffer:4096, buffer:64K or buffer:16M, up to 64G");
  return value << shift;
}

class Arguments {
 public:
  explicit Arguments(Engine& engine) : engine_(engine) {}
  ~Arguments() {
    for (const Buffer& b : buffers_) engine_.remove_memory(b.pages.data());
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // The bytes of the parameters.
  std::vector<std::byte> marshal(const KernelInfo& kernel, const std::vector<std::string>& texts) {
    if (texts.size() != kernel.params.size())
      throw Error(fmt::format("kernel '{}' has {} parameters, and there are {} --arg", kernel.name,
                              kernel.params.size(), texts.size()));
    std::vector<std::byte> bytes(kernel.param_bytes);
    for (size_t k = 0; k < texts.size(); ++k) {
      const ParamInfo& p = kernel.params[k];
      put(texts[k], p, std::span(bytes).subspan(p.offset_bytes, p.size_bytes));
    }
    return bytes;
  }

  void write_files() const {
    for (const Buffer& b : buffers_)
      if (b.written_to)
        b.written_to->write({reinterpret_cast<const char*>(b.pages.data()), b.size_bytes});
  }

 private:
  void put(const std::string& text, const ParamInfo& p, std::span<std::byte> out) {
    if (text.starts_with("bytes:")) return put_bytes(text, out);
    uint64_t value = 0;
    if (text.starts_with("buffer:") || text.starts_with("file:")) {
      if (p.size_bytes != 8)
        bad(text, fmt::format("this parameter has {} bytes, an address 8", p.size_bytes));
      value = buffer(text);
    } else {
      value = number(text, p);
    }
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(value >> 8 * i);
  }

  static uint64_t number(const std::string& text, const ParamInfo& p) {
    if (p.size_bytes > 8)
      bad(text, fmt::format("this parameter has {} bytes: bytes:HEX gives them", p.size_bytes));
    const bool has_point = text.find('.') != std::string::npos;
    const char* end = text.data() + text.size();
    if (has_point || p.is_float) {
      double value = 0;
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      if (error != std::errc{} || stop != end) bad(text, "expected a number");
      if (p.size_bytes == 4) return std::bit_cast<uint32_t>(static_cast<float>(value));
      if (p.size_bytes == 8) return std::bit_cast<uint64_t>(value);
      bad(text, fmt::format("a float for a parameter of {} bytes", p.size_bytes));
    }
    const bool is_negative = text.starts_with('-');
    const bool is_hex = text.find("0x") == (is_negative ? 1u : 0u);
    uint64_t value = 0;
    const char* const begin = text.data() + (is_negative ? 1 : 0) + (is_hex ? 2 : 0);
    const auto [stop, error] = std::from_chars(begin, end, value, is_hex ? 16 : 10);
    if (error != std::errc{} || stop != end)
      bad(text, "expected an integer, a float with a point, buffer:SIZE, file:PATH or bytes:HEX");
    const uint64_t limit = p.size_bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * p.size_bytes) - 1;
    if (value > (is_negative ? limit / 2 + 1 : limit))
      bad(text, fmt::format("it does not fit the parameter's {} bytes", p.size_bytes));
    return is_negative ? 0 - value : value;
  }

  static void put_bytes(const std::string& text, std::span<std::byte> out) {
    const std::string_view digits = std::string_view(text).substr(6);
    if (digits.size() != 2 * out.size())
      bad(text, fmt::format("this parameter has {} bytes, two digits each", out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      uint8_t value = 0;
      const char* const at = digits.data() + 2 * i;
      const auto [stop, error] = std::from_chars(at, at + 2, value, 16);
      if (error != std::errc{} || stop != at + 2) bad(text, "expected hexadecimal digits");
      out[i] = static_cast<std::byte>(value);
    }
  }

  // buffer:SIZE or file:PATH, each with >PATH behind it to be written after the run.
  uint64_t buffer(const std::string& text) {
    const size_t arrow = text.find('>');
    const bool is_file = text.starts_with("file:");
    const std::string what = text.substr(is_file ? 5 : 7, arrow - (is_file ? 5 : 7));
    Buffer b;
    if (arrow != std::string::npos) b.written_to.emplace("--arg", text.substr(arrow + 1));
    if (is_file) {
      const std::vector<uint8_t> contents = read_file(what, kMostBufferBytes);
      b.size_bytes = contents.size();
      b.pages = Pages(b.size_bytes);
      if (!contents.empty()) std::memcpy(b.pages.data(), contents.data(), contents.size());
    } else {
      b.size_bytes = size_of(text, what);
      b.pages = Pages(b.size_bytes);
    }
    engine_.add_memory(b.pages.data(), b.size_bytes,
                       fmt::format("argument {}", text.substr(0, arrow)));
    buffers_.push_back(std::move(b));
    return buffers_.back().pages.address();
  }

  Engine& engine_;
  std::vector<Buffer> buffers_;
};

const Kernel& kernel_of(Engine& engine, LoadedModule& module, const KernelRunOptions& o) {
  const std::vector<std::string> names = engine.kernel_names(module);
  if (names.empty()) throw Error(fmt::format("{}: no kernel (.entry) in it", o.path));
  if (o.entry.empty() && names.size() > 1)
    throw Error(
        fmt::format("{}: --entry says which of its kernels: {}", o.path, fmt::join(names, ", ")));
  const std::string name = o.entry.empty() ? names.front() : o.entry;
  if (const Kernel* k = engine.find_kernel(module, name)) return *k;
  throw Error(
      fmt::format("{}: no kernel '{}'; there are: {}", o.path, name, fmt::join(names, ", ")));
}

// Of "sm_90a": 90.
uint32_t capability_of(const std::string& target) {
  uint32_t number = 0;
  const size_t at = target.find_first_of("0123456789");
  if (at != std::string::npos)
    std::from_chars(target.data() + at, target.data() + target.size(), number);
  return number;
}

// Kernels that the kernel launched, by name.
nlohmann::ordered_json launched_json(const LaunchResult& result) {
  struct Sum {
    uint64_t launches = 0, threads = 0, instructions = 0;
    std::map<std::string, uint64_t> opcodes;
  };
  std::map<std::string, Sum> sums;
  for (const DeviceLaunch& d : result.device_launches) {
    Sum& sum = sums[d.kernel];
    ++sum.launches;
    sum.threads += d.result->threads;
    sum.instructions += d.result->thread_instructions;
    for (const OpcodeCount& o : d.result->opcodes) sum.opcodes[std::string(o.opcode)] += o.count;
  }
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, sum] : sums)
    list.push_back({{"name", name},
                    {"launches", sum.launches},
                    {"threads", sum.threads},
                    {"instructions", sum.instructions},
                    {"opcodes", sum.opcodes}});
  return list;
}

// Of the kernel and all that followed.
LaunchResult with_launched(const LaunchResult& result) {
  LaunchResult all = result;
  for (const DeviceLaunch& d : result.device_launches) {
    all.threads += d.result->threads;
    all.thread_instructions += d.result->thread_instructions;
    for (size_t c = 0; c < all.classes.size(); ++c) all.classes[c] += d.result->classes[c];
    all.findings.insert(all.findings.end(), d.result->findings.begin(), d.result->findings.end());
  }
  return all;
}

nlohmann::ordered_json stats_json(const KernelInfo& kernel, const LaunchResult& result,
                                  const std::string& backend, double seconds, int status,
                                  bool is_checked) {
  using Json = nlohmann::ordered_json;
  Json classes = Json::object(), opcodes = Json::object();
  const LaunchResult all = with_launched(result);
  for (int c = 0; c < kInsnClassCount; ++c)
    classes[kInsnClassNames[c]] = all.classes[static_cast<size_t>(c)];
  for (const OpcodeCount& o : result.opcodes) opcodes[std::string(o.opcode)] = o.count;
  Json faults = Json::array();
  if (result.fault) {
    const Fault& f = *result.fault;
    faults.push_back({{"kernel", f.kernel},
                      {"block", {f.block.x, f.block.y, f.block.z}},
                      {"thread", {f.thread.x, f.thread.y, f.thread.z}},
                      {"line", f.line},
                      {"reason", f.text}});
  }
  Json root = {
      {"isa", "ptx"},
      {"backend", backend},
      {"cores", all.threads},
      {"guest_instructions", all.thread_instructions},
      {"classes", std::move(classes)},
      {"seconds", seconds},
      {"mips", seconds > 0 ? static_cast<double>(all.thread_instructions) / seconds / 1e6 : 0},
      {"exit_status", status},
      {"faults", std::move(faults)},
      {"kernels", Json::array({{{"name", kernel.name},
                                {"launches", 1},
                                {"threads", result.threads},
                                {"instructions", result.thread_instructions},
                                {"opcodes", std::move(opcodes)}}})}};
  if (result.devices != 0) root["kernels"][0]["gpus"] = result.devices;
  if (result.why_one_device) root["kernels"][0]["why_one_gpu"] = result.why_one_device;
  for (auto& launched : launched_json(result)) root["kernels"].push_back(std::move(launched));
  if (result.profile) root["kernels"][0]["profile"] = profile_json(*result.profile);
  if (is_checked) {
    root["findings"] = Json::array();
    for (const Finding& f : all.findings) root["findings"].push_back(finding_json(f));
  }
  return root;
}

}  // namespace

bool is_ptx_file(const std::string& path) {
  if (path.ends_with(".ptx")) return true;
  std::ifstream file(path, std::ios::binary);
  std::string head(512, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (head.starts_with("\x7f")) return false;
  return head.find(".version ") != std::string::npos && head.find('\0') == std::string::npos;
}

Dim3 parse_dimensions(const std::string& option, const std::string& text) {
  uint32_t n[3] = {1, 1, 1};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int k = 0; k < 3; ++k) {
    const auto [stop, error] = std::from_chars(at, end, n[k]);
    at = stop;
    if (error != std::errc{} || n[k] == 0) break;
    if (at == end) return {n[0], n[1], n[2]};
    if (*at++ != ',') break;
  }
  throw Error(fmt::format("{} {}: expected X, X,Y or X,Y,Z, each at least 1", option, text));
}

int run_kernels(const KernelRunOptions& options) {
  std::optional<host::OutputFile> stats;
  if (!options.stats_path.empty()) stats.emplace("--stats", options.stats_path);
  const std::string text = read_text(options.path);
  std::optional<host::OutputFile> profile_file;
  if (!options.profile.empty() && options.profile != "-")
    profile_file.emplace("--profile", options.profile);
  EngineOptions engine_options = options.engine;
  engine_options.has_profile = !options.profile.empty() || options.engine.caches.has_value();
  Unit unit = parse(text, options.path);
  engine_options.compute_capability = capability_of(unit.target);
  Engine engine(engine_options);
  LoadedModule& module = engine.load(std::move(unit));
  const Kernel& kernel = kernel_of(engine, module, options);
  Arguments arguments(engine);
  const std::vector<std::byte> params = arguments.marshal(info(kernel), options.arguments);
  const auto begin = std::chrono::steady_clock::now();
  const LaunchResult result = engine.launch({.kernel = &kernel,
                                             .grid = options.grid,
                                             .block = options.block,
                                             .dynamic_shared_bytes = options.dynamic_shared_bytes,
                                             .params = params,
                                             .cluster = options.cluster,
                                             .stack_bytes = options.stack_bytes});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  arguments.write_files();
  constexpr int kSegmentationFault = 139;
  const LaunchResult all = with_launched(result);
  for (const Finding& f : all.findings)
    fmt::print(stderr, "gpusim: {}\n    seen {} times\n", f.text, f.count);
  const int status = result.fault ? kSegmentationFault : all.findings.empty() ? 0 : kFindingsStatus;
  if (result.fault) {
    const Fault& fault = *result.fault;
    const bool is_told = std::any_of(all.findings.begin(), all.findings.end(),
                                     [&](const Finding& f) { return explains(f, fault); });
    fmt::print(stderr, "gpusim: {}\n", is_told ? brief_text(fault) : fault.text);
  }
  if (!options.quiet && result.why_one_device)
    fmt::print(stderr, "{} had one GPU: {}\n", info(kernel).name, result.why_one_device);
  if (!options.quiet)
    fmt::print(stderr, "{}: {} threads, {} instructions, {:.3f} s, {:.0f} MIPS\n",
               info(kernel).name, all.threads, all.thread_instructions, seconds,
               seconds > 0 ? static_cast<double>(all.thread_instructions) / seconds / 1e6 : 0);
  if (result.profile && options.profile.empty())
    ;  // for the statistics
  else if (result.profile && profile_file)
    profile_file->write(profile_json(*result.profile).dump(1) + "\n");
  else if (result.profile)
    fmt::print(stderr, "{}", profile_text(*result.profile, info(kernel).name));
  if (stats)
    stats->write(stats_json(info(kernel), result, engine.backend(), seconds, status,
                            options.engine.checks.any())
                     .dump(2) +
                 "\n");
  return status;
}

}  // namespace gpusim::ptx
