// A scalar machine with a kernel model, whose system calls a test makes itself.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host/linux/kernel.h"
#include "host/loader.h"
#include "tests/unit/host/temporary_folders.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim::host {
namespace fs = std::filesystem;

inline constexpr uint64_t kBuffer = kToyData + 0x100;
inline constexpr uint64_t kCreate = 0100, kWriteOnly = 1, kReadWrite = 2;

struct Machine {
  Module module = toy_module();
  MemoryPlan plan;
  std::unique_ptr<Backend> backend = make_backend("scalar");
  const TemporaryFolders own;  // `folder`, a writable root, and what is beside it
  const fs::path folder = own.base / "root";
  std::vector<std::string> notes;
  std::unique_ptr<Kernel> kernel;

  explicit Machine(MemoryModel model = MemoryModel::kShared, uint32_t cores = 4) {
    fs::create_directories(folder);
    plan = plan_memory(module, {.model = model, .cores = cores});
    backend->configure(module, plan.config);
    load_image(*backend, module, plan);
    kernel = std::make_unique<Kernel>(
        *backend, Kernel::Config{.plan = &plan,
                                 .module = &module,
                                 .roots = {{folder, true}},
                                 .program = "/proc/self/exe",
                                 .note = [this](const std::string& n) { notes.push_back(n); }});
  }

  Reply call(uint32_t core, uint64_t number, std::vector<uint64_t> args = {}) {
    args.resize(6);
    for (Slot i = 0; i < 6; ++i) backend->set_slot(core, i, args[i]);
    backend->set_slot(core, 8, number);
    return kernel->handle(core, 0);
  }
  int64_t result(uint64_t number, std::vector<uint64_t> args = {}, uint32_t core = 0) {
    const Reply reply = call(core, number, std::move(args));
    CHECK(reply.kind == Reply::Kind::kResult);
    return reply.value;
  }
  void put(uint64_t address, const std::string& text, uint32_t core = 0) {
    REQUIRE(backend->write_memory(
        core, address, {reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1}));
  }
  std::string get(uint64_t address, size_t size, uint32_t core = 0) {
    std::string text(size, 0);
    REQUIRE(backend->read_memory(core, address, {reinterpret_cast<uint8_t*>(text.data()), size}));
    return text;
  }
  template <class T>
  T load(uint64_t address, uint32_t core = 0) {
    T value{};
    REQUIRE(
        backend->read_memory(core, address, {reinterpret_cast<uint8_t*>(&value), sizeof value}));
    return value;
  }
  template <class T>
  void store(uint64_t address, const T& value, uint32_t core = 0) {
    REQUIRE(backend->write_memory(core, address,
                                  {reinterpret_cast<const uint8_t*>(&value), sizeof value}));
  }
  int64_t open(const std::string& path, uint64_t flags) {
    put(kBuffer, path);
    return result(56, {static_cast<uint64_t>(-100), kBuffer, flags, 0644});
  }
};

}  // namespace gpusim::host
