// Files of dynamically linked programs, and what is called how in the shared objects that they map.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim {

struct MappedObject {
  SharedObject object;
  std::vector<Symbol> symbols;  // by address, as mapped
};

/// Of the file of this descriptor, whose bytes from `offset` on are mapped at `address`, as code;
/// nothing if it is no shared object, or that is none of its segments. `path`: SharedObject::path.
std::optional<MappedObject> read_shared_object(int file, const std::string& path, uint64_t address,
                                               uint64_t offset);

/// Whether the file is an ELF program that names an interpreter. False if it cannot be read.
bool names_interpreter(const std::string& path);

}  // namespace gpusim
