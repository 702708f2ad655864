// What is written in pieces, compressed: .gz, .xz and .zst.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace gpusim::host {

class Compressor {
 public:
  virtual ~Compressor() = default;
  // Appends to `packed` what is ready.
  virtual void add(std::string_view text, std::string& packed) = 0;
  virtual void finish(std::string& packed) = 0;
};

// By the end of the file's name; none where it has no such end. Fast levels: a trace is written
// while the run waits.
std::unique_ptr<Compressor> compressor_for(std::string_view path);
// The name without that end: "t.din" of "t.din.gz".
std::string_view without_compression(std::string_view path);

}  // namespace gpusim::host
