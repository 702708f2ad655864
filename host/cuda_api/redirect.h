// Programs that carry CUDA's runtime inside (nvcc's default): its functions, found by name in the
// program's symbol table, are made to jump to ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusim::cuda_api {

struct NamedFunction {
  std::string name;
  size_t value = 0;  // address in the file's own numbering
  size_t size_bytes = 0;
};

// What an ELF file says of CUDA's runtime.
struct RuntimeInside {
  std::vector<NamedFunction> functions;  // cuda* and __cuda*, if it carries the runtime
  std::vector<NamedFunction> nvrtc;  // of NVRTC, those for PTX and machine code, if it carries it
  bool has_kernels = false;          // it has a section of fat binaries
  bool imports_runtime = false;      // the runtime is a library elsewhere
};

// Nothing of it is trusted: a file that is cut off gives what could be read.
RuntimeInside find_runtime(std::span<const std::byte> file);

// NVRTC's functions that hand out PTX, of programs that carry it (libnvrtc_static.a). Addresses; 0:
// it is a shared library.
struct NvrtcInside {
  uintptr_t get_ptx_size = 0, get_ptx = 0;
};

// Over all objects of this process. To be called before the program's constructors. Ends the
// process with a sentence where a program cannot be taken over.
NvrtcInside redirect_static_runtimes();

}  // namespace gpusim::cuda_api
