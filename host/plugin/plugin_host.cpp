#include "host/plugin/plugin_host.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "translator/common/guest_isa.h"
#include "translator/common/op_shape.h"
#include "translator/common/translator.h"

namespace gpusim::host {

namespace {

template <class F>
struct Subscription {
  F call = nullptr;
  void* user = nullptr;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

using AccessCall = void (*)(void*, uint32_t, uint32_t, const gpusim_access_t*, size_t);

}  // namespace

struct PluginHost::Callbacks {
  PluginHost* owner = nullptr;
  std::string file;
  void* library = nullptr;
  bool is_installing = true;
  gpusim_host_t host{};
  Subscription<void (*)(void*, const gpusim_run_t*)> start;
  Subscription<void (*)(void*, const gpusim_block_t*)> translation;
  Subscription<void (*)(void*, uint32_t, uint32_t, const uint32_t*, size_t)> blocks;
  Subscription<AccessCall> accesses, synchronisation;
  Subscription<void (*)(void*)> end;

  bool wants_journal() const { return blocks.call || accesses.call || synchronisation.call; }
  gpusim_block_use_t block_use(uint32_t block) const {
    if (block >= owner->executions_.size()) return {0, 0};
    return {owner->executions_[block], block < owner->lanes_.size() ? owner->lanes_[block] : 0};
  }
};

namespace {

using Callbacks = PluginHost::Callbacks;

// A function of gpusim_host that fills a subscription.
template <auto member, class F>
void subscribe(void* self, F call, void* user) {
  Callbacks& c = *static_cast<Callbacks*>(self);
  if (c.is_installing) c.*member = {call, user};
}

const char* disassemble(void* self, uint64_t address) {
  thread_local std::string text;
  const Callbacks& c = *static_cast<Callbacks*>(self);
  text = c.owner->describe(address);
  return text.c_str();
}

gpusim_host_t functions_for(Callbacks& c) {
  return {
      .version = GPUSIM_PLUGIN_VERSION,
      .self = &c,
      .on_start = subscribe<&Callbacks::start>,
      .on_translation = subscribe<&Callbacks::translation>,
      .on_blocks = subscribe<&Callbacks::blocks>,
      .on_accesses = subscribe<&Callbacks::accesses>,
      .on_synchronisation = subscribe<&Callbacks::synchronisation>,
      .on_end = subscribe<&Callbacks::end>,
      .block_use = [](void* self,
                      uint32_t block) { return static_cast<Callbacks*>(self)->block_use(block); },
      .disassemble = disassemble};
}

void install(Callbacks& c, const std::vector<std::string>& parts) {
  // Without a slash dlopen would search the system's folders.
  c.file = parts[0];
  const std::string path = c.file.find('/') == std::string::npos ? "./" + c.file : c.file;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown)
    throw Error(
        fmt::format("--plugin {}: No such file or directory{}; expected a shared object "
                    "that was compiled with gpusim_plugin.h",
                    c.file, nearest_file(c.file)));
  c.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!c.library) throw Error(fmt::format("--plugin {}: {}", c.file, dlerror()));
  const auto entry =
      reinterpret_cast<decltype(&gpusim_plugin_install)>(dlsym(c.library, "gpusim_plugin_install"));
  if (!entry)
    throw Error(
        fmt::format("--plugin {}: it defines no gpusim_plugin_install(): not a plug-in "
                    "of gpusim",
                    c.file));
  const auto* const version =
      static_cast<const uint32_t*>(dlsym(c.library, "gpusim_plugin_version"));
  if (!version || *version != GPUSIM_PLUGIN_VERSION)
    throw Error(fmt::format(
        "--plugin {}: it {}; this gpusim has version {}: compile it again with this gpusim's "
        "gpusim_plugin.h",
        c.file,
        version ? fmt::format("was made for version {} of the plug-in interface", *version)
                : "exports no gpusim_plugin_version, the version of the plug-in interface that "
                  "it was made for",
        GPUSIM_PLUGIN_VERSION));
  std::vector<const char*> arguments;
  for (size_t i = 1; i < parts.size(); ++i) arguments.push_back(parts[i].c_str());
  c.host = functions_for(c);
  char error[512] = "";
  const int status =
      entry(&c.host, static_cast<int>(arguments.size()), arguments.data(), error, sizeof error);
  error[sizeof error - 1] = 0;
  c.is_installing = false;
  if (status != 0)
    throw Error(fmt::format(
        "--plugin {}: {}", c.file,
        error[0] ? std::string(error) : fmt::format("it gave up with status {}", status)));
}

gpusim_access_t access_of(uint32_t block, const AccessSite& site, uint64_t address) {
  return {.address = address,
          .block = block,
          .instruction = static_cast<uint16_t>(site.insn),
          .bytes = site.bytes,
          .kind = static_cast<uint8_t>(site.kind)};
}
static_assert(static_cast<int>(SiteKind::kAtomic) == GPUSIM_ATOMIC &&
              static_cast<int>(SiteKind::kSignalEvent) == GPUSIM_SIGNAL_EVENT);

}  // namespace

PluginHost::PluginHost(const std::vector<std::string>& plugins, const std::vector<OwnPlugin>& own) {
  for (const std::string& plugin : plugins) {
    Callbacks& c = callbacks_.emplace_back();
    c.owner = this;
    install(c, split(plugin));
  }
  for (const OwnPlugin& plugin : own) {
    Callbacks& c = callbacks_.emplace_back();
    c.owner = this;
    c.host = functions_for(c);
    plugin(c.host);
    c.is_installing = false;
  }
}

// Libraries stay loaded: they may have left threads or functions to be called at exit.
PluginHost::~PluginHost() = default;

bool PluginHost::wants_journal() const {
  return std::any_of(callbacks_.begin(), callbacks_.end(),
                     [](const Callbacks& c) { return c.wants_journal(); });
}

std::string PluginHost::describe(uint64_t address) const {
  return describe_instruction(*module_, address);
}

void PluginHost::start(const std::string& program, const Module& module, Backend& backend,
                       const MachineConfig& config) {
  module_ = &module;
  backend_ = &backend;
  config_ = config;
  const std::string name = backend.name();
  const gpusim_run_t run{.program = program.c_str(),
                         .isa = module.isa.c_str(),
                         .backend = name.c_str(),
                         .cores = config.cores,
                         .group_width = config.group_width,
                         .class_count = kInsnClassCount,
                         .class_names = kInsnClassNames};
  for (const Callbacks& c : callbacks_)
    if (c.start.call) c.start.call(c.start.user, &run);
  announce_blocks();
}

void PluginHost::announce_blocks() {
  if (std::none_of(callbacks_.begin(), callbacks_.end(),
                   [](const Callbacks& c) { return c.translation.call; }))
    return;
  const Module& m = *module_;
  for (; announced_ < m.blocks.size(); ++announced_) {
    const Block& block = m.blocks[announced_];
    std::vector<gpusim_instruction_t> instructions(block.insn_count);
    for (uint32_t i = 0; i < block.insn_count; ++i) {
      const uint64_t pc = insn_pc(m, block, i);
      const GuestInsn insn = instruction_at(m, pc);
      instructions[i] = {.address = pc,
                         .bytes = insn ? insn.bytes.data() : nullptr,
                         .size = static_cast<uint8_t>(insn_pc(m, block, i + 1) - pc),
                         .class_index = m.code.insn_class[m.code.unit_of(pc)]};
    }
    const Uop& end = m.uops[block.first_uop + block.uop_count - 1];
    const std::string symbol = symbolize(m, block.pc);
    const gpusim_block_t announced{.number = static_cast<uint32_t>(announced_),
                                   .instruction_count = block.insn_count,
                                   .address = block.pc,
                                   .end = end_pc(m, block),
                                   .ends_in_branch = shape_of(end.op).falls_through,
                                   .symbol = symbol.c_str(),
                                   .instructions = instructions.data()};
    for (const Callbacks& c : callbacks_)
      if (c.translation.call) c.translation.call(c.translation.user, &announced);
  }
}

void PluginHost::read(uint32_t core, std::span<const uint64_t> words,
                      std::span<const BlockSites> blocks) {
  thread_local std::vector<uint32_t> entered;
  thread_local std::vector<gpusim_access_t> accesses, synchronisation;
  entered.clear();
  accesses.clear();
  synchronisation.clear();
  uint32_t block = 0;
  for_each_word(
      words, blocks,
      [&](uint32_t number, const BlockSites&) {
        block = number;
        entered.push_back(number);
      },
      [&](const AccessSite& site, uint64_t address) {
        const gpusim_access_t access = access_of(block, site, address);
        if (has_address(site.kind)) accesses.push_back(access);
        if (site.kind >= SiteKind::kAtomic) synchronisation.push_back(access);
      });
  const uint32_t group = core / config_.group_width;
  const auto send = [&](const Subscription<AccessCall>& to, const auto& list) {
    if (to.call && !list.empty()) to.call(to.user, group, core, list.data(), list.size());
  };
  for (const Callbacks& c : callbacks_) {
    if (c.blocks.call) c.blocks.call(c.blocks.user, group, core, entered.data(), entered.size());
    send(c.accesses, accesses);
    send(c.synchronisation, synchronisation);
  }
}

void PluginHost::end() {
  if (callbacks_.empty()) return;
  announce_blocks();
  executions_ = backend_->block_counts();
  lanes_ = backend_->block_lanes();
  for (const Callbacks& c : callbacks_)
    if (c.end.call) c.end.call(c.end.user);
}

}  // namespace gpusim::host
