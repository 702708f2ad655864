// Shared objects that see what a program does (gpusim_plugin.h).
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/journal/journals.h"
#include "host/plugin/gpusim_plugin.h"

namespace gpusim::host {

class PluginHost final : public JournalReader {
 public:
  // Part of this program: does what gpusim_plugin_install() does.
  using OwnPlugin = std::function<void(const gpusim_host_t& host)>;

  // Each "FILE[,ARGUMENT]...". Loads them and asks what they want. Throws Error.
  explicit PluginHost(const std::vector<std::string>& plugins,
                      const std::vector<OwnPlugin>& own = {});
  ~PluginHost() override;

  // Whether the program is to be translated with a journal.
  bool wants_journal() const;
  // Whether block_use() is to know lanes.
  bool wants_lanes() const { return !callbacks_.empty(); }

  // The machine is ready; nothing has run yet. All must outlive this.
  void start(const std::string& program, const Module& module, Backend& backend,
             const MachineConfig& config);
  // Blocks that were translated since the last call are announced.
  void announce_blocks();
  void end();

  // A guest instruction, as text.
  std::string describe(uint64_t address) const;

  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;

  struct Callbacks;  // of one plug-in

 private:
  std::deque<Callbacks> callbacks_;  // they know their addresses
  const Module* module_ = nullptr;
  Backend* backend_ = nullptr;
  MachineConfig config_;
  size_t announced_ = 0;  // blocks
  std::vector<uint64_t> executions_, lanes_;  // per block, at the end
};

}  // namespace gpusim::host
