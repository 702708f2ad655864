#include "host/python/callbacks.h"

#include <pybind11/numpy.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace gpusim::python {
namespace {

// As gpusim_instruction_t, without the pointer.
struct Instruction {
  uint64_t address;
  uint8_t size, class_index;
};

py::dict block_of(const gpusim_block_t& b) {
  std::vector<Instruction> instructions;
  std::string code;
  for (uint32_t i = 0; i < b.instruction_count; ++i) {
    const gpusim_instruction_t& insn = b.instructions[i];
    instructions.push_back({insn.address, insn.size, insn.class_index});
    if (insn.bytes) code.append(reinterpret_cast<const char*>(insn.bytes), insn.size);
  }
  py::dict block;
  block["number"] = b.number;
  block["address"] = b.address;
  block["end"] = b.end;
  block["ends_in_branch"] = b.ends_in_branch != 0;
  block["symbol"] = b.symbol;
  block["code"] = py::bytes(code);
  block["instructions"] = py::array_t<Instruction>(instructions.size(), instructions.data());
  return block;
}

}  // namespace

template <class F>
void Callbacks::call(F f) {
  const py::gil_scoped_acquire gil;
  if (error_) return;
  try {
    f();
  } catch (...) {
    error_ = std::current_exception();
    if (on_error) on_error();
  }
}

py::object Callbacks::function(const char* name) const {
  return functions_.contains(name) ? py::object(functions_[name]) : py::object();
}

void Callbacks::install(const gpusim_host_t& host) {
  const py::gil_scoped_acquire gil;
  static const bool has_types = [] {
    PYBIND11_NUMPY_DTYPE(gpusim_access_t, address, block, instruction, bytes, kind);
    PYBIND11_NUMPY_DTYPE(Instruction, address, size, class_index);
    return true;
  }();
  (void)has_types;
  translation_ = function("translation");
  blocks_ = function("blocks");
  accesses_ = function("accesses");
  synchronisation_ = function("synchronisation");
  if (translation_)
    host.on_translation(
        host.self,
        [](void* self, const gpusim_block_t* block) {
          Callbacks& c = *static_cast<Callbacks*>(self);
          c.call([&] { c.translation_(block_of(*block)); });
        },
        this);
  if (blocks_)
    host.on_blocks(
        host.self,
        [](void* self, uint32_t, uint32_t core, const uint32_t* blocks, size_t count) {
          Callbacks& c = *static_cast<Callbacks*>(self);
          c.call([&] { c.blocks_(core, py::array_t<uint32_t>(count, blocks)); });
        },
        this);
  if (accesses_)
    host.on_accesses(
        host.self,
        [](void* self, uint32_t, uint32_t core, const gpusim_access_t* accesses, size_t count) {
          Callbacks& c = *static_cast<Callbacks*>(self);
          c.call([&] { c.accesses_(core, py::array_t<gpusim_access_t>(count, accesses)); });
        },
        this);
  if (synchronisation_)
    host.on_synchronisation(
        host.self,
        [](void* self, uint32_t, uint32_t core, const gpusim_access_t* accesses, size_t count) {
          Callbacks& c = *static_cast<Callbacks*>(self);
          c.call([&] { c.synchronisation_(core, py::array_t<gpusim_access_t>(count, accesses)); });
        },
        this);
}

void Callbacks::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace gpusim::python
