#include "host/run/stop_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "device_sim/core/memory_view.h"
#include "host/exit_status.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

// `pc_of`: of the event's micro-op, if it has one.
template <class F>
StopRecord stop_at(const Module& module, const Event& event, F pc_of) {
  StopRecord record;
  record.core = event.core;
  if (event.uop < module.uops.size()) {
    record.pc = pc_of(module, event.uop);
    record.symbol = symbolize(module, record.pc);
    record.instruction = describe_instruction(module, record.pc);
  }
  return record;
}

bool in_guard_page(const MemoryPlan& plan, uint32_t core, uint64_t address) {
  return plan.stack_bottom(core) - address <= kPageSize && address < plan.stack_bottom(core);
}

}  // namespace

const char* fault_reason(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "no fault";
    case Fault::kUndefined:
      return "undefined or unknown instruction";
    case Fault::kBreakpoint:
      return "breakpoint instruction";
    case Fault::kLoadAccess:
      return "load from memory that is not mapped or not readable";
    case Fault::kStoreAccess:
      return "store to memory that is not mapped or not writable";
    case Fault::kAlignment:
      return "atomic access off its natural alignment";
    case Fault::kFetchAccess:
      return "jump to memory that holds no code";
    case Fault::kFetchAlignment:
      return "jump to a misaligned address";
    case Fault::kModifiedCode:
      return "this code was written by the program itself";
    case Fault::kBarrier:
      return "a barrier that no CTA has, or a count of threads that no barrier takes";
    case Fault::kDeadlock:
      return "waits for threads of its warp or CTA that wait for others";
  }
  return "unknown fault";
}

StopRecord describe_fault(const Module& module, const MemoryPlan& plan, const Event& event,
                          Fault fault) {
  StopRecord record = stop_at(module, event, uop_pc);
  const bool is_jump = event.status == CoreStatus::kJump;
  if (record.pc == 0 && is_jump) record.pc = event.address;
  record.address = event.address;
  const bool is_data = fault == Fault::kLoadAccess || fault == Fault::kStoreAccess;
  record.has_address =
      is_jump || is_data || fault == Fault::kAlignment || fault == Fault::kModifiedCode;
  record.reason = is_data && in_guard_page(plan, event.core, event.address)
                      ? fmt::format("fault: stack overflow (its size is {} KiB; see --stack-size)",
                                    plan.stack_size_bytes / 1024)
                      : fmt::format("fault: {}", fault_reason(fault));
  record.exit_status = 128 + fault_signal(fault);
  return record;
}

StopRecord describe_written_code(const Module& module, const MemoryPlan& plan, const Event& event,
                                 const std::string& why) {
  StopRecord record = describe_fault(module, plan, event, Fault::kModifiedCode);
  record.reason += why;
  return record;
}

StopRecord describe_limit(const Module& module, const Event& event, uint64_t limit) {
  StopRecord record = stop_at(module, event, place_pc);
  record.reason =
      fmt::format("stopped: reached --max-instructions {}, the limit of each core", limit);
  record.exit_status = kExitLimit;
  return record;
}

StopRecord describe_signal(const Module& module, const Event& event, int signal) {
  // The event's micro-op is where the core would go on: the call is the one before.
  StopRecord record = stop_at(module, event, place_pc);
  const char* name = sigabbrev_np(signal);
  record.reason = fmt::format("ended by its own signal {} (SIG{})", signal, name ? name : "?");
  record.instruction.clear();
  record.pc_is_return = true;
  record.exit_status = 128 + signal;
  return record;
}

}  // namespace gpusim::host
