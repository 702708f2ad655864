// Our declarations of CUDA's binary interface against those of the toolkit.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

#define SAME_SIZE(ours, theirs) CHECK(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, field, theirs, their_field)             \
  CHECK(offsetof(ours, field) == offsetof(theirs, their_field)); \
  CHECK(sizeof(ours{}.field) == sizeof(theirs{}.their_field))

TEST_CASE("properties of devices") {
  SAME_SIZE(DeviceProp, cudaDeviceProp);
  SAME_PLACE(DeviceProp, total_global_mem, cudaDeviceProp, totalGlobalMem);
  SAME_PLACE(DeviceProp, max_grid_size, cudaDeviceProp, maxGridSize);
  SAME_PLACE(DeviceProp, multi_processor_count, cudaDeviceProp, multiProcessorCount);
  SAME_PLACE(DeviceProp, max_texture_3d, cudaDeviceProp, maxTexture3D);
  SAME_PLACE(DeviceProp, surface_alignment, cudaDeviceProp, surfaceAlignment);
  SAME_PLACE(DeviceProp, l2_cache_size, cudaDeviceProp, l2CacheSize);
  SAME_PLACE(DeviceProp, shared_mem_per_multiprocessor, cudaDeviceProp, sharedMemPerMultiprocessor);
  SAME_PLACE(DeviceProp, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
  SAME_PLACE(DeviceProp, shared_mem_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
  SAME_PLACE(DeviceProp, reserved_shared_mem_per_block, cudaDeviceProp, reservedSharedMemPerBlock);
  SAME_PLACE(DeviceProp, memory_pools_supported, cudaDeviceProp, memoryPoolsSupported);
  SAME_PLACE(DeviceProp, host_numa_id, cudaDeviceProp, hostNumaId);
}

TEST_CASE("what launches and copies take") {
  SAME_SIZE(Dim3, dim3);
  SAME_SIZE(PointerAttributes, cudaPointerAttributes);
  SAME_PLACE(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
  SAME_SIZE(FuncAttributes, cudaFuncAttributes);
  SAME_PLACE(FuncAttributes, registers, cudaFuncAttributes, numRegs);
  SAME_PLACE(FuncAttributes, max_dynamic_shared_bytes, cudaFuncAttributes,
             maxDynamicSharedSizeBytes);
  SAME_SIZE(Memcpy3DParms, cudaMemcpy3DParms);
  SAME_PLACE(Memcpy3DParms, dst_ptr, cudaMemcpy3DParms, dstPtr);
  SAME_PLACE(Memcpy3DParms, kind, cudaMemcpy3DParms, kind);
  SAME_SIZE(LaunchAttribute, cudaLaunchAttribute);
  SAME_PLACE(LaunchAttribute, value, cudaLaunchAttribute, val);
  SAME_SIZE(LaunchConfig, cudaLaunchConfig_t);
  SAME_PLACE(LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
  SAME_SIZE(KernelNodeParams, cudaKernelNodeParams);
  SAME_PLACE(KernelNodeParams, arguments, cudaKernelNodeParams, kernelParams);
  SAME_SIZE(MemsetNodeParams, cudaMemsetParams);
  SAME_PLACE(MemsetNodeParams, width, cudaMemsetParams, width);
  SAME_SIZE(HostNodeParams, cudaHostNodeParams);
  SAME_SIZE(MemLocation, cudaMemLocation);
  CHECK(kAttributeCooperative == static_cast<int>(cudaLaunchAttributeCooperative));
  CHECK(kAttributeClusterDimension == static_cast<int>(cudaLaunchAttributeClusterDimension));
}

TEST_CASE("arrays, textures and surfaces") {
  SAME_SIZE(ChannelFormatDesc, cudaChannelFormatDesc);
  SAME_SIZE(ResourceDesc, cudaResourceDesc);
  SAME_PLACE(ResourceDesc, resource, cudaResourceDesc, res);
  SAME_PLACE(ResourceDesc, resource.linear.size_bytes, cudaResourceDesc, res.linear.sizeInBytes);
  SAME_PLACE(ResourceDesc, resource.pitched.width, cudaResourceDesc, res.pitch2D.width);
  SAME_PLACE(ResourceDesc, resource.pitched.pitch_bytes, cudaResourceDesc,
             res.pitch2D.pitchInBytes);
  SAME_PLACE(ResourceDesc, flags, cudaResourceDesc, flags);
  SAME_SIZE(TextureDesc, cudaTextureDesc);
  SAME_PLACE(TextureDesc, read_mode, cudaTextureDesc, readMode);
  SAME_PLACE(TextureDesc, border_color, cudaTextureDesc, borderColor);
  SAME_PLACE(TextureDesc, mipmap_level_bias, cudaTextureDesc, mipmapLevelBias);
  SAME_PLACE(TextureDesc, seamless_cubemap, cudaTextureDesc, seamlessCubemap);
  SAME_SIZE(ResourceViewDesc, cudaResourceViewDesc);
  SAME_PLACE(ResourceViewDesc, last_layer, cudaResourceViewDesc, lastLayer);
  SAME_SIZE(ResourceViewDesc, CUDA_RESOURCE_VIEW_DESC);
  SAME_SIZE(DriverArray, CUDA_ARRAY_DESCRIPTOR);
  SAME_PLACE(DriverArray, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
  SAME_SIZE(DriverArray3D, CUDA_ARRAY3D_DESCRIPTOR);
  SAME_PLACE(DriverArray3D, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
  SAME_SIZE(DriverCopy2D, CUDA_MEMCPY2D);
  SAME_PLACE(DriverCopy2D, to.device, CUDA_MEMCPY2D, dstDevice);
  SAME_PLACE(DriverCopy2D, height, CUDA_MEMCPY2D, Height);
  SAME_SIZE(DriverCopy3D, CUDA_MEMCPY3D);
  SAME_PLACE(DriverCopy3D, from.height, CUDA_MEMCPY3D, srcHeight);
  SAME_PLACE(DriverCopy3D, to.array, CUDA_MEMCPY3D, dstArray);
  SAME_PLACE(DriverCopy3D, depth, CUDA_MEMCPY3D, Depth);
  SAME_SIZE(DriverResourceDesc, CUDA_RESOURCE_DESC);
  SAME_PLACE(DriverResourceDesc, resource.linear.size_bytes, CUDA_RESOURCE_DESC,
             res.linear.sizeInBytes);
  SAME_PLACE(DriverResourceDesc, resource.pitched.pitch_bytes, CUDA_RESOURCE_DESC,
             res.pitch2D.pitchInBytes);
  SAME_PLACE(DriverResourceDesc, flags, CUDA_RESOURCE_DESC, flags);
  SAME_SIZE(DriverTextureDesc, CUDA_TEXTURE_DESC);
  SAME_PLACE(DriverTextureDesc, flags, CUDA_TEXTURE_DESC, flags);
  SAME_PLACE(DriverTextureDesc, border_color, CUDA_TEXTURE_DESC, borderColor);
}

TEST_CASE("results") {
  struct Pair {
    const char* name;
    int ours, theirs;
  };
#define RESULT(ours, theirs) \
  Pair { #theirs, ours, static_cast < int>(theirs) }
  for (const Pair& pair :
       {RESULT(kInvalidValue, cudaErrorInvalidValue),
        RESULT(kMemoryAllocation, cudaErrorMemoryAllocation),
        RESULT(kInitializationError, cudaErrorInitializationError),
        RESULT(kInvalidConfiguration, cudaErrorInvalidConfiguration),
        RESULT(kInvalidPitchValue, cudaErrorInvalidPitchValue),
        RESULT(kInvalidSymbol, cudaErrorInvalidSymbol),
        RESULT(kInvalidChannelDescriptor, cudaErrorInvalidChannelDescriptor),
        RESULT(kInvalidFilterSetting, cudaErrorInvalidFilterSetting),
        RESULT(kInvalidNormSetting, cudaErrorInvalidNormSetting),
        RESULT(kInvalidMemcpyDirection, cudaErrorInvalidMemcpyDirection),
        RESULT(kMissingConfiguration, cudaErrorMissingConfiguration),
        RESULT(kInvalidDeviceFunction, cudaErrorInvalidDeviceFunction),
        RESULT(kInvalidDevice, cudaErrorInvalidDevice),
        RESULT(kInvalidKernelImage, cudaErrorInvalidKernelImage),
        RESULT(kNoKernelImageForDevice, cudaErrorNoKernelImageForDevice),
        RESULT(kUnsupportedLimit, cudaErrorUnsupportedLimit),
        RESULT(kInvalidPtx, cudaErrorInvalidPtx),
        RESULT(kFileNotFound, cudaErrorFileNotFound),
        RESULT(kInvalidResourceHandle, cudaErrorInvalidResourceHandle),
        RESULT(kIllegalState, cudaErrorIllegalState),
        RESULT(kSymbolNotFound, cudaErrorSymbolNotFound),
        RESULT(kNotReady, cudaErrorNotReady),
        RESULT(kIllegalAddress, cudaErrorIllegalAddress),
        RESULT(kLaunchOutOfResources, cudaErrorLaunchOutOfResources),
        RESULT(kPeerAccessNotEnabled, cudaErrorPeerAccessNotEnabled),
        RESULT(kAssert, cudaErrorAssert),
        RESULT(kHostMemoryAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered),
        RESULT(kHostMemoryNotRegistered, cudaErrorHostMemoryNotRegistered),
        RESULT(kIllegalInstruction, cudaErrorIllegalInstruction),
        RESULT(kMisalignedAddress, cudaErrorMisalignedAddress),
        RESULT(kLaunchFailure, cudaErrorLaunchFailure),
        RESULT(kCooperativeLaunchTooLarge, cudaErrorCooperativeLaunchTooLarge),
        RESULT(kNotPermitted, cudaErrorNotPermitted),
        RESULT(kNotSupported, cudaErrorNotSupported),
        RESULT(kStreamCaptureUnsupported, cudaErrorStreamCaptureUnsupported),
        RESULT(kStreamCaptureUnmatched, cudaErrorStreamCaptureUnmatched),
        RESULT(kGraphExecUpdateFailure, cudaErrorGraphExecUpdateFailure)}) {
    INFO(std::string(pair.name));
    CHECK(pair.ours == pair.theirs);
  }
}

}  // namespace gpusim::cuda_api
