// Images of the program and modules of the driver API: registered, loaded when first wanted.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "device_sim/base/error.h"
#include "host/cuda_api/image.h"
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {
namespace {

std::span<const std::byte> bytes_at(const void* address) {
  return {static_cast<const std::byte*>(address), readable_bytes(address)};
}

// The containers that a wrapper names: one, or those of separably compiled units.
std::vector<std::span<const std::byte>> containers_of(const void* address) {
  const std::span<const std::byte> bytes = bytes_at(address);
  if (bytes.size() < sizeof(Wrapper)) throw Error("fat binary: its wrapper cannot be read");
  Wrapper wrapper;
  std::memcpy(&wrapper, address, sizeof wrapper);
  if (wrapper.magic != kWrapperMagic)
    throw Error("fat binary: its wrapper does not begin with its magic number");
  if (wrapper.version == 1) return {bytes_at(wrapper.container)};
  if (wrapper.version != 2)
    throw Error(fmt::format("fat binary: a wrapper of version {}, not 1 or 2", wrapper.version));
  std::vector<std::span<const std::byte>> units;
  const std::span<const std::byte> list = bytes_at(wrapper.units);
  for (size_t i = 0; (i + 1) * sizeof(void*) <= list.size(); ++i) {
    if (wrapper.units[i] == nullptr) break;
    units.push_back(bytes_at(wrapper.units[i]));
  }
  return units;
}

uint32_t highest_architecture(std::span<const std::byte> container) {
  uint32_t highest = 0;
  for (const Entry& entry : read_container(container))
    if (entry.kind == EntryKind::kPtx) highest = std::max(highest, entry.architecture);
  return highest;
}

bool begins_as_text(std::span<const std::byte> bytes) {
  return !bytes.empty() && (std::isprint(static_cast<unsigned char>(bytes[0])) != 0 ||
                            std::isspace(static_cast<unsigned char>(bytes[0])) != 0);
}

}  // namespace

LoadedImage* Runtime::add_image(const void* wrapper) {
  auto image = std::make_unique<LoadedImage>();
  try {
    image->containers = containers_of(wrapper);
    for (const auto& container : image->containers)
      image->architecture = std::max(image->architecture, highest_architecture(container));
  } catch (const Error& error) {
    image->failure = error.what();
    image->failure_status = kInvalidKernelImage;
  }
  const std::lock_guard lock(mutex);
  images.insert(image.get());
  return image.release();
}

LoadedImage* Runtime::add_units(std::vector<NamedText> units) {
  auto image = std::make_unique<LoadedImage>();
  image->units = std::move(units);
  load(*image);
  const std::lock_guard lock(mutex);
  images.insert(image.get());
  return image.release();
}

LoadedImage* Runtime::add_module(const void* data) {
  const std::span<const std::byte> bytes = bytes_at(data);
  require(bytes.size() >= 4);
  uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  // A container begins with a letter, too.
  if (magic != kContainerMagic && magic != kWrapperMagic && begins_as_text(bytes)) {
    const void* end = std::memchr(bytes.data(), 0, bytes.size());
    require(end != nullptr, kInvalidKernelImage);
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    return add_units({{"module", std::string(begin, static_cast<const char*>(end))}});
  }
  if (magic == 0x464c457f) {
    say("a module is machine code (a cubin), and gpusim runs PTX: let the program load PTX, or a "
        "fat binary with PTX");
    refuse(kNoKernelImageForDevice);
  }
  auto image = std::make_unique<LoadedImage>();
  try {
    if (magic == kWrapperMagic)
      image->containers = containers_of(data);
    else
      image->containers = {bytes};
    for (const auto& container : image->containers)
      image->architecture = std::max(image->architecture, highest_architecture(container));
  } catch (const Error& error) {
    say(error.what());
    refuse(kInvalidKernelImage);
  }
  load(*image);
  const std::lock_guard lock(mutex);
  images.insert(image.get());
  return image.release();
}

LoadedImage* Runtime::add_module_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), kFileNotFound);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return add_module(bytes.c_str());
}

LoadedImage& Runtime::image_of(void* handle) {
  const std::lock_guard lock(mutex);
  const auto at = images.find(static_cast<LoadedImage*>(handle));
  require(at != images.end(), kInvalidResourceHandle);
  return **at;
}

Function* Runtime::kernel_named(LoadedImage& image, const std::string& name) {
  {
    const std::lock_guard lock(mutex);
    const auto at = image.by_name.find(name);
    if (at != image.by_name.end()) return at->second;
  }
  require(has_kernel(image, name), kSymbolNotFound);
  return add_function(image, nullptr, name);
}

void Runtime::remove_image(LoadedImage* image) {
  {
    const std::lock_guard lock(mutex);
    if (images.erase(image) == 0) refuse(kInvalidResourceHandle);
  }
  if (!is_forked()) queue.drain();
  const std::lock_guard lock(engine_mutex_);
  {
    const std::lock_guard tables(mutex);
    std::erase_if(by_stub, [&](const auto& item) { return item.second->image == image; });
  }
  for (const auto& [host, v] : image->variables)
    if (v.address != nullptr) memory.remove(v.address);
  if (image->module != nullptr) engine().unload(image->module);
  delete image;
}

void Runtime::load(LoadedImage& image) {
  {
    const std::lock_guard lock(engine_mutex_);
    if (image.module != nullptr) return;
    if (image.failure.empty()) try {
        if (image.units.empty())
          for (const auto& container : image.containers)
            image.units.push_back(
                {fmt::format("unit {}", image.units.size() + 1), highest_ptx(container).ptx});
        try {
          image.module = engine().load(image.units);
          image.units.clear();
        } catch (const Error&) {
          image.failure_status = kInvalidPtx;
          throw;
        }
      } catch (const Error& error) {
        image.failure = error.what();
        say(image.failure);
      }
  }
  if (image.module == nullptr) refuse(image.failure_status);
  put_variables(image);
}

void Runtime::put_variables(LoadedImage& image) {
  const std::lock_guard lock(engine_mutex_);
  for (auto& [host, v] : image.variables) {
    const std::optional<Variable> found = engine().find_variable(image.module, v.name);
    if (!found) continue;  // nvcc leaves unused static ones out
    {
      const std::lock_guard tables(mutex);
      v.address = found->address;
    }
    memory.add(v.address, found->size_bytes,
               v.managed_pointer != nullptr ? kManagedMemory : kDeviceMemory,
               fmt::format("variable '{}'", readable_name(v.name)));
    if (v.managed_pointer != nullptr) *v.managed_pointer = v.address;
  }
}

void Runtime::load_managed(LoadedImage& image) {
  for (const auto& [host, v] : image.variables)
    if (v.managed_pointer != nullptr) return load(image);
}

Function* Runtime::add_function(LoadedImage& image, const void* host, std::string name) {
  auto made = std::make_unique<Function>();
  made->image = &image;
  made->name = std::move(name);
  const std::lock_guard lock(mutex);
  Function* const f = image.functions.emplace_back(std::move(made)).get();
  by_stub[f] = f;
  if (host != nullptr) by_stub[host] = f;
  image.by_name[f->name] = f;
  return f;
}

Function& Runtime::function(const void* handle) {
  const std::lock_guard lock(mutex);
  const auto at = by_stub.find(handle);
  require(at != by_stub.end(), kInvalidDeviceFunction);
  return *at->second;
}

const KernelFacts& Runtime::facts_of(Function& f) {
  // Without the engine's lock, which a running kernel holds.
  if (f.is_ready.load(std::memory_order_acquire)) return *f.facts;
  load(*f.image);
  const std::lock_guard lock(engine_mutex_);
  if (f.facts == nullptr) {
    try {
      f.facts = engine().find_kernel(f.image->module, f.name);
    } catch (const Error& error) {
      say(error.what());
      refuse(kNotSupported);
    }
    if (f.facts == nullptr) {
      say(fmt::format("kernel {}: the program's PTX does not have it", readable_name(f.name)));
      refuse(kInvalidDeviceFunction);
    }
    f.is_ready.store(true, std::memory_order_release);
  }
  return *f.facts;
}

bool Runtime::has_kernel(LoadedImage& image, const std::string& name) {
  load(image);
  const std::lock_guard lock(engine_mutex_);
  try {
    return engine().find_kernel(image.module, name) != nullptr;
  } catch (const Error&) {
    return true;  // it is there, and says at its launch why it cannot run
  }
}

std::optional<Variable> Runtime::find_global(LoadedImage& image, const std::string& name) {
  load(image);
  const std::lock_guard lock(engine_mutex_);
  const std::optional<Variable> found = engine().find_variable(image.module, name);
  if (!found) return found;
  const std::lock_guard tables(mutex);
  DeviceVariable& v = image.variables[found->address];
  if (v.address == nullptr) {
    v = {.name = name, .size_bytes = found->size_bytes, .address = found->address};
    memory.add(v.address, v.size_bytes, kDeviceMemory,
               fmt::format("variable '{}'", readable_name(name)));
  }
  return found;
}

DeviceVariable& Runtime::variable(const void* host) {
  LoadedImage* owner = nullptr;
  DeviceVariable* found = nullptr;
  {
    const std::lock_guard lock(mutex);
    for (LoadedImage* image : images) {
      const auto at = image->variables.find(host);
      if (at != image->variables.end()) owner = image, found = &at->second;
    }
    if (found != nullptr && found->address != nullptr) return *found;
  }
  require(owner != nullptr, kInvalidSymbol);
  load(*owner);
  require(found->address != nullptr, kInvalidSymbol);
  return *found;
}

}  // namespace gpusim::cuda_api
