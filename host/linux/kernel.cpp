#include "host/linux/kernel.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

namespace gpusim::host {

Kernel::Kernel(Backend& backend, Config config)
    : backend_(backend),
      config_(std::move(config)),
      paths_(config_.roots, config_.program),
      cwd_(std::filesystem::current_path()) {
  for (int fd = 0; fd < 3; ++fd)
    standard_files_[fd] = std::make_shared<OpenFile>(fd, /*owned=*/false);
  processes_.resize(is_private() ? plan().config.cores : 1);
}

Process& Kernel::process_of(uint32_t core) {
  const uint32_t number = is_private() ? core : 0;
  std::unique_ptr<Process>& process = processes_[number];
  if (!process)
    process = std::make_unique<Process>(number, AddressSpace(plan().heap_start, plan().heap_limit),
                                        standard_files_, cwd_);
  return *process;
}

Reply Kernel::handle(uint32_t core, uint32_t resume_uop) {
  const AbiSlots& abi = module().abi;
  const auto read = [&](int slot) {
    return slot == kNoSlot ? uint64_t{0} : backend_.slot(core, static_cast<Slot>(slot));
  };
  Call call{.core = core,
            .resume_uop = resume_uop,
            .args = {},
            .process = &process_of(core),
            .memory = GuestAccess(backend_, core)};
  for (size_t i = 0; i < call.args.size(); ++i) call.args[i] = read(abi.syscall_args[i]);
  const uint64_t number = read(abi.syscall_number);
  if (const Handler handler = find_handler(number)) return handler(*this, call);
  const char* name = syscall_name(number);
  note_once(fmt::format("syscall {}", number),
            fmt::format("system call {} ({}) is not provided: it returns ENOSYS", number,
                        name ? name : "unknown"));
  return Reply::error(ENOSYS);
}

void Kernel::resume(uint32_t core, uint32_t resume_uop, int64_t result) {
  const int slot = module().abi.syscall_result;
  if (slot != kNoSlot)
    backend_.set_slot(core, static_cast<Slot>(slot), static_cast<uint64_t>(result));
  backend_.start(core, resume_uop);
}

void Kernel::expire(Clock::time_point now) {
  for (const Waiter& w : waits_.expire(now)) resume(w.core, w.resume_uop, w.timeout_result);
}

void Kernel::note_once(const std::string& key, const std::string& text) {
  if (noted_.insert(key).second && config_.note) config_.note(text);
}

}  // namespace gpusim::host
