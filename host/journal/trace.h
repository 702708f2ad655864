// `gpusim run --trace`: what cores execute and access, in the formats of other simulators.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/base/file_descriptor.h"
#include "device_sim/uir/module.h"
#include "host/journal/compressor.h"
#include "host/journal/instruction_range.h"
#include "host/journal/journals.h"
#include "host/output_file.h"

namespace gpusim::host {

enum class TraceFormat : uint8_t {
  kDin,        // Dinero IV: "0 1f00" reads, "1 ..." writes, "2 ..." fetches an instruction
  kRamulator,  // Ramulator 2, LoadStoreTrace: "LD 0x1f00", "ST ..."
  kChampSim,   // a record of 64 bytes for each instruction
};

struct TraceRequest {
  OutputFile file;
  TraceFormat format;
  std::optional<uint32_t> core;  // none: all, one after the other in each slice
  // At most one of them: only these of each core's own instructions, or calls of this function.
  std::optional<InstructionRange> range;
  std::string function;
};
// "FILE[,CORE]", the format by the end of the file's name, behind which .gz, .xz or .zst may stand;
// `region`: "FROM..TO", a function's name, or nothing. Throws Error.
TraceRequest parse_trace(const std::string& text, const std::string& region, uint32_t cores);

class TraceWriter final : public JournalReader {
 public:
  // Throws Error if the program lacks the function.
  TraceWriter(const TraceRequest& request, const Module& module, uint32_t cores);
  ~TraceWriter() override;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;
  void end_slice() override;
  // The file gets its name.
  void finish();

 private:
  // Of ChampSim's trace: instructions of a block are written once the next one begins, which says
  // whether its branch was taken.
  struct Record {
    uint64_t pc = 0;
    uint8_t is_branch = 0, is_taken = 0;
    std::array<uint8_t, 2> written_registers{};
    std::array<uint8_t, 4> read_registers{};
    std::array<uint64_t, 2> written{};
    std::array<uint64_t, 4> read{};
  };
  static_assert(sizeof(Record) == 64);
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  struct Core {
    std::string text;           // of this slice
    std::vector<Record> block;  // kChampSim: begun, and its end not seen
    uint32_t at = kNowhere;     // the block that it is in
    uint32_t fetched = 0;       // kDin: instructions of it
    // Of a region: instructions before that block; inside the function, which it leaves at
    // `region_return`, behind its call; end of the block before.
    uint64_t executed = 0;
    bool in_function = false;
    uint64_t region_return = 0, last_end = 0;
  };
  bool wants(uint32_t core) const { return !request_.core || *request_.core == core; }
  bool wants_instruction(const Core& core, uint32_t insn) const;
  void begin_block(Core& core, uint32_t number);
  void end_block(Core& core, const Block* next);
  void fetch(Core& core, uint32_t instructions);
  void access(Core& core, const AccessSite& site, uint64_t address);
  void write_all(const std::string& text);
  void write_raw(const std::string& bytes);
  [[noreturn]] void fail() const;

  const TraceRequest& request_;
  const Module& module_;
  std::vector<Core> cores_;
  std::optional<uint64_t> function_;  // its address
  std::unique_ptr<Compressor> compressor_;
  FileDescriptor fd_;
  std::string part_;  // the file's name until it is finished; empty: it is written in place
};

}  // namespace gpusim::host
