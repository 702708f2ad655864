// The one list of guest ISAs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "translator/common/guest_isa.h"

namespace gpusim {

std::span<const GuestIsa* const> all_isas();
/// Null if there is none.
const GuestIsa* find_isa(const std::string& name);
const GuestIsa* find_isa_for_elf(uint16_t elf_machine, uint32_t register_bits);
/// Its number in isa.cpus; the default's for an empty name. None if the ISA lacks it.
std::optional<uint32_t> find_cpu(const GuestIsa& isa, const std::string& name);

}  // namespace gpusim
