// Any bytes as a program: refused with gpusim::Error, or a module that its own reader accepts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "translator/common/translator.h"
#include "translator/module_io.h"

using namespace gpusim;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Module module;
  try {
    module = translate_elf({data, size}, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  // Mostly a sparse code map: reading it back would only take time.
  if (module.code.uop_at.size() > (1 << 20)) return 0;
  try {
    Translator translator(read_module(module_bytes(module), "fuzz"));
    const uint64_t base = module.code.text_base, end = base + 4 * module.code.uop_at.size();
    for (uint64_t pc = base; pc < end && pc < base + 64; pc += 4) translator.block_at(pc);
    read_module(module_bytes(translator.module()), "fuzz");
  } catch (const Error& e) {
    std::fprintf(stderr, "a module that was just made is refused: %s\n", e.what());
    std::abort();
  }
  return 0;
}
