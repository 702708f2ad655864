#include "host/journal/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "device_sim/base/error.h"
#include "translator/common/op_shape.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

// ChampSim takes an instruction's kind from the registers that it names.
constexpr uint8_t kFlags = 25, kInstructionPointer = 26, kAnyOther = 1;

std::optional<TraceFormat> format_of(std::string_view path) {
  path = without_compression(path);
  if (path.ends_with(".din")) return TraceFormat::kDin;
  if (path.ends_with(".ramulator")) return TraceFormat::kRamulator;
  if (path.ends_with(".champsim")) return TraceFormat::kChampSim;
  return std::nullopt;
}

bool reads(SiteKind kind) { return kind == SiteKind::kLoad || kind == SiteKind::kAtomic; }
bool writes(SiteKind kind) { return kind == SiteKind::kStore || kind == SiteKind::kAtomic; }

// The first place that is free; what an instruction has beyond them is left out, as ChampSim's own
// tracer does.
template <class Places>
void put(Places& places, uint64_t address) {
  const auto free = std::find(places.begin(), places.end(), uint64_t{0});
  if (free != places.end()) *free = address;
}

}  // namespace

TraceRequest parse_trace(const std::string& text, const std::string& region, uint32_t cores) {
  const size_t comma = text.rfind(',');
  const std::string path = text.substr(0, comma);
  std::optional<uint32_t> core;
  if (comma != std::string::npos) {
    uint32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + comma + 1, end, number);
    if (error != std::errc{} || stop != end || number >= cores)
      throw Error(fmt::format("--trace {}: expected FILE or FILE,CORE with a core from 0 to {}",
                              text, cores - 1));
    core = number;
  }
  const std::optional<TraceFormat> format = format_of(path);
  if (!format)
    throw Error(
        fmt::format("--trace {}: the name should end in .din (Dinero IV), .ramulator "
                    "(Ramulator 2) or .champsim (ChampSim), which says what it holds; behind that "
                    ".gz, .xz or .zst compress it",
                    path));
  if (*format == TraceFormat::kChampSim && !core && cores > 1)
    throw Error(fmt::format("--trace {}: ChampSim takes a trace of one core: name it, as in {},0",
                            path, path));
  const std::optional<InstructionRange> range = parse_range("--trace-region", region);
  return {OutputFile("--trace", path), *format, core, range, range ? "" : region};
}

TraceWriter::TraceWriter(const TraceRequest& request, const Module& module, uint32_t cores)
    : request_(request),
      module_(module),
      cores_(cores),
      compressor_(compressor_for(request.file.path())) {
  if (!request.function.empty()) {
    const Symbol* const function = find_symbol(module, request.function);
    if (!function)
      throw Error(fmt::format("--trace-region {}: the program has no function of that name",
                              request.function));
    function_ = function->address;
  }
  const OutputFile& file = request_.file;
  if (file.is_plain()) {
    part_ = fmt::format("{}.{}.trace.tmp", file.name(), ::getpid());
    fd_ = FileDescriptor(::openat(file.folder(), part_.c_str(),
                                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  } else {
    fd_ = FileDescriptor(::open(file.path().c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  }
  if (!fd_) fail();
}

TraceWriter::~TraceWriter() {
  if (!part_.empty()) ::unlinkat(request_.file.folder(), part_.c_str(), 0);
}

void TraceWriter::fail() const {
  throw Error(fmt::format("--trace {}: {}", request_.file.path(), std::strerror(errno)));
}

void TraceWriter::write_all(const std::string& text) {
  if (!compressor_) return write_raw(text);
  std::string packed;
  compressor_->add(text, packed);
  write_raw(packed);
}

void TraceWriter::write_raw(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    done += static_cast<size_t>(n);
  }
}

void TraceWriter::read(uint32_t core, std::span<const uint64_t> words,
                       std::span<const BlockSites> blocks) {
  if (!wants(core)) return;
  Core& c = cores_[core];
  for_each_word(
      words, blocks,
      [&](uint32_t number, const BlockSites&) {
        end_block(c, &module_.blocks[number]);
        begin_block(c, number);
      },
      [&](const AccessSite& site, uint64_t address) { access(c, site, address); });
}

// Of the block that the core is in.
bool TraceWriter::wants_instruction(const Core& core, uint32_t insn) const {
  if (request_.range) return request_.range->contains(core.executed + insn);
  return !function_ || core.in_function;
}

void TraceWriter::begin_block(Core& core, uint32_t number) {
  const Block& block = module_.blocks[number];
  if (function_) {
    if (core.in_function && block.pc == core.region_return) core.in_function = false;
    if (!core.in_function && block.pc == *function_) {
      core.in_function = true;
      core.region_return = core.last_end;
    }
  }
  core.at = number;
  core.fetched = 0;
  if (request_.format != TraceFormat::kChampSim) return;
  core.block.assign(block.insn_count, {});
  for (uint32_t i = 0; i < block.insn_count; ++i) core.block[i].pc = insn_pc(module_, block, i);
}

// What follows an access in its block is known to be executed once the core is elsewhere.
void TraceWriter::end_block(Core& core, const Block* next) {
  if (core.at == kNowhere) return;
  const Block& block = module_.blocks[core.at];
  if (request_.format == TraceFormat::kDin) fetch(core, block.insn_count);
  if (!core.block.empty()) {
    Record& last = core.block.back();
    const uint64_t unit = module_.code.unit_of(last.pc);
    const ShapeInfo shape = shape_of(module_.uops[block.first_uop + block.uop_count - 1].op);
    if (unit < module_.code.insn_class.size() &&
        module_.code.insn_class[unit] == static_cast<uint8_t>(InsnClass::kControlFlow)) {
      last.is_branch = 1;
      last.is_taken = next && next->pc != end_pc(module_, block);
      last.written_registers[0] = kInstructionPointer;
      last.read_registers[0] = kInstructionPointer;
      if (shape.falls_through) last.read_registers[1] = kFlags;
      if (!shape.falls_through && !shape.has_target) last.read_registers[1] = kAnyOther;
    }
    for (uint32_t i = 0; i < core.block.size(); ++i)
      if (wants_instruction(core, i))
        core.text.append(reinterpret_cast<const char*>(&core.block[i]), sizeof(Record));
    core.block.clear();
  }
  core.executed += block.insn_count;
  core.last_end = end_pc(module_, block);
  core.at = kNowhere;
}

void TraceWriter::fetch(Core& core, uint32_t instructions) {
  for (; core.fetched < instructions; ++core.fetched)
    if (wants_instruction(core, core.fetched))
      fmt::format_to(std::back_inserter(core.text), "2 {:x}\n",
                     insn_pc(module_, module_.blocks[core.at], core.fetched));
}

void TraceWriter::access(Core& core, const AccessSite& site, uint64_t address) {
  if (!has_address(site.kind) || core.at == kNowhere) return;
  const auto out = std::back_inserter(core.text);
  switch (request_.format) {
    case TraceFormat::kDin:
      fetch(core, site.insn + 1);
      if (!wants_instruction(core, site.insn)) return;
      if (reads(site.kind)) fmt::format_to(out, "0 {:x}\n", address);
      if (writes(site.kind)) fmt::format_to(out, "1 {:x}\n", address);
      return;
    case TraceFormat::kRamulator:
      if (!wants_instruction(core, site.insn)) return;
      if (reads(site.kind)) fmt::format_to(out, "LD {:#x}\n", address);
      if (writes(site.kind)) fmt::format_to(out, "ST {:#x}\n", address);
      return;
    case TraceFormat::kChampSim:
      if (site.insn >= core.block.size()) return;
      if (reads(site.kind)) put(core.block[site.insn].read, address);
      if (writes(site.kind)) put(core.block[site.insn].written, address);
      return;
  }
}

void TraceWriter::end_slice() {
  for (Core& core : cores_) {
    write_all(core.text);
    core.text.clear();
  }
}

void TraceWriter::finish() {
  for (Core& core : cores_) end_block(core, nullptr);
  end_slice();
  if (compressor_) {
    std::string packed;
    compressor_->finish(packed);
    write_raw(packed);
  }
  if (::close(fd_.release()) < 0) fail();
  if (part_.empty()) return;
  const OutputFile& file = request_.file;
  if (::renameat(file.folder(), part_.c_str(), file.folder(), file.name().c_str()) < 0) fail();
  part_.clear();
}

}  // namespace gpusim::host
