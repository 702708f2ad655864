#include "device_sim/cuda/compiled/cubin_maker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>

#include "device_sim/base/embedded_file.h"
#include "device_sim/base/file.h"

namespace gpusim::cuda {

std::span<const EmbeddedFile> region_headers();

namespace {

namespace fs = std::filesystem;

std::string hash_of(const std::string& text) {
  return fmt::format("{:016x}", std::hash<std::string>()(text));
}

// Under a name of this process's own: others may write the same file.
fs::path own_name(const fs::path& file) { return file.string() + fmt::format(".{}", ::getpid()); }

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  const fs::path mine = own_name(file);
  std::ofstream out(mine);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("writing " + mine.string());
  fs::rename(mine, file);
}

// Writes gpusim's headers, unless they are there.
fs::path header_folder(const fs::path& cache) {
  std::string all;
  for (const EmbeddedFile& file : region_headers())
    all += fmt::format("{}\n{}", file.name, file.text);
  const fs::path folder = cache / ("headers-" + hash_of(all));
  const fs::path complete = folder / "complete";
  if (fs::exists(complete)) return folder;
  for (const EmbeddedFile& file : region_headers()) write(folder / file.name, file.text);
  write(complete, "");
  return folder;
}

}  // namespace

void CubinMaker::begin(const std::string& source, const std::string& architecture) {
  nvcc_.reset();
  const fs::path headers = header_folder(folder_);
  const std::string name = hash_of(headers.string() + architecture + source);
  cubin_ = folder_ / (name + ".cubin");
  const fs::path file = folder_ / (name + ".cu");
  // Other texts may have the same hash.
  if (fs::exists(cubin_) && fs::exists(file) && read_text(file) == source) return;
  write(file, source);
  made_ = own_name(cubin_);
  ChildSettings silent{.input = ChildSettings::kNoStream, .is_apart = true};
  silent.output = silent.error = ChildSettings::kNoStream;
  nvcc_.emplace(
      std::vector<std::string>{"nvcc", "-arch=" + architecture, "-std=c++20", "-O2", "--fmad=false",
                               "--expt-relaxed-constexpr", "--jump-table-density=50",
                               architecture.starts_with("compute") ? "-ptx" : "-cubin",
                               "-I" + headers.string(), "-o", made_.string(), file.string()},
      silent);
}

void CubinMaker::wait() {
  if (nvcc_) nvcc_->wait();
}

std::optional<fs::path> CubinMaker::take() {
  if (nvcc_) {
    const std::optional<int> status = nvcc_->poll();
    if (!status) return {};
    nvcc_.reset();
    std::error_code ignored;
    if (*status != 0) {
      fs::remove(made_, ignored);
      throw std::runtime_error(fmt::format("nvcc ends with status {} for {}", *status,
                                           fs::path(cubin_).replace_extension(".cu").string()));
    }
    fs::rename(made_, cubin_);
  }
  return cubin_;
}

}  // namespace gpusim::cuda
