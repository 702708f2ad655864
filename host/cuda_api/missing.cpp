// Functions of CUDA that gpusim lacks: each says so once and returns "not supported". They are
// weak, so that those that we have take their places.
#include <cstdio>

namespace {

int lacks(const char* name, bool& was_said) {
  if (!was_said) std::fprintf(stderr, "gpusim cuda: %s is not supported\n", name);
  was_said = true;
  return 801;
}

}  // namespace

#define CALL(name)                                                     \
  extern "C" __attribute__((visibility("default"), weak)) int name() { \
    static bool was_said = false;                                      \
    return lacks(#name, was_said);                                     \
  }
#include "energy/power/attach/preload/runtime_calls.def"

#include "energy/power/attach/preload/driver_calls.def"

// Private ways into NVIDIA's libraries, which are not imitated (ADR 0018).
CALL(cudaGetExportTable)
CALL(__cudaGetProcAddress)
CALL(__cudaRegisterHostVar)
CALL(__cudaRegisterUnifiedTable)
#undef CALL
