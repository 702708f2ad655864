// The one list of backends.
#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include "device_sim/base/nearest_name.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/devices.h"
#include "device_sim/core/linear_space.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/cuda/core_state.h"
#include "device_sim/cuda/cuda_backend.h"
#include "device_sim/scalar/scalar_backend.h"
#include "device_sim/simd/simd_backend.h"

namespace gpusim {
namespace {

bool always(std::string*) { return true; }

template <class B>
std::unique_ptr<Backend> create() {
  return std::make_unique<B>();
}
std::unique_ptr<Backend> create_cuda() { return cuda::create({}); }
template <class B>
std::string device_of() {
  return B{}.device();
}

struct Row {
  BackendInfo info;
  BackendTraits traits;
  // Of a backend with devices to choose from.
  std::vector<DeviceInfo> (*devices)() = nullptr;
  std::unique_ptr<Backend> (*create_on)(std::span<const uint32_t>) = nullptr;
  std::unique_ptr<LinearSpace> (*create_space)(const LinearSpaceRequest&) = nullptr;
  bool (*reset)(std::string* why_not) = nullptr;
};
constexpr Row kRows[] = {
    {{"simd", SimdBackend::available, device_of<SimdBackend>, create<SimdBackend>,
      SimdBackend::kSchedulingBytes, true, true},
     {.notes_clocks = true, .cores_per_tile = MachineState::kTileCores}},
    {{"scalar", always, device_of<ScalarBackend>, create<ScalarBackend>,
      ScalarBackend::kSchedulingBytes, true, true},
     {.notes_clocks = true}},
    // Last, so that `auto` takes it only where somebody looked whether it works
    // (host/backend_choice.h).
    {{"cuda", cuda::available, cuda::device_name, create_cuda, cuda::kSchedulingBytes, true, true},
     {.is_on_device = true,
      .always_counts_cores = false,
      .cores_per_tile = MachineState::kTileCores},
     cuda::devices,
     cuda::create,
     cuda::create_space,
     cuda::reset},
};
constexpr auto kBackends = [] {
  std::array<BackendInfo, std::size(kRows)> infos{};
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

const Row* row_of(std::string_view backend) {
  for (const Row& row : kRows)
    if (backend == row.info.name) return &row;
  return nullptr;
}

}  // namespace

BackendTraits traits_of(std::string_view backend) {
  const Row* const row = row_of(backend);
  return row ? row->traits : BackendTraits{};
}

std::span<const BackendInfo> all_backends() { return kBackends; }

std::unique_ptr<Backend> make_backend(const std::string& name, BackendNeeds needs) {
  std::string known;
  std::vector<std::string_view> names{"auto"};
  for (const BackendInfo& info : kBackends) {
    names.push_back(info.name);
    std::string why;
    bool available = info.available(&why);
    if (available && needs.in_place && !info.works_in_place) {
      available = false;
      why = "it has memory of its own, and this use works on the caller's";
    }
    if (available && needs.warps && !info.runs_warps) {
      available = false;
      why = "it runs no programs with warps and CTAs";
    }
    if (name == "auto" && available) return info.create();
    if (name == info.name) {
      if (available) return info.create();
      throw std::runtime_error("backend " + name + " cannot run here: " + why);
    }
    known += std::string(known.empty() ? "" : ", ") + info.name;
  }
  throw std::runtime_error("no backend named " + name + did_you_mean(name, names) +
                           "; there are: auto, " + known);
}

std::vector<DeviceInfo> devices_of(std::string_view backend) {
  const Row* const row = row_of(backend);
  return row && row->devices ? row->devices() : std::vector<DeviceInfo>();
}

const BackendInfo& backend_with_devices() {
  return std::find_if(std::begin(kRows), std::end(kRows),
                      [](const Row& row) { return row.devices != nullptr; })
      ->info;
}

std::unique_ptr<Backend> make_backend_on(const std::string& name,
                                         std::span<const uint32_t> devices) {
  const Row* const row = row_of(name);
  return row && row->create_on && !devices.empty() ? row->create_on(devices) : make_backend(name);
}

std::unique_ptr<LinearSpace> make_linear_space(std::string_view backend,
                                               const LinearSpaceRequest& request) {
  const Row* const row = row_of(backend);
  if (row && row->create_space) return row->create_space(request);
  if (request.way != "auto")
    throw std::runtime_error("backend " + std::string(backend) +
                             " always works on the caller's memory; leave out how it reaches it (" +
                             request.way + ")");
  return nullptr;
}

const char* name_of(LinearSpace::Way way) {
  switch (way) {
    case LinearSpace::Way::kRegistered:
      return "registered";
    case LinearSpace::Way::kPageable:
      return "pageable";
    case LinearSpace::Way::kCopied:
      return "copied";
  }
  return "?";
}

bool reset_device(std::string_view backend, std::string* why_not) {
  const Row* const row = row_of(backend);
  return !row || !row->reset || row->reset(why_not);
}

}  // namespace gpusim
