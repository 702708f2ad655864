#include "host/python/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "device_sim/base/nearest_name.h"
#include "device_sim/core/backend_traits.h"
#include "host/python/run_options.h"
#include "translator/common/guest_isa.h"
#include "translator/common/isa_list.h"

namespace gpusim::python {
namespace {

using Clock = std::chrono::steady_clock;

host::RunOptions options_of(const Settings& settings,
                            const std::vector<host::PluginHost::OwnPlugin>& plugins) {
  host::RunOptions options = parse_run_options(settings.words, settings.guest_args);
  if (options.profile == "-")
    throw Error("--profile without files prints a table: name files, as in FILE.json");
  options.gathers_stats = settings.stats;
  options.per_core = options.per_core || settings.per_core;
  options.own_plugins = plugins;
  return options;
}

}  // namespace

Machine::Machine(const Settings& settings, const std::vector<host::PluginHost::OwnPlugin>& plugins)
    : simulation_(options_of(settings, plugins),
                  {.owns_process = false,
                   .interrupted = &stop_,
                   .line = [this](const std::string& text) { messages_.push_back(text); },
                   .standard_files = settings.files}) {
  simulation_.make_ready();
  const MachineConfig& config = simulation_.plan().config;
  has_core_tallies_ =
      config.per_core_tallies || traits_of(simulation_.backend().name()).always_counts_cores;
}

// --- running

Machine::Step Machine::step(uint64_t most) {
  if (!goes_on_) return {};
  const auto begin = Clock::now();
  simulation_.observers().limit_slices(most);
  const bool runs = simulation_.backend().runnable() != 0;
  const uint64_t length = runs ? simulation_.control().next_slice() : 0;
  try {
    goes_on_ = simulation_.control().step();
  } catch (...) {
    goes_on_ = false;  // in the middle of a slice: nothing can go on from there
    throw;
  }
  seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return {goes_on_, length};
}

Outcome Machine::finish() {
  if (goes_on_) {
    if (simulation_.kernel().alive() != 0) {
      stop();
      simulation_.control().step();
    }
    goes_on_ = false;
  }
  const host::RunResult result = simulation_.finish();
  simulation_.kernel().output().flush();
  const int output_error = simulation_.kernel().output().take_error();
  const host::RunSummary summary = simulation_.summarise(result, seconds_);
  simulation_.write_files(summary, result);
  if (result.ran_out_of_memory)
    messages_.push_back("gpusim: error: " + simulation_.why_out_of_memory());
  if (output_error != 0)
    messages_.push_back(
        fmt::format("gpusim: error: the guest's output is lost: {}", std::strerror(output_error)));
  return {.stats = host::stats_json(summary).dump(-1, ' ', false,
                                                  nlohmann::ordered_json::error_handler_t::replace),
          .exit_status = result.exit_status,
          .was_interrupted = result.was_interrupted,
          .was_deadlocked = result.was_deadlocked,
          .ran_out_of_memory = result.ran_out_of_memory};
}

// --- cores

uint32_t Machine::checked(uint32_t core) const {
  if (core >= cores()) throw Error(fmt::format("core {}: there are 0 to {}", core, cores() - 1));
  return core;
}

bool Machine::is_alive(uint32_t core) { return simulation_.kernel().is_alive(checked(core)); }

const char* Machine::state(uint32_t core) {
  host::Kernel& kernel = simulation_.kernel();
  if (!kernel.is_alive(checked(core))) return "ended";
  return kernel.is_parked(core) || kernel.waits().find(core) ? "waiting" : "running";
}

std::optional<uint64_t> Machine::pc(uint32_t core) {
  host::Kernel& kernel = simulation_.kernel();
  if (!kernel.is_alive(checked(core))) return std::nullopt;
  const host::Waiter* const waiter = kernel.waits().find(core);
  const uint32_t uop = waiter                   ? waiter->resume_uop
                       : kernel.is_parked(core) ? kernel.parked_at(core).value_or(kNoUop)
                                                : simulation_.backend().place(core);
  if (uop >= module().uops.size()) return std::nullopt;
  return place_pc(module(), uop);
}

std::optional<uint32_t> Machine::slot_of(const std::string& name) const {
  for (const SlotName& slot : module().slot_names)
    if (slot.name == name) return slot.slot;
  return std::nullopt;
}

// By the ISA, those that the program never writes among them: they are zero.
std::vector<std::pair<std::string, uint64_t>> Machine::registers(uint32_t core) {
  checked(core);
  const GuestIsa& isa = *find_isa(module().isa);
  std::vector<std::pair<std::string, uint64_t>> registers;
  for (int s = 0; s < isa.slot_count; ++s) {
    if (s == isa.roles.sink || isa.roles.is_temp(static_cast<Slot>(s))) continue;
    const std::string name = isa.slot_name(s);
    const std::optional<uint32_t> slot = slot_of(name);
    registers.emplace_back(name,
                           slot ? simulation_.backend().slot(core, static_cast<Slot>(*slot)) : 0);
  }
  return registers;
}

void Machine::set_register(uint32_t core, const std::string& name, uint64_t value) {
  checked(core);
  const GuestIsa& isa = *find_isa(module().isa);
  const std::optional<uint32_t> slot = slot_of(name);
  if (slot && isa.slot_name(isa.roles.zero) != name)
    return simulation_.backend().set_slot(core, static_cast<Slot>(*slot), isa.in_register(value));
  std::vector<std::string> names;
  for (int s = 0; s < isa.slot_count; ++s) names.push_back(isa.slot_name(s));
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(fmt::format("{} has no register {}{}", isa.name, name, did_you_mean(name, names)));
  if (value == 0) return;
  throw Error(
      fmt::format("register {} is always zero in this program: it has no code that would use "
                  "another value",
                  name));
}

// --- memory

std::string Machine::read(uint32_t core, uint64_t address, uint64_t size_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  std::string bytes;
  if (size_bytes > kMost || address + size_bytes < address)
    throw Error(fmt::format("cannot read {} bytes at {:#x}", size_bytes, address));
  if (size_bytes == 0) return bytes;
  // Before memory is taken for them.
  for (const uint64_t at : {address, address + size_bytes - 1})
    if (simulation_.backend().permissions(checked(core), at) == 0)
      throw Error(fmt::format("core {} has no memory at {:#x}", core, at));
  bytes.resize(size_bytes);
  if (!simulation_.backend().read_memory(core, address,
                                         {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
    throw Error(fmt::format("core {} has no memory in part of {} bytes at {:#x}", core, size_bytes,
                            address));
  return bytes;
}

void Machine::write(uint32_t core, uint64_t address, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const uint64_t last = address + bytes.size() - 1;
  if (last < address)
    throw Error(fmt::format("cannot write {} bytes at {:#x}", bytes.size(), address));
  for (const uint64_t at : {address, last})
    if (simulation_.backend().permissions(checked(core), at) == 0)
      throw Error(fmt::format("core {} has no memory at {:#x}", core, at));
  const CodeMap& code = module().code;
  const uint64_t code_end = code.text_base + (code.insn_class.size() << code.pc_shift);
  for (uint64_t at = std::max(address, code.text_base); at <= last && at < code_end; ++at)
    if (code.is_code(at))
      throw Error(
          fmt::format("cannot write at {:#x} ({}): that is code, which is translated already", at,
                      symbolize(at)));
  if (!simulation_.backend().write_memory(core, address, bytes))
    throw Error(fmt::format("core {} has no memory in part of {} bytes at {:#x}", core,
                            bytes.size(), address));
}

Machine::Place Machine::symbol(const std::string& name) const {
  const Symbol& symbol = require_symbol(module(), name, "symbol");
  return {symbol.address, symbol.size_bytes};
}

std::string Machine::symbolize(uint64_t address) const {
  return gpusim::symbolize(module(), address);
}

std::string Machine::disassemble(uint64_t address) const {
  return describe_instruction(module(), address);
}

// --- tallies

ClassCounts Machine::classes() {
  return simulation_.control().tallies().total(module(), simulation_.backend()).classes;
}

ClassCounts Machine::classes_of(uint32_t core) {
  if (!has_core_tallies())
    throw Error("instructions of each core were not counted: run with per_core=True or stats=True");
  return simulation_.control().tallies().of_core(simulation_.backend(), checked(core));
}

}  // namespace gpusim::python
