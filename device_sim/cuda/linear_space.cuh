// A caller's memory as the linear zone of machines on a GPU (core/linear_space.h).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "device_sim/core/linear_space.h"
#include "device_sim/cuda/device_array.cuh"
#include "device_sim/cuda/in_place_view.cuh"

namespace gpusim::cuda {

// Where kernels of the current device find textures and surfaces (simulate_warps_in_place.cu).
void set_textures_in_place(uint64_t base);

class CudaLinearSpace final : public LinearSpace {
 public:
  CudaLinearSpace(int device, const LinearSpaceRequest& request);
  ~CudaLinearSpace() override;

  void enter() override { check(cudaSetDevice(device_), "choosing a device"); }
  Way way() const override { return way_; }
  Moved moved() const override { return moved_; }
  bool has_shared_atomics() const override { return has_shared_atomics_ && !is_copied(); }
  void add(uint64_t address, uint64_t size_bytes, uint8_t rights, bool is_constant) override;
  void remove(uint64_t address, uint64_t size_bytes) override;
  void begin_kernel() override;
  void end_kernel() override;
  void read(uint64_t address, std::span<uint8_t> out) override;
  void write(uint64_t address, std::span<const uint8_t> in) override;
  void release_device() override;
  void restore() override;

  // For a slice: what the view needs besides its zones. Brings the device up to date.
  void describe(InPlaceView& view);

 private:
  // Pages that came together, or what is left of them.
  struct Piece {
    uint64_t size_bytes = 0;
    uint8_t rights = 0;
    bool is_constant = false;
    bool is_over = false;  // constant, and its copy is there
  };
  using Pieces = std::map<uint64_t, Piece>;
  struct RegionState {
    std::vector<uint8_t> rights;     // per page; with copies, kDirty as of the last fetch()
    DeviceArray<uint8_t> on_device;  // the same
    DeviceArray<uint8_t> copy;       // with copies
    uint32_t pages = 0;              // that have rights
    bool is_changed = false;         // `rights`, since they were sent
    bool is_new = true;              // not in the directory
  };

  uint64_t region_bytes() const { return uint64_t{1} << region_shift_; }
  uint8_t* host(uint64_t address) const { return storage_ + (address - base_); }
  bool is_copied() const { return way_ == Way::kCopied; }
  bool registers() const { return way_ == Way::kRegistered && asks_driver_; }
  void choose_way();
  void make_directory();
  RegionState& region(uint64_t number);
  // Calls f(region's number, first page, pages, address) for the parts of a range.
  void for_regions(uint64_t address, uint64_t size_bytes,
                   const std::function<void(uint64_t, uint64_t, uint64_t, uint64_t)>& f) const;
  void put_rights(uint64_t address, const Piece& piece);
  void clear_rights(uint64_t address, uint64_t size_bytes);
  void insert(uint64_t address, const Piece& piece);  // with registration
  void take_out(Pieces::iterator piece);
  void change_to_copies();
  // With copies: learns which pages kernels wrote.
  void fetch(RegionState& r);
  void write_back(uint64_t number, RegionState& r, uint64_t first_page, uint64_t pages);
  void copy_in(uint64_t address, const Piece& piece);
  void send(uint64_t number, RegionState& r);
  // As read() and write(), on copies: f(place in a copy, bytes done, bytes).
  void in_copies(uint64_t address, uint64_t size_bytes,
                 const std::function<void(RegionState&, uint64_t, uint64_t, uint64_t)>& f);

  int device_;
  uint8_t* storage_;
  uint64_t base_, size_bytes_;
  std::string asked_for_;
  bool asks_driver_;
  Way way_ = Way::kCopied;
  bool registers_read_only_ = false, has_shared_atomics_ = false;
  uint32_t region_shift_ = 0;
  uint32_t kernels_ = 0;  // that have begun
  bool is_released_ = false;
  Moved moved_;
  Pieces pieces_;
  std::unordered_map<uint64_t, RegionState> regions_;  // those that ever had pages
  DeviceArray<Region> directory_;
  DeviceArray<uint8_t> no_rights_;
};

}  // namespace gpusim::cuda
