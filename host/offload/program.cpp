#include "host/offload/program.h"

#include <algorithm>

#include "device_sim/core/memory_view.h"

namespace gpusim::offload {
namespace {

constexpr size_t kMostIdleMachines = 4;
constexpr uint64_t kMostPrepared = 4096;  // instructions; a millisecond

}  // namespace

Program::Program(std::string its_name, DeviceMemory& memory, const Translator& opened,
                 bool live_data)
    : name(std::move(its_name)),
      is_live(live_data),
      translator(opened),
      guard(live_data ? LockGuard(translator.module()) : LockGuard()),
      memory_(memory),
      image_(translator.module(), live_data) {
  translator.set_traps(guard.addresses());
  for (const ProgramImage::Range& r : image_.live())
    memory_.allow_covering(r.address, r.size_bytes);
  constexpr uint64_t kMostBytes = kPageSize;
  const Symbol* const chip = find_symbol(translator.module(), "gpusim_chip");
  if (!chip || chip->size_bytes > kMostBytes || chip->address < memory_.lowest() ||
      chip->address >= memory_.size_bytes() - kMostBytes)
    return;
  chip_address_ = chip->address;
  chip_size_bytes_ = chip->size_bytes;
}

Translator Program::unguarded() const {
  Translator copy(translator);
  copy.remove_traps();
  return copy;
}

void Program::prepare(uint64_t function) {
  if (prepared_.insert(function).second) translator.translate_function(function, kMostPrepared);
}

std::vector<Program*>& Program::installed() {
  static std::vector<Program*> programs;
  return programs;
}

void Program::install() {
  if (is_installed_) return;
  const auto neighbours = installed();  // a copy: removing changes it
  for (Program* p : neighbours)
    if (p->shares_addresses(*this) && p->image_.overlaps(image_)) p->remove();
  image_.install(memory_);
  is_installed_ = true;
  installed().push_back(this);
}

void Program::remove() {
  if (!is_installed_) return;
  image_.remove(memory_);
  is_installed_ = false;
  std::erase(installed(), this);
}

KernelMachine& Program::take_machine(const KernelMachineOptions& wanted) {
  auto it = std::ranges::find_if(
      machines_, [&](const Entry& e) { return !e.is_taken && e.machine->fits(wanted); });
  if (it == machines_.end()) {
    machines_.push_front({std::make_unique<KernelMachine>(translator, &memory_, wanted), false});
    it = machines_.begin();
  }
  machines_.splice(machines_.begin(), machines_, it);
  it->is_taken = true;
  // One that was just made counts: kernels of ever other sizes must not gather machines.
  size_t idle = 0;
  std::erase_if(machines_,
                [&](const Entry& e) { return !e.is_taken && ++idle >= kMostIdleMachines; });
  return *it->machine;
}

void Program::drop_machine(const KernelMachine& machine) {
  std::erase_if(machines_, [&](const Entry& e) { return e.machine.get() == &machine; });
}

void Program::drop_idle_machines() {
  std::erase_if(machines_, [](const Entry& e) { return !e.is_taken; });
}

void Program::give_machine(const KernelMachine& machine) {
  std::ranges::find(machines_, &machine, [](const Entry& e) { return e.machine.get(); })->is_taken =
      false;
}

bool Program::has_chip() const {
  if (chip_size_bytes_ == 0) return false;
  for (const uint64_t address : {chip_address_, chip_address_ + chip_size_bytes_ - 1})
    if ((memory_.page_rights()[address >> kPageShift] & kWrite) == 0) return false;
  return true;
}

void Program::resume_kernel(ChipState& state) {
  if (present_ == &state || !has_chip()) return;
  if (present_) memory_.load(chip_address_, *present_);
  if (state.empty()) state.resize(chip_size_bytes_);  // as the program begins: zero
  memory_.store(chip_address_, state);
  present_ = &state;
}

void Program::forget_kernel(const ChipState& state) {
  if (present_ == &state) present_ = nullptr;
}

}  // namespace gpusim::offload
