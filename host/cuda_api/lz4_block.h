// A raw LZ4 block (no frame), as fat binaries of `--compress-mode=speed` have it. The format is the
// published one: docs of the LZ4 project, "LZ4 Block Format Description".
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace gpusim::cuda_api {

// Nothing unless `block` gives exactly `size_bytes` bytes.
std::optional<std::string> decompress_lz4_block(std::span<const std::byte> block,
                                                size_t size_bytes);

}  // namespace gpusim::cuda_api
