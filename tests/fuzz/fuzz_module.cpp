// Any bytes as a module file. Size and checksum are made right first, or nothing else would ever be
// looked at.
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <vector>

#include "translator/common/listing.h"
#include "translator/common/translator.h"
#include "translator/module_io.h"

using namespace gpusim;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  if (size >= 24) {
    const uint64_t body = size - 24;
    const auto crc =
        static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data() + 24, body));
    std::memcpy(bytes.data() + 12, &crc, sizeof crc);
    std::memcpy(bytes.data() + 16, &body, sizeof body);
  }
  try {
    Translator translator(read_module(bytes, "fuzz"));
    translator.block_at(translator.module().entry);
    translator.block_at(translator.module().code.text_base + 4);
    std::ostringstream text;
    print_listing(text, translator.module());
    // What grew has to be as sound as what was read.
    read_module(module_bytes(translator.module()), "fuzz");
  } catch (const Error&) {
  }
  return 0;
}
