// The binary interface of CUDA 13's runtime, as far as we serve it: layouts and numbers that
// programs were compiled with. Written down here because CUDA's headers need not be there when
// gpusim is built; tests/system/cuda/programs/layouts.cu compares them with those of the toolkit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpusim::cuda_api {

// Results. Those that only strings are needed for: host/ptx/errors.def.
enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInitializationError = 3,
  kInvalidConfiguration = 9,
  kInvalidPitchValue = 12,
  kInvalidSymbol = 13,
  kInvalidChannelDescriptor = 20,
  kInvalidMemcpyDirection = 21,
  kInvalidFilterSetting = 26,
  kInvalidNormSetting = 27,
  kMissingConfiguration = 52,
  kInvalidDeviceFunction = 98,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidKernelImage = 200,
  kNoKernelImageForDevice = 209,
  kUnsupportedLimit = 215,
  kInvalidPtx = 218,
  kFileNotFound = 301,
  kInvalidResourceHandle = 400,
  kIllegalState = 401,
  kSymbolNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kPeerAccessUnsupported = 217,
  kPeerAccessNotEnabled = 705,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailure = 719,
  kCooperativeLaunchTooLarge = 720,
  kNotPermitted = 800,
  kNotSupported = 801,
  kInvalidClusterSize = 912,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureImplicit = 906,
  kGraphExecUpdateFailure = 910,
  kUnknown = 999,
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

enum CopyKind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kCopyDefault };
enum MemoryType : int { kUnregistered, kHostMemory, kDeviceMemory, kManagedMemory };

struct PointerAttributes {
  MemoryType type;
  int device;
  void *device_pointer, *host_pointer;
  long reserved[8];
};

struct FuncAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads_per_block, registers, ptx_version, binary_version, cache_mode_ca;
  int max_dynamic_shared_bytes, preferred_carveout;
  int cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth;
  int cluster_scheduling_policy, non_portable_cluster_size_allowed;
  int reserved[16];
};

struct Extent {
  size_t width, height, depth;
};
struct Pos {
  size_t x, y, z;
};
struct PitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct Memcpy3DParms {
  void* src_array;
  Pos src_pos;
  PitchedPtr src_ptr;
  void* dst_array;
  Pos dst_pos;
  PitchedPtr dst_ptr;
  Extent extent;
  CopyKind kind;
};
struct ChannelFormatDesc {
  int x, y, z, w, f;
};

struct ResourceDesc {
  int type;  // 0 array, 1 mipmapped array, 2 linear memory, 3 memory of rows
  union {
    void* array;
    struct {
      void* pointer;
      ChannelFormatDesc desc;
      size_t size_bytes;
    } linear;
    struct {
      void* pointer;
      ChannelFormatDesc desc;
      size_t width, height, pitch_bytes;
    } pitched;
    int reserved[32];
  } resource;
  unsigned flags;
};
struct TextureDesc {
  int address_mode[3];
  int filter_mode, read_mode, srgb;
  float border_color[4];
  int normalized_coords;
  unsigned max_anisotropy;
  int mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level, max_mipmap_level;
  int disable_trilinear_optimization, seamless_cubemap;
};
struct ResourceViewDesc {
  int format;
  size_t width, height, depth;
  unsigned first_level, last_level, first_layer, last_layer;
  unsigned reserved[16];
};

// The driver's forms.
struct DriverArray {
  size_t width, height;
  int format;
  unsigned channels;
};
struct DriverArray3D {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct DriverSide2D {
  size_t x, y;
  int type;
  const void* host;
  uint64_t device;
  void* array;
  size_t pitch;
};
struct DriverCopy2D {
  DriverSide2D from, to;
  size_t width, height;
};
struct DriverSide3D {
  size_t x, y, z, level;
  int type;
  const void* host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, height;
};
struct DriverCopy3D {
  DriverSide3D from, to;
  size_t width, height, depth;
};
struct DriverResourceDesc {
  int type;
  union {
    void* array;
    struct {
      uint64_t address;
      int format;
      unsigned channels;
      size_t size_bytes;
    } linear;
    struct {
      uint64_t address;
      int format;
      unsigned channels;
      size_t width, height, pitch_bytes;
    } pitched;
    int reserved[32];
  } resource;
  unsigned flags;
};
struct DriverTextureDesc {
  int address_mode[3];
  int filter_mode;
  unsigned flags, max_anisotropy;
  int mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level, max_mipmap_level;
  float border_color[4];
  int reserved[12];
};

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int cooperative;
    Dim3 cluster_dim;
  } value;
};
inline constexpr int kAttributeCooperative = 2, kAttributeClusterDimension = 4;
struct LaunchConfig {
  Dim3 grid, block;
  size_t dynamic_shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

struct MemLocation {
  int type, id;
};

struct KernelNodeParams {
  void* function;
  Dim3 grid, block;
  uint32_t shared_bytes;
  void** arguments;
  void** extra;
};
struct MemsetNodeParams {
  void* destination;
  size_t pitch;
  uint32_t value, element_bytes;
  size_t width, height;
};
using HostFunction = void (*)(void*);
struct HostNodeParams {
  HostFunction function;
  void* argument;
};

struct DeviceProp {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned int luid_device_node_mask;
  size_t total_global_mem, shared_mem_per_block;
  int regs_per_block, warp_size;
  size_t mem_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
  size_t total_const_mem;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multi_processor_count, integrated, can_map_host_memory;
  int max_texture_1d, max_texture_1d_mipmap, max_texture_2d[2], max_texture_2d_mipmap[2];
  int max_texture_2d_linear[3], max_texture_2d_gather[2], max_texture_3d[3];
  int max_texture_3d_alt[3], max_texture_cubemap, max_texture_1d_layered[2];
  int max_texture_2d_layered[3], max_texture_cubemap_layered[2], max_surface_1d;
  int max_surface_2d[2], max_surface_3d[3], max_surface_1d_layered[2], max_surface_2d_layered[3];
  int max_surface_cubemap, max_surface_cubemap_layered[2];
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id, tcc_driver;
  int async_engine_count, unified_addressing, memory_bus_width, l2_cache_size;
  int persisting_l2_cache_max_size, max_threads_per_multi_processor, stream_priorities_supported;
  int global_l1_cache_supported, local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor, managed_memory, is_multi_gpu_board, multi_gpu_board_group_id;
  int host_native_atomic_supported, pageable_memory_access, concurrent_managed_access;
  int compute_preemption_supported, can_use_host_pointer_for_registered_mem, cooperative_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables, direct_managed_mem_access_from_host;
  int max_blocks_per_multi_processor, access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported, sparse_cuda_array_supported, host_register_read_only_supported;
  int timeline_semaphore_interop_supported, memory_pools_supported, gpu_direct_rdma_supported;
  unsigned int gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned int memory_pool_supported_handle_types;
  int deferred_mapping_cuda_array_supported, ipc_event_supported, cluster_launch;
  int unified_function_pointers, device_numa_config, device_numa_id, mps_enabled, host_numa_id;
  unsigned int gpu_pci_device_id, gpu_pci_subsystem_id;
  int host_numa_multinode_ipc_supported;
  int reserved[56];
};

}  // namespace gpusim::cuda_api
