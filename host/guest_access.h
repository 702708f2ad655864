// Guest memory as a system call may touch it: every pointer is checked against page rights.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "device_sim/core/backend.h"

namespace gpusim::host {

class GuestAccess {
 public:
  GuestAccess(Backend& backend, uint32_t core) : backend_(&backend), core_(core) {}

  // Whether all pages of the range have these rights (SegmentFlags).
  bool allows(uint64_t address, uint64_t size_bytes, uint8_t rights) const;
  // How many bytes from `address` on have these rights, at most `size_bytes`.
  uint64_t allowed_prefix(uint64_t address, uint64_t size_bytes, uint8_t rights) const;

  // All or nothing; false is EFAULT.
  bool read(uint64_t address, std::span<uint8_t> out) const {
    return allows(address, out.size(), kRead) && backend_->read_memory(core_, address, out);
  }
  bool write(uint64_t address, std::span<const uint8_t> in) const {
    return allows(address, in.size(), kWrite) && backend_->write_memory(core_, address, in);
  }
  template <class T>
  bool load(uint64_t address, T* out) const {
    return read(address, {reinterpret_cast<uint8_t*>(out), sizeof(T)});
  }
  template <class T>
  bool store(uint64_t address, const T& value) const {
    return write(address, {reinterpret_cast<const uint8_t*>(&value), sizeof(T)});
  }
  // Up to a zero byte; nothing if that takes longer than `most` bytes or leaves readable memory.
  std::optional<std::string> string(uint64_t address, size_t most = 4096) const;

 private:
  Backend* backend_;
  uint32_t core_;
};

}  // namespace gpusim::host
