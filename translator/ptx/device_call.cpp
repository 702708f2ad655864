#include "translator/ptx/device_call.h"

namespace gpusim::ptx {

const DeviceFunction* device_function(std::string_view name) {
  using enum DeviceCall;
  static const DeviceFunction all[] = {
      {"__cudaCDP2GetParameterBufferV2",
       kGetParameterBuffer,
       4,
       {{0, 0, 64},
        {1, 0, 32},
        {1, 4, 32},
        {1, 8, 32},
        {2, 0, 32},
        {2, 4, 32},
        {2, 8, 32},
        {3, 0, 32}},
       64},
      {"__cudaCDP2LaunchDeviceV2", kLaunch, 2, {{0, 0, 64}, {1, 0, 64}}, 32},
      {"__cudaCDP2LaunchDeviceV2_ptsz", kLaunch, 2, {{0, 0, 64}, {1, 0, 64}}, 32},
      {"__cudaCDP2StreamCreateWithFlags", kMakeHandle, 2, {{0, 0, 64}}, 32},
      {"__cudaCDP2StreamDestroy", kSucceed, 1, {}, 32},
      {"__cudaCDP2StreamWaitEvent", kSucceed, 3, {}, 32},
      {"__cudaCDP2StreamWaitEvent_ptsz", kSucceed, 3, {}, 32},
      {"__cudaCDP2EventCreateWithFlags", kMakeHandle, 2, {{0, 0, 64}}, 32},
      {"__cudaCDP2EventRecord", kSucceed, 2, {}, 32},
      {"__cudaCDP2EventRecord_ptsz", kSucceed, 2, {}, 32},
      {"__cudaCDP2EventRecordWithFlags", kSucceed, 3, {}, 32},
      {"__cudaCDP2EventRecordWithFlags_ptsz", kSucceed, 3, {}, 32},
      {"__cudaCDP2EventDestroy", kSucceed, 1, {}, 32},
      {"__cudaCDP2GetLastError", kTakeError, 0, {}, 32},
      {"__cudaCDP2PeekAtLastError", kPeekError, 0, {}, 32},
      {"__cudaCDP2GetErrorName", kNameError, 1, {{0, 0, 32}}, 64},
      {"__cudaCDP2GetErrorString", kDescribeError, 1, {{0, 0, 32}}, 64},
      {"__cudaCDP2Malloc", kMalloc, 2, {{0, 0, 64}, {1, 0, 64}}, 32},
      {"__cudaCDP2Free", kFree, 1, {{0, 0, 64}}, 32},
      {"__cudaCDP2GetDevice", kTellDevice, 1, {{0, 0, 64}}, 32},
      {"__cudaCDP2GetDeviceCount", kTellDeviceCount, 1, {{0, 0, 64}}, 32},
      {"__cudaCDP2RuntimeGetVersion", kTellVersion, 1, {{0, 0, 64}}, 32},
      {"__cudaCDP2MemsetAsync", kSet, 4, {{0, 0, 64}, {1, 0, 32}, {2, 0, 64}}, 32},
      {"__cudaCDP2MemsetAsync_ptsz", kSet, 4, {{0, 0, 64}, {1, 0, 32}, {2, 0, 64}}, 32},
      {"__cudaCDP2MemcpyAsync", kCopy, 5, {{0, 0, 64}, {1, 0, 64}, {2, 0, 64}}, 32},
      {"__cudaCDP2MemcpyAsync_ptsz", kCopy, 5, {{0, 0, 64}, {1, 0, 64}, {2, 0, 64}}, 32},
  };
  for (const DeviceFunction& f : all)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace gpusim::ptx
