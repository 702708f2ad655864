#include "qemu_bridge/daemon/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "device_sim/base/error.h"
#include "device_sim/core/backend.h"
#include "device_sim/core/backend_traits.h"
#include "host/offload/lost_pages.h"
#include "host/offload/simulator.h"
#include "qemu_bridge/daemon/bell_transport.h"
#include "qemu_bridge/daemon/commands.h"
#include "qemu_bridge/daemon/line_helper.h"
#include "qemu_bridge/daemon/log.h"
#include "qemu_bridge/daemon/sandbox.h"
#include "qemu_bridge/daemon/serial_transport.h"
#include "qemu_bridge/daemon/serve.h"
#include "qemu_bridge/daemon/watcher.h"

namespace gpusim::daemon {
namespace {

constexpr int kHelloTimeoutSeconds = 10;

Log open_log(const DaemonOptions& options) {
  if (!options.log_path.empty()) return Log::to_file(options.log_path);
  return options.verbose ? Log::to_standard_error() : Log();
}

std::unique_ptr<Transport> open_transport(const DaemonOptions& options, Log& log) {
  if (options.qemu_fd)
    return std::make_unique<BellTransport>(*options.qemu_fd, kHelloTimeoutSeconds);
  std::vector<RamFile> ram;
  for (const std::string& text : options.ram) ram.push_back(parse_ram_file(text));
  return std::make_unique<SerialTransport>(options.listen, std::move(ram), options.qmp, log);
}

std::unique_ptr<offload::Simulator> open_service(const DaemonOptions& options,
                                                 const LineHelper& lines,
                                                 std::function<void()> wake) {
  return std::make_unique<offload::Simulator>(offload::SimulatorOptions{
      .backend = options.backend,
      .guest_memory = options.guest_memory,
      .compiled_regions = options.compiled_regions,
      .threads = options.threads,
      .most_contexts = options.most_contexts,
      .most_cores = options.most_cores,
      .time_limit = std::chrono::nanoseconds(static_cast<int64_t>(options.time_limit_s * 1e9)),
      .wake = std::move(wake),
      .find_lines = [&lines](auto elf, auto places) { return lines.find(elf, places); }});
}

// The one that serves first: what a guest shows as the device.
std::string backend_lines(const offload::Simulator& service) {
  std::string text = fmt::format("{}: {}\n", service.backend(), service.device());
  std::string why_not;
  for (const BackendInfo& b : all_backends())
    if (b.name != service.backend() && b.available(&why_not))
      text += fmt::format("{}: {}\n", b.name, b.device());
  return text;
}

// GPU drivers open files and talk to devices all the time (docs/full-system.md).
bool wants_sandbox(const DaemonOptions& options, const offload::Simulator& service, Log& log) {
  std::string why_not = "backend " + service.backend() + " cannot work in it";
  const bool suits = !traits_of(service.backend()).is_on_device;
  if (options.sandbox) {
    if (*options.sandbox && !suits)
      throw Error("--sandbox: " + why_not + "; use --no-sandbox or another backend");
    return *options.sandbox;
  }
  if (!options.qemu_fd) return false;
  if (suits && sandbox_available(&why_not)) return true;
  log.line("no sandbox: {}", why_not);
  return false;
}

// A process may have so many mappings; most of them are for guests' memory.
uint64_t most_pieces() {
  uint64_t most = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return std::max<uint64_t>(most, 4096) / 4 * 3;
}

void check(const DaemonOptions& options) {
  if (options.qemu_fd.has_value() == !options.listen.empty())
    throw Error("one of --qemu-fd and --listen is needed; with --listen also --ram");
  if (options.listen.empty() != options.ram.empty())
    throw Error("--listen and --ram belong together");
  if (!options.qmp.empty() && options.listen.empty())
    throw Error("--qmp is for --listen; a patched QEMU tells by itself when it stops");
}

}  // namespace

int run_daemon(const DaemonOptions& options) {
  check(options);
  drop_privileges();
  offload::survive_lost_pages();
  const LineHelper lines;
  Log log = open_log(options);
  const std::unique_ptr<Transport> transport = open_transport(options, log);
  Watcher watcher;  // before there are threads
  std::unique_ptr<offload::Simulator> service;
  ServeOptions serve_options;
  std::string what;
  try {
    service = open_service(options, lines, [&transport] { transport->wake(); });
    watcher.start(options.qemu_fd.value_or(-1), [&transport] { transport->wake(); });
    if (options.memory_limit_bytes) limit_memory(*options.memory_limit_bytes);
    serve_options.spin = std::chrono::nanoseconds(static_cast<int64_t>(options.spin_us * 1e3));
    serve_options.backends = backend_lines(*service);
    serve_options.most_pieces = most_pieces();
    const bool sandbox = wants_sandbox(options, *service, log);
    if (sandbox)
      enter_sandbox({.may_open_files = !options.qemu_fd,
                     .may_accept = !options.qemu_fd,
                     .may_connect = !options.qmp.empty()});
    what = fmt::format("{}: {}{}", service->backend(), service->device(),
                       sandbox ? ", in a sandbox" : "");
  } catch (const std::exception& error) {
    transport->ready(-ENODEV, error.what());
    throw;
  }
  transport->ready(0, what);
  log.line("{}", what);
  serve(
      *transport, *service, serve_options, [&watcher] { return watcher.stop(); }, log);
  log.line("the end");
  return 0;
}

}  // namespace gpusim::daemon
