#include "host/linux/kernel.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "device_sim/core/machine_state.h"
#include "device_sim/core/shared_memory.h"

namespace gpusim::host {

Kernel::Kernel(Backend& backend, Config config)
    : backend_(backend),
      config_(std::move(config)),
      abi_(linux_abi(module())),
      paths_(config_.is_isolated ? PathPolicy::isolated(config_.program)
                                 : PathPolicy(config_.roots, config_.program, config_.sysroot)),
      threads_(plan().config.cores, kFirstPid, config_.starts_alone),
      cwd_(config_.is_isolated ? "/" : std::filesystem::current_path().string()) {
  for (size_t fd = 0; fd < 3; ++fd)
    standard_files_[fd] =
        std::make_shared<OpenFile>(config_.standard_files[fd], /*owned=*/false);
  const uint32_t cores = plan().config.cores;
  processes_.resize(is_private() ? cores : 1);
  started_ = threads_.alive();
  if (config_.translator && config_.has_late_code && !is_private() && !config_.is_isolated)
    late_code_.emplace(*config_.translator, backend_);
  set_cpu_time({});
  next_tid_ = kFirstPid + cores;
}

Process& Kernel::process_of(uint32_t core) {
  const uint32_t number = is_private() ? core : 0;
  std::unique_ptr<Process>& process = processes_[number];
  if (!process)
    process = std::make_unique<Process>(
        number,
        AddressSpace(plan().heap_start - plan().code_room, plan().heap_limit, plan().heap_start),
        standard_files_, cwd_, Limits(plan().stack_size_bytes));
  if (process->pid == 0) process->pid = kFirstPid + plan().first_core + number;
  return *process;
}

FolderRef Kernel::folder_of(Process& process) {
  if (!process.folder) process.folder = paths_.find(nullptr, process.cwd).self;
  return process.folder;
}

SharedMappings& Kernel::shared_mappings() {
  if (!shared_mappings_) {
    // After configure(): backends have their storage from then on.
    auto* const state = dynamic_cast<CpuMachineState*>(&backend_);
    uint8_t* const storage =
        state && !is_private() && !config_.is_isolated ? state->linear_storage().data() : nullptr;
    shared_mappings_.emplace(storage, plan().config.linear_base, plan().config.linear_size,
                             [this](uint64_t page) { return backend_.permissions(0, page); },
                             [this] { tell_memory_is_shared(backend_); });
  }
  return *shared_mappings_;
}

Reply Kernel::handle(uint32_t core, uint32_t resume_uop) {
  const AbiSlots& abi = module().abi;
  const auto read = [&](int slot) {
    return slot == kNoSlot ? uint64_t{0} : this->slot(core, static_cast<Slot>(slot));
  };
  Call call{.core = core,
            .resume_uop = resume_uop,
            .args = {},
            .word_bytes = abi_.word_bytes,
            .process = &process_of(core),
            .memory = memory_of(core)};
  for (size_t i = 0; i < call.args.size(); ++i) call.args[i] = read(abi.syscall_args[i]);
  const uint64_t number = read(abi.syscall_number);
  const auto [name, handler] = find_call(abi_, number);
  if (name && config_.instead)
    if (const std::optional<Reply> reply = config_.instead(resume_uop, name)) return *reply;
  if (name && config_.on_call) config_.on_call(core, name);
  if (handler) {
    has_changed_ |= !is_retrying_ && !is_apart(handler);
    const Reply reply = handler(*this, call);
    // The call may write to pages that hold code, and only seem not to be writable.
    const bool is_refused = reply.kind == Reply::Kind::kResult && reply.value == -EFAULT;
    return is_refused && late_code_ && late_code_->open_all() ? handler(*this, call) : reply;
  }
  note_once(fmt::format("syscall {}", number),
            fmt::format("system call {} ({}) is not provided: it returns ENOSYS", number,
                        name ? name : "unknown"));
  return Reply::error(ENOSYS);
}

void Kernel::resume(uint32_t core, uint32_t resume_uop, int64_t result) {
  const int slot = module().abi.syscall_result;
  if (slot != kNoSlot) set_slot(core, static_cast<Slot>(slot), in_register(result));
  go_on(core, resume_uop);
}

Reply Kernel::park(const Waiter& waiter) {
  if (!publish(waiter)) return Reply::error(ENOMEM);
  threads_.set_parked(waiter.core, true);
  waits_.park(waiter);
  return {Reply::Kind::kParked, 0};
}

Reply Kernel::park_for_retry(const Call& call, const Retry& how) {
  threads_.set_parked(call.core, true);
  Retry& retry = retries_[call.core];
  retry = how;
  retry.from_outside |= family_ && family_->may_have_others();
  retry.resume_uop = call.resume_uop;
  return {Reply::Kind::kParked, 0};
}

void Kernel::expire(Clock::time_point now) {
  if (family_) hear_family();
  for (const Waiter& w : waits_.expire(now)) {
    resume(w.core, w.resume_uop, withdraw(w, w.timeout_result));
    if (config_.on_time_out) config_.on_time_out(w.core);
  }
  ring_timers(now);
  if (retries_.empty()) return;
  // What comes from outside comes soon enough.
  constexpr std::chrono::microseconds kApart{200};
  looks_outside_ = now - looked_outside_ >= kApart;
  if (looks_outside_) looked_outside_ = now;
  // One call that succeeds may be what another waits for.
  while (!retries_.empty() && retry_calls(now)) {
  }
}

bool Kernel::is_worth_a_try(const Retry& retry, uint32_t core, Clock::time_point now) const {
  if (retry.from_outside && looks_outside_) return true;
  const Thread* const thread = threads_.find(core);
  return thread && thread->retry_deadline && *thread->retry_deadline <= now;
}

bool Kernel::retry_calls(Clock::time_point now) {
  const bool all = std::exchange(has_changed_, false);
  bool progress = false;
  std::vector<std::pair<uint32_t, uint32_t>> calls;
  for (const auto& [core, retry] : retries_)
    if (all || is_worth_a_try(retry, core, now)) calls.emplace_back(core, retry.resume_uop);
  for (const auto& [core, uop] : calls) {
    if (!retries_.contains(core)) continue;
    // A signal that the call itself sends (SIGPIPE) does not interrupt it: it has a result.
    threads_.set_parked(core, false);
    const Thread* const before = threads_.find(core);
    const uint64_t moved = before ? before->retry_done : 0;
    is_retrying_ = true;
    const Reply reply = handle(core, uop);
    is_retrying_ = false;
    if (reply.kind != Reply::Kind::kResult) {  // still parked
      // Bytes that it moved so far may be what others wait for.
      const Thread* const after = threads_.find(core);
      if (after && after->retry_done != moved) has_changed_ = progress = true;
      continue;
    }
    has_changed_ = true;
    retries_.erase(core);
    resume(core, uop, reply.value);
    progress = true;
  }
  return progress;
}

std::optional<Clock::time_point> Kernel::next_deadline(Clock::time_point now) const {
  std::optional<Clock::time_point> next = waits_.next_deadline();
  if (family_ && family_->has_others()) next = now + std::chrono::milliseconds(1);
  const auto consider = [&](Clock::time_point t) {
    if (!next || t < *next) next = t;
  };
  for (const uint32_t core : timed_)
    if (const auto& process = processes_[is_private() ? core : 0])
      process->timers.each([&](const Timer& t, int32_t) {
        if (t.due && t.base == Timer::Base::kSteady) consider(Clock::time_point(*t.due));
      });
  for (const auto& [core, retry] : retries_)
    if (const Thread* const t = threads_.find(core);
        retry.from_outside || (t && t->retry_deadline))
      consider(now + std::chrono::milliseconds(1));
  return next;
}

std::optional<uint32_t> Kernel::parked_at(uint32_t core) const {
  if (const Waiter* const waiter = waits_.find(core)) return waiter->resume_uop;
  if (const auto retry = retries_.find(core); retry != retries_.end())
    return retry->second.resume_uop;
  return std::nullopt;
}

void Kernel::note_once(const std::string& key, const std::string& text) {
  if (noted_.insert(key).second && config_.note) config_.note(text);
}

}  // namespace gpusim::host
