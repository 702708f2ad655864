#include "host/ptx/check_sites.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "device_sim/core/ctas.h"
#include "device_sim/uir/access.h"
#include "device_sim/uir/journal.h"
#include "device_sim/uir/warp.h"
#include "translator/ptx/notes.h"

namespace gpusim::ptx {
namespace {

using SiteKind = CheckSite::Kind;

bool has(const std::string& opcode, std::string_view modifier) {
  for (size_t at = opcode.find('.'); at != std::string::npos;) {
    const size_t next = opcode.find('.', at + 1);
    if (std::string_view(opcode).substr(at + 1, next - at - 1) == modifier) return true;
    at = next;
  }
  return false;
}

bool waits(const Uop& u) {
  return u.op == Op::cta_sync || u.op == Op::cta_reduce || u.op == Op::warp_sync;
}

CheckSite arrival(const Uop& u) {
  CheckSite s{.kind = SiteKind::kArrive};
  if (u.op == Op::warp_sync) {
    s.is_of_warp = true;
    s.values = WarpFields::unpack(u.imm).mask_in_slot ? 1 : 0;
    return s;
  }
  if (is_of_cluster(u)) {
    s.barrier = CheckSite::kClusterBarrier;
    s.waits = u.aux == static_cast<uint8_t>(CtaSync::kClusterWait);
    return s;
  }
  const BarrierFields f = BarrierFields::unpack(u.imm);
  s.barrier = f.barrier;
  s.threads = f.threads;
  s.barrier_in_word = f.barrier_in_slot;
  s.threads_in_word = f.threads_in_slot;
  s.values = static_cast<uint8_t>(f.barrier_in_slot + f.threads_in_slot);
  s.waits = u.op == Op::cta_reduce || u.aux != static_cast<uint8_t>(CtaSync::kArrive);
  return s;
}

CheckSite access(const Uop& note, const std::string& opcode) {
  CheckSite s;
  s.bytes = NoteField::bytes(note);
  s.kind = NoteField::kind(note) == AccessKind::kLoad    ? SiteKind::kLoad
           : NoteField::kind(note) == AccessKind::kStore ? SiteKind::kStore
                                                         : SiteKind::kAtomic;
  s.is_access = opcode.starts_with("ld") || opcode.starts_with("st") ||
                opcode.starts_with("atom") || opcode.starts_with("red");
  s.acquires = has(opcode, "acquire") || has(opcode, "acq_rel");
  s.releases = has(opcode, "release") || has(opcode, "acq_rel");
  s.is_strong = s.kind == SiteKind::kAtomic || s.acquires || s.releases ||
                has(opcode, "volatile") || has(opcode, "relaxed") || has(opcode, "mmio");
  return s;
}

}  // namespace

const char* CheckSite::verb() const {
  return kind == SiteKind::kAtomic  ? "updates atomically"
         : kind == SiteKind::kStore ? "writes"
                                    : "reads";
}

CheckSites check_sites(const KernelCode& code) {
  const Module& m = code.module;
  CheckSites all(m.blocks.size());
  for (size_t b = 0; b < m.blocks.size(); ++b) {
    const Block& block = m.blocks[b];
    for (uint32_t i = block.first_uop; i < block.first_uop + block.uop_count; ++i) {
      const Uop& u = m.uops[i];
      if (u.op != Op::note || u.aux == kNoteBlock) continue;
      static const StaticInstruction unknown{};
      const StaticInstruction* const known = code.instruction_of(i);
      const StaticInstruction& insn = known != nullptr ? *known : unknown;
      CheckSite s;
      if (u.aux == kNoteStamp) {
        // Behind its row, or before it, with the words of the row between.
        uint32_t next = i + 1;
        while (is_value_note(m.uops[next])) ++next;
        const Uop& before = m.uops[i - 1];
        if (before.op == Op::fence)
          s.kind = SiteKind::kFence;
        else if (waits(before))
          s = arrival(before), s.kind = SiteKind::kPass;
        else
          s = arrival(m.uops[next]);
      } else if (is_value_note(u)) {
        s.kind = SiteKind::kValue;
        if (op_info(m.uops[i - 1].op).shape == Shape::kStI)
          s.bytes = static_cast<uint8_t>(access_info(m.uops[i - 1].op).size);
      } else {
        s = access(u, insn.opcode);
      }
      s.insn = &insn;
      all[b].push_back(s);
    }
  }
  return all;
}

bool has_barriers_in_memory(const KernelCode& code) {
  for (const auto& block : code.instructions)
    for (const StaticInstruction& insn : block)
      if (insn.opcode.starts_with("mbarrier") || insn.opcode.starts_with("st.async") ||
          insn.opcode.starts_with("red.async") || insn.opcode.starts_with("cp.async.bulk") ||
          insn.opcode.starts_with("cp.reduce.async.bulk"))
        return true;
  return false;
}

uint64_t line_number(const StaticInstruction& insn) {
  return insn.location.line != 0 ? uint64_t{insn.location.file} << 32 | insn.location.line
                                 : uint64_t{1} << 63 | insn.line;
}

std::string readable(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> made(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && made != nullptr ? made.get() : name;
}

std::string place_text(const StaticInstruction& insn, const std::string& origin,
                       const std::map<uint32_t, std::string>& files) {
  std::string text = fmt::format("{} at {}:{}", insn.opcode, origin, insn.line);
  const auto file = files.find(insn.location.file);
  if (insn.location.line != 0 && file != files.end())
    text += fmt::format(" ({}:{})", file->second, insn.location.line);
  return text;
}

}  // namespace gpusim::ptx
