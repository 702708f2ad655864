#include "translator/common/isa_list.h"

#include "translator/a64/isa.h"
#include "translator/riscv/isa.h"

namespace gpusim {
namespace {

const GuestIsa* const kIsas[] = {&a64::kIsa, &riscv::kIsa, &riscv::kIsa32};

}  // namespace

std::span<const GuestIsa* const> all_isas() { return kIsas; }

const GuestIsa* find_isa(const std::string& name) {
  for (const GuestIsa* isa : kIsas)
    if (name == isa->name) return isa;
  return nullptr;
}

const GuestIsa* find_isa_for_elf(uint16_t elf_machine, uint32_t register_bits) {
  for (const GuestIsa* isa : kIsas)
    if (elf_machine == isa->elf_machine && register_bits == isa->register_bits) return isa;
  return nullptr;
}

std::optional<uint32_t> find_cpu(const GuestIsa& isa, const std::string& name) {
  if (name.empty()) return 0;
  for (size_t i = 0; i < isa.cpus.size(); ++i)
    if (name == isa.cpus[i].name) return static_cast<uint32_t>(i);
  return std::nullopt;
}

}  // namespace gpusim
