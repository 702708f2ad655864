// What nvcc puts into a program: fat binaries with PTX and machine code.
//
//   wrapper (.nvFatBinSegment): magic, version 1 or 2, pointer to a container, pointer to a list
//   container (.nv_fatbin):     magic, version, size of this header, size of all entries
//   entry:                      header of 64 bytes or more, then PTX text or an ELF file
//
// Version 2 comes from separable compilation: its container holds linked machine code, and the list
// (ended by a null pointer) names the containers of the translation units, which still have PTX.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusim::cuda_api {

inline constexpr uint32_t kWrapperMagic = 0x466243b1, kContainerMagic = 0xba55ed50;

struct Wrapper {
  uint32_t magic, version;
  const void* container;
  const void* const* units;
};

enum class EntryKind : uint16_t { kPtx = 1, kElf = 2 };

struct Entry {
  EntryKind kind = EntryKind::kPtx;
  uint32_t architecture = 0;  // 80 for compute_80 and sm_80
  bool is_compressed = false;
  std::span<const std::byte> stored;
  uint64_t size_bytes = 0;  // without compression
  uint64_t flags = 0;
};

// The entries of the container that begins at `bytes` (which may go on behind it). PTX and machine
// code only. Throws gpusim::Error that says what is wrong with it.
std::vector<Entry> read_container(std::span<const std::byte> bytes);

// The text of an entry of kind kPtx, without the zeros that pad it. Throws gpusim::Error.
std::string ptx_text(const Entry& entry);

struct Image {
  std::string ptx;
  uint32_t architecture = 0;  // of the PTX
};

// The PTX of the highest architecture. Throws gpusim::Error where there is none: what the
// container has instead, and which option of nvcc adds PTX.
Image highest_ptx(std::span<const std::byte> container);

// How many bytes can be read from `address` on, by the process's table of mappings; 0 if none.
size_t readable_bytes(const void* address);

}  // namespace gpusim::cuda_api
