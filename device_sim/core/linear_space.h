// Memory of a caller (MachineConfig::linear_storage) as the linear zone of machines on a device
// that has memory of its own. The caller says which pages come and go; several machines, one after
// the other in slices, work on them. ADR 0039 says why and how.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusim {

class LinearSpace {
 public:
  enum class Way : uint8_t {
    kRegistered,  // the driver pinned the pages: the device reaches them where they are
    kPageable,    // the device reaches all memory of the process
    kCopied,      // the device has copies while kernels run
  };
  struct Moved {
    uint64_t to_device = 0, from_device = 0;  // bytes
  };
  virtual ~LinearSpace() = default;

  // Call in each thread before its other functions, or its machines', if another space's or another
  // thread's were called last.
  virtual void enter() = 0;
  virtual Way way() const = 0;
  virtual Moved moved() const = 0;
  // Whether an atomic operation on it is one for the host and other devices, too.
  virtual bool has_shared_atomics() const = 0;

  // Whole pages that are at their places now, with SegmentFlags. `is_constant`: nobody changes what
  // they hold. Throws std::runtime_error, and has done nothing, if the device cannot reach them.
  virtual void add(uint64_t address, uint64_t size_bytes, uint8_t rights, bool is_constant) = 0;
  // Pages that are about to leave; ranges without pages may be among them. No slice runs
  // afterwards.
  virtual void remove(uint64_t address, uint64_t size_bytes) = 0;

  // Between these, with copies, cores see and change the copies: what the caller had at the last
  // begin_kernel(), and what kernels changed. Pages that they changed are the caller's again after
  // the next end_kernel().
  virtual void begin_kernel() = 0;
  virtual void end_kernel() = 0;
  // What cores see now. Not while a slice runs.
  virtual void read(uint64_t address, std::span<uint8_t> out) = 0;
  virtual void write(uint64_t address, std::span<const uint8_t> in) = 0;

  // Around reset_device(): lets go of all that is on the device, and begins anew with the same
  // pages. What kernels changed in copies is lost.
  virtual void release_device() = 0;
  virtual void restore() = 0;
};

// A backend that works on a caller's memory only by way of one. Call use() before configure(); the
// space must outlive the machine.
class TakesLinearSpace {
 public:
  virtual ~TakesLinearSpace() = default;
  virtual void use(LinearSpace& space) = 0;
};

struct LinearSpaceRequest {
  uint8_t* storage = nullptr;  // of the byte at `base`
  uint64_t base = 0, size_bytes = 0;
  std::string way = "auto";          // or registered, pageable, copied
  std::optional<uint32_t> device{};  // of the backend; none: the first that can be used
  // False: a space of another device has the same pages, gets them before this one and loses them
  // after it. What it asks of the driver counts for this one, too.
  bool asks_driver = true;
  uint64_t textures = 0;  // textures::Room::base of the process, in that memory; 0: there are none
};

// Null: the backend works on the host's memory as it is. std::runtime_error: the device cannot do
// what is asked for.
std::unique_ptr<LinearSpace> make_linear_space(std::string_view backend,
                                               const LinearSpaceRequest& request);
const char* name_of(LinearSpace::Way way);

}  // namespace gpusim
