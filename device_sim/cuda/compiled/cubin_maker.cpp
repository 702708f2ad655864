#include "device_sim/cuda/compiled/cubin_maker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <stdexcept>

#include "device_sim/base/embedded_file.h"
#include "device_sim/base/file.h"
#include "device_sim/base/folder_limit.h"
#include "device_sim/cuda/compiled/nvrtc.h"

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

std::string hash_of_headers() {
  std::string all;
  for (const EmbeddedFile& file : region_headers())
    all += fmt::format("{}\n{}", file.name, file.text);
  return hash_of(all);
}

// Another nvcc makes other machine code: which file it is, and of when.
std::string nvcc_identity() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::canonical(fs::path(folder) / "nvcc", error);
    if (error) continue;
    const auto written = fs::last_write_time(file, error);
    if (!error) return fmt::format("{} {} ", file.string(), written.time_since_epoch().count());
  }
  return {};
}

// Writes gpusim's headers, unless they are there. They are in use again either way.
void write_headers(const fs::path& folder) {
  const fs::path complete = folder / "complete";
  std::error_code ignored;
  fs::last_write_time(folder, fs::file_time_type::clock::now(), ignored);
  if (fs::exists(complete)) return;
  for (const EmbeddedFile& file : region_headers()) write(folder / file.name, file.text);
  write(complete, "");
}

}  // namespace

void CubinMaker::begin(const std::string& source, const std::string& architecture) {
  stop();
  const std::string compiler =
      compiler_ == By::kNvrtc ? "NVRTC " + nvrtc_version() + " " : nvcc_identity();
  const std::string headers = "headers-" + hash_of_headers();
  const std::string name = hash_of(compiler + headers + architecture + source);
  cubin_ = folder_ / (name + ".cubin");
  const fs::path file = folder_ / (name + ".cu");
  // Other texts may have the same hash.
  if (fs::exists(cubin_) && fs::exists(file) && read_text(file) == source) {
    // They are in use: what was used longest ago leaves the folder first.
    for (const fs::path& used : {cubin_, file}) {
      std::error_code ignored;
      fs::last_write_time(used, fs::file_time_type::clock::now(), ignored);
    }
    return;
  }
  write(file, source);
  made_ = own_name(cubin_);
  if (compiler_ == By::kNvrtc)
    begin_nvrtc(source, architecture);
  else
    begin_nvcc(folder_ / headers, architecture);
}

void CubinMaker::begin_nvrtc(const std::string& source, const std::string& architecture) {
  nvrtc_ = std::make_unique<Thread>();
  nvrtc_->done = std::async(std::launch::async, [=, to = cubin_, ends = &nvrtc_->ends] {
    write(to, compile_regions(source, architecture, ends));
  });
}

void CubinMaker::begin_nvcc(const fs::path& headers, const std::string& architecture) {
  write_headers(headers);
  ChildSettings silent{.input = ChildSettings::kNoStream, .is_apart = true};
  silent.output = silent.error = ChildSettings::kNoStream;
  nvcc_.emplace(
      std::vector<std::string>{"nvcc", "-arch=" + architecture, "-std=c++20", "-O2", "--fmad=false",
                               "--expt-relaxed-constexpr", "--jump-table-density=50",
                               architecture.starts_with("compute") ? "-ptx" : "-cubin",
                               "-I" + headers.string(), "-o", made_.string(),
                               fs::path(cubin_).replace_extension(".cu").string()},
      silent);
}

// NVRTC ends between its passes; the longest takes a few seconds.
void CubinMaker::stop() {
  nvcc_.reset();
  if (!nvrtc_) return;
  nvrtc_->ends = true;
  nvrtc_->done.wait();
  nvrtc_.reset();
}

void CubinMaker::wait() {
  if (nvcc_) nvcc_->wait();
  if (nvrtc_) nvrtc_->done.wait();
}

std::optional<fs::path> CubinMaker::take() {
  const bool is_new = nvrtc_ || nvcc_;
  if (nvrtc_) {
    if (nvrtc_->done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
    std::future<void> done = std::move(nvrtc_->done);
    nvrtc_.reset();
    done.get();
  }
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
  if (is_new) limit_folder(folder_, most_bytes_, std::chrono::hours(1));
  return cubin_;
}

}  // namespace gpusim::cuda
