#include "device_sim/cuda/linear_space.cuh"

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>

#include "device_sim/core/device_error.h"

namespace gpusim::cuda {
namespace {

constexpr uint64_t kLeastRegionShift = 21;
constexpr uint64_t kMostRegionsShift = 22;

struct ClearRegion {
  Region* directory;
  Region empty;
  __device__ void operator()(uint64_t i) const { directory[i] = empty; }
};

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) cudaGetLastError();
  return value;
}

// Of this process: contexts of one process may name the same memory.
struct Registration {
  uint64_t size_bytes = 0;
  uint32_t users = 0;
};
std::map<const void*, Registration>& registrations() {
  static std::map<const void*, Registration> all;
  return all;
}

// Empty, or why not.
std::string register_pages(void* begin, uint64_t size_bytes, bool read_only) {
  Registration& r = registrations()[begin];
  if (r.users != 0 && r.size_bytes != size_bytes) return "a part of it is registered already";
  if (r.users == 0) {
    const unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable |
                           (read_only ? cudaHostRegisterReadOnly : 0u);
    const cudaError_t status = cudaHostRegister(begin, size_bytes, flags);
    if (status != cudaSuccess) {
      registrations().erase(begin);
      cudaGetLastError();
      if (cudaPeekAtLastError() != cudaSuccess) check(status, "registering memory");
      return cudaGetErrorString(status);
    }
    r.size_bytes = size_bytes;
  }
  ++r.users;
  return {};
}

void unregister_pages(void* begin) {
  const auto it = registrations().find(begin);
  if (it == registrations().end() || --it->second.users != 0) return;
  registrations().erase(it);
  if (cudaHostUnregister(begin) != cudaSuccess) cudaGetLastError();
}

}  // namespace

CudaLinearSpace::CudaLinearSpace(int device, const LinearSpaceRequest& request)
    : device_(device),
      storage_(request.storage),
      base_(request.base),
      size_bytes_(request.size_bytes),
      asked_for_(request.way),
      asks_driver_(request.asks_driver) {
  enter();
  choose_way();
  region_shift_ = static_cast<uint32_t>(
      std::max<uint64_t>(kLeastRegionShift, std::bit_width(size_bytes_ - 1) - kMostRegionsShift));
  make_directory();
  if (request.textures != 0) set_textures_in_place(request.textures);
}

CudaLinearSpace::~CudaLinearSpace() {
  cudaSetDevice(device_);
  if (registers() && !is_released_)
    for (const auto& [address, piece] : pieces_) unregister_pages(host(address));
}

// In this order: in place without copies, as on the host, where pinned pages stay where they are
// and atomic operations on pages of files are sound; through the host's page tables, which costs no
// calls; copies, which any device can. Pageable access without the host's page tables migrates
// pages, and its atomic operations do not reach pages of files: it is not chosen by itself.
void CudaLinearSpace::choose_way() {
  const bool can_register = attribute(cudaDevAttrHostRegisterSupported, device_) != 0 &&
                            attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, device_) != 0;
  const bool can_page = attribute(cudaDevAttrPageableMemoryAccess, device_) != 0;
  const bool shares_tables =
      attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, device_) != 0;
  has_shared_atomics_ = attribute(cudaDevAttrHostNativeAtomicSupported, device_) != 0;
  registers_read_only_ = attribute(cudaDevAttrHostRegisterReadOnlySupported, device_) != 0;
  if (asked_for_ == "auto")
    way_ = can_register                ? Way::kRegistered
           : can_page && shares_tables ? Way::kPageable
                                       : Way::kCopied;
  else if (asked_for_ == "registered" && can_register)
    way_ = Way::kRegistered;
  else if (asked_for_ == "pageable" && can_page)
    way_ = Way::kPageable;
  else if (asked_for_ == "copied")
    way_ = Way::kCopied;
  else if (asked_for_ == "registered" || asked_for_ == "pageable")
    throw std::runtime_error("this GPU's driver does not offer " + asked_for_ +
                             " access to the host's memory; leave the choice to gpusim (auto), or "
                             "take copied");
  else
    throw std::runtime_error("no way to reach guest memory is named " + asked_for_ +
                             "; there are: auto, registered, pageable, copied");
}

void CudaLinearSpace::make_directory() {
  const uint64_t count = (size_bytes_ + region_bytes() - 1) >> region_shift_;
  no_rights_ = DeviceArray<uint8_t>(region_bytes() >> kPageShift, "page permissions");
  no_rights_.zero();
  directory_ = DeviceArray<Region>(count, "the directory of guest memory");
  thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0), count,
                     ClearRegion{directory_.data(), Region{nullptr, no_rights_.data()}});
}

CudaLinearSpace::RegionState& CudaLinearSpace::region(uint64_t number) {
  RegionState& r = regions_[number];
  if (r.rights.empty()) r.rights.assign(region_bytes() >> kPageShift, 0);
  return r;
}

void CudaLinearSpace::for_regions(
    uint64_t address, uint64_t size_bytes,
    const std::function<void(uint64_t, uint64_t, uint64_t, uint64_t)>& f) const {
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t in_zone = address + done - base_;
    const uint64_t in_region = in_zone & (region_bytes() - 1);
    const uint64_t run = std::min(size_bytes - done, region_bytes() - in_region);
    f(in_zone >> region_shift_, in_region >> kPageShift, run >> kPageShift, address + done);
    done += run;
  }
}

// Pages that need not be noted as written are marked so from the start.
void CudaLinearSpace::put_rights(uint64_t address, const Piece& piece) {
  const auto flags = static_cast<uint8_t>(piece.rights | (is_copied() ? 0 : kDirty));
  for_regions(address, piece.size_bytes,
              [&](uint64_t number, uint64_t first, uint64_t pages, uint64_t) {
                RegionState& r = region(number);
                if (is_copied()) {
                  fetch(r);
                  if (r.copy.size() == 0) {
                    r.copy = DeviceArray<uint8_t>(region_bytes(), "a copy of guest memory");
                    r.is_new = true;
                  }
                }
                for (uint64_t p = first; p < first + pages; ++p) {
                  r.pages += (r.rights[p] & ~kDirty) == 0;
                  r.rights[p] = flags;
                }
                r.is_changed = true;
              });
}

void CudaLinearSpace::clear_rights(uint64_t address, uint64_t size_bytes) {
  for_regions(address, size_bytes, [&](uint64_t number, uint64_t first, uint64_t pages, uint64_t) {
    const auto it = regions_.find(number);
    if (it == regions_.end()) return;
    RegionState& r = it->second;
    if (is_copied()) {
      fetch(r);
      write_back(number, r, first, pages);
    }
    for (uint64_t p = first; p < first + pages; ++p) {
      r.pages -= (r.rights[p] & ~kDirty) != 0;
      r.rights[p] = 0;
    }
    r.is_changed = true;
  });
}

void CudaLinearSpace::insert(uint64_t address, const Piece& piece) {
  if (registers()) {
    const bool read_only = (piece.rights & kWrite) == 0;
    const std::string why_not = read_only && !registers_read_only_
                                    ? "the driver does not register memory that is only read"
                                    : register_pages(host(address), piece.size_bytes, read_only);
    if (!why_not.empty()) {
      if (asked_for_ == "registered" || kernels_ != 0)
        throw std::runtime_error("the GPU's driver does not register " +
                                 std::to_string(piece.size_bytes >> 10) +
                                 " KiB of memory: " + why_not +
                                 (kernels_ != 0 ? "; wait for the kernels of the context" : ""));
      change_to_copies();
    }
  }
  try {
    put_rights(address, piece);
  } catch (...) {
    clear_rights(address, piece.size_bytes);
    if (registers()) unregister_pages(host(address));
    throw;
  }
  pieces_.emplace(address, piece);
}

// The registration ends; rights stay.
void CudaLinearSpace::take_out(Pieces::iterator piece) {
  if (registers() && !is_released_) unregister_pages(host(piece->first));
  pieces_.erase(piece);
}

// No kernel has begun.
void CudaLinearSpace::change_to_copies() {
  for (const auto& [address, piece] : pieces_) unregister_pages(host(address));
  way_ = Way::kCopied;
  regions_.clear();
  make_directory();
  for (const auto& [address, piece] : pieces_) put_rights(address, piece);
}

void CudaLinearSpace::add(uint64_t address, uint64_t size_bytes, uint8_t rights, bool is_constant) {
  const Piece piece{size_bytes, rights, is_constant, false};
  if (is_released_) {
    pieces_.emplace(address, piece);
    return;
  }
  insert(address, piece);
  if (is_copied() && kernels_ != 0) {
    const auto it = pieces_.find(address);
    copy_in(address, it->second);
    it->second.is_over = is_constant;
  }
}

// The pages leave whatever the device says.
void CudaLinearSpace::remove(uint64_t address, uint64_t size_bytes) {
  std::exception_ptr trouble;
  const auto attempt = [&](auto f) {
    try {
      if (!is_released_) f();
    } catch (...) {
      trouble = std::current_exception();
      return false;
    }
    return true;
  };
  attempt([&] {
    check(cudaDeviceSynchronize(), "waiting for a slice");
    clear_rights(address, size_bytes);
  });
  const uint64_t end = address + size_bytes;
  auto it = pieces_.upper_bound(address);
  if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.size_bytes > address)
    --it;
  while (it != pieces_.end() && it->first < end) {
    const auto [begin, piece] = *it;
    take_out(it++);
    const auto keep = [&](uint64_t from, uint64_t to) {
      Piece rest = piece;
      rest.size_bytes = to - from;
      rest.is_over = false;
      if (is_released_)
        pieces_.emplace(from, rest);
      else if (!attempt([&] { insert(from, rest); }))
        attempt([&] { clear_rights(from, rest.size_bytes); });
    };
    if (begin < address) keep(begin, address);
    if (begin + piece.size_bytes > end) keep(end, begin + piece.size_bytes);
  }
  if (trouble) std::rethrow_exception(trouble);
}

void CudaLinearSpace::fetch(RegionState& r) {
  if (kernels_ == 0 || r.on_device.size() == 0 || r.is_changed) return;
  std::vector<uint8_t> seen(r.rights.size());
  r.on_device.download(seen);
  for (size_t p = 0; p < seen.size(); ++p) r.rights[p] |= seen[p] & kDirty;
}

void CudaLinearSpace::write_back(uint64_t number, RegionState& r, uint64_t first_page,
                                 uint64_t pages) {
  const uint64_t address = base_ + (number << region_shift_);
  for (uint64_t p = first_page; p < first_page + pages;) {
    uint64_t last = p;
    while (last < first_page + pages && (r.rights[last] & kDirty) != 0) {
      r.rights[last] &= static_cast<uint8_t>(~kDirty);
      ++last;
    }
    if (last != p) {
      const uint64_t at = p << kPageShift, size_bytes = (last - p) << kPageShift;
      check(cudaMemcpy(host(address + at), r.copy.data() + at, size_bytes, cudaMemcpyDeviceToHost),
            "copying guest memory back");
      moved_.from_device += size_bytes;
      r.is_changed = true;
    }
    p = last + 1;
  }
}

// Pages that kernels wrote are newer here.
void CudaLinearSpace::copy_in(uint64_t address, const Piece& piece) {
  for_regions(address, piece.size_bytes,
              [&](uint64_t number, uint64_t first, uint64_t pages, uint64_t at) {
                RegionState& r = region(number);
                for (uint64_t p = first; p < first + pages;) {
                  uint64_t last = p;
                  while (last < first + pages && (r.rights[last] & kDirty) == 0) ++last;
                  if (last != p) {
                    const uint64_t size_bytes = (last - p) << kPageShift;
                    check(cudaMemcpy(r.copy.data() + (p << kPageShift),
                                     host(at + ((p - first) << kPageShift)), size_bytes,
                                     cudaMemcpyHostToDevice),
                          "copying guest memory to the device");
                    moved_.to_device += size_bytes;
                  }
                  p = last + 1;
                }
              });
}

void CudaLinearSpace::begin_kernel() {
  if (is_copied()) {
    if (kernels_ == 0)
      std::erase_if(regions_, [&](const auto& entry) {
        const RegionState& r = entry.second;
        if (r.pages != 0 || r.is_new) return r.pages == 0 && r.is_new;
        const Region none{nullptr, no_rights_.data()};
        check(
            cudaMemcpy(directory_.data() + entry.first, &none, sizeof none, cudaMemcpyHostToDevice),
            "changing the directory of guest memory");
        return true;
      });
    for (auto& [number, r] : regions_) fetch(r);
    for (auto& [address, piece] : pieces_) {
      if (piece.is_over) continue;
      copy_in(address, piece);
      piece.is_over = piece.is_constant;
    }
  }
  ++kernels_;
}

void CudaLinearSpace::end_kernel() {
  if (is_copied()) {
    check(cudaDeviceSynchronize(), "waiting for a slice");
    for (auto& [number, r] : regions_) {
      fetch(r);
      write_back(number, r, 0, r.rights.size());
    }
  }
  --kernels_;
}

void CudaLinearSpace::in_copies(
    uint64_t address, uint64_t size_bytes,
    const std::function<void(RegionState&, uint64_t, uint64_t, uint64_t)>& f) {
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t in_zone = address + done - base_;
    const uint64_t in_region = in_zone & (region_bytes() - 1);
    const uint64_t run = std::min(size_bytes - done, region_bytes() - in_region);
    const auto it = regions_.find(in_zone >> region_shift_);
    if (it != regions_.end() && it->second.copy.size() != 0) f(it->second, in_region, done, run);
    done += run;
  }
}

void CudaLinearSpace::read(uint64_t address, std::span<uint8_t> out) {
  if (!is_copied() || kernels_ == 0) {
    std::memcpy(out.data(), host(address), out.size());
    return;
  }
  std::ranges::fill(out, uint8_t{0});
  in_copies(address, out.size(), [&](RegionState& r, uint64_t at, uint64_t done, uint64_t size) {
    check(cudaMemcpy(out.data() + done, r.copy.data() + at, size, cudaMemcpyDeviceToHost),
          "reading guest memory");
  });
}

void CudaLinearSpace::write(uint64_t address, std::span<const uint8_t> in) {
  if (!is_copied() || kernels_ == 0) {
    std::memcpy(host(address), in.data(), in.size());
    return;
  }
  in_copies(address, in.size(), [&](RegionState& r, uint64_t at, uint64_t done, uint64_t size) {
    fetch(r);
    check(cudaMemcpy(r.copy.data() + at, in.data() + done, size, cudaMemcpyHostToDevice),
          "writing guest memory");
    for (uint64_t p = at >> kPageShift; p <= (at + size - 1) >> kPageShift; ++p)
      if (r.rights[p] & kWrite) r.rights[p] |= kDirty;
    r.is_changed = true;
  });
}

void CudaLinearSpace::send(uint64_t number, RegionState& r) {
  if (r.on_device.size() == 0) {
    r.on_device = DeviceArray<uint8_t>(r.rights.size(), "page permissions");
    r.is_new = true;
  }
  r.on_device.upload(r.rights);
  r.is_changed = false;
  if (!r.is_new) return;
  const uint64_t begin = number << region_shift_;
  const Region entry{is_copied() ? r.copy.data() : storage_ + begin, r.on_device.data()};
  check(cudaMemcpy(directory_.data() + number, &entry, sizeof entry, cudaMemcpyHostToDevice),
        "changing the directory of guest memory");
  r.is_new = false;
}

void CudaLinearSpace::describe(InPlaceView& view) {
  for (auto& [number, r] : regions_)
    if (r.is_changed) send(number, r);
  view.regions = directory_.data();
  view.region_shift = region_shift_;
}

void CudaLinearSpace::release_device() {
  cudaSetDevice(device_);
  registrations().clear();
  regions_.clear();
  directory_ = {};
  no_rights_ = {};
  kernels_ = 0;
  is_released_ = true;
}

void CudaLinearSpace::restore() {
  enter();
  make_directory();
  is_released_ = false;
  Pieces all;
  std::swap(all, pieces_);
  for (auto& [address, piece] : all) {
    piece.is_over = false;
    insert(address, piece);
  }
}

}  // namespace gpusim::cuda
