#include "device_sim/simd/jit/plan.h"

#include <algorithm>

#include "device_sim/simd/jit/lower_kinds.h"
#include "device_sim/simd/jit/quiet_float.h"
#include "device_sim/simd/narrow.h"

namespace gpusim::simd {

namespace {

// What is known of rows; those of kinds other than kNarrow and kSigned have words of 64 bits.
Words words_of_row(uint8_t kind) { return kind & kBothAbove; }
// Words of which both is known lie in rows of this kind.
uint8_t row_of(Words words) { return words & kZeroAbove ? kNarrow : kSigned; }

class Planner {
 public:
  explicit Planner(const Trace& trace) : trace_(trace) { kinds_.fill(kUnknown); }

  TracePlan run() {
    size_t root = 0;
    for (size_t i = 0; i < trace_.steps.size(); ++i) {
      const Step& s = trace_.steps[i];
      if (s.side == Side::kRoot) root = i;
      plan_.steps.push_back(s.side == Side::kInside ? plan_inside(s) : plan_step(s));
      if (s.side != Side::kNone && !is_fit(s, plan_.steps.back()))
        plan_.unfit_region = std::min(plan_.unfit_region, root);
    }
    plan_.loops = trace_.closed;
    for (const auto& [slot, kind] : plan_.guards) plan_.loops &= kind_of_row(slot) == kind;
    for (const Plan& p : plan_.steps) plan_.worthwhile |= p.method != Method::kCall;
    return plan_;
  }

 private:
  static constexpr uint8_t kUnknown = 0xff;

  uint8_t see(Slot s, uint8_t recorded) {
    if (kinds_[s] == kUnknown) {
      kinds_[s] = recorded;
      plan_.guards.push_back({s, recorded});
    }
    return kind_of_row(s);
  }
  uint8_t kind_of_row(Slot s) const {
    return kinds_[s] == kBothAbove ? row_of(kBothAbove) : kinds_[s];
  }

  bool is_fit(const Step& s, const Plan& p) const {
    const bool writes_state =
        s.side == Side::kInside &&
        std::any_of(trace_.steps.begin(), trace_.steps.end(), [&](const Step& x) {
          const Sources sources = sources_of(s.uop);
          const auto* const end = sources.slot + sources.count;
          return info_of(x.uop).fp_state &&
                 (x.uop.e == s.uop.d || std::find(sources.slot, end, x.uop.e) != end);
        });
    return p.method == Method::kVector && !writes_state && !trace_.is_masked();
  }

  // Lanes that do not come there keep what d has.
  Plan plan_inside(const Step& s) {
    const Uop& u = s.uop;
    const Sources sources = sources_of(u);
    Plan p;
    p.method = Method::kVector;
    for (int k = 0; k < sources.count; ++k) p.source_kind[k] = see(sources.slot[k], s.before[k]);
    p.d_kind = see(u.d, s.d_before);
    if (shape_of(u) == Shape::kDI)
      p.narrow = may_be_narrow(u.op) && (p.result = words_of(u.imm)) != 0;
    else
      p.narrow = is_narrow(s, sources, p);
    const bool compact = is_compact(p.d_kind);
    const Words before = compact ? Words{s.d_words} : words_of_row(kinds_[u.d]);
    const Words common = p.narrow ? static_cast<Words>(before & p.result) : Words{0};
    p.row_kind = common != 0 ? row_of(common) : uint8_t{kLanes};
    if (compact) p.need_d_words = common;
    kinds_[u.d] = common != 0 ? common : uint8_t{kLanes};
    return p;
  }

  Plan plan_step(const Step& s) {
    const Uop& u = s.uop;
    const Shape shape = shape_of(u);
    const ShapeInfo info = info_of(u);
    Plan p;
    const Sources sources = sources_of(u);
    bool compact = true, uniform = true;
    for (int k = 0; k < sources.count; ++k) {
      p.source_kind[k] = see(sources.slot[k], s.before[k]);
      compact &= is_compact(p.source_kind[k]);
      uniform &= p.source_kind[k] == kUniform;
    }
    if (is_store(shape)) p.d_kind = see(u.d, s.d_before);
    if (is_load(shape) || is_store(shape)) {
      const AccessInfo access = access_info(u.op);
      p.narrow = access.size <= 4;
      if (p.narrow) p.result = words_of_load(access);
      if (compact && s.consecutive) p.method = Method::kVector;
      p.in_row = compact && s.in_row;
      if (p.in_row) p.method = Method::kVector;
      // Spilled counters and pointers.
      if (p.in_row && is_load(shape) && is_compact(s.d_after)) {
        const bool may_wrap = access.extend == Extend::kSign32 && s.d_after == kAffine;
        p.method = may_wrap || trace_.partial ? Method::kCall : Method::kRowLoad;
      }
      // Small elements are stored one by one, which takes all lanes.
      const auto displacement = static_cast<int64_t>(u.imm);
      const bool near = access.mode != AddressMode::kImmediate ||
                        (displacement >= -(int64_t{1} << 30) && displacement < int64_t{1} << 30);
      p.scattered =
          s.scattered && near && !(trace_.is_masked() && is_store(shape) && access.size < 4);
      if (p.scattered) p.method = Method::kVector;
      if (is_load(shape) && uniform && s.uniform_linear) p.method = Method::kUniform;
    } else if (info.pure) {
      if (uniform) {
        if (is_straight(u.op)) p.method = Method::kUniform;
      } else if (!(compact && is_compact(s.d_after))) {
        p.method = Method::kVector;
        p.narrow = is_narrow(s, sources, p);
      } else if (is_affine_inline(u.op)) {
        p.method = Method::kAffine;
      }
    } else if (info.fp_state) {
      const bool is_known = s.fp_settled || (tells_nothing_new(s.fp_state) && is_quiet(u));
      if (!uniform && is_known) p.method = Method::kVector;
      p.narrow = is_single_precision(u);
      p.result = kZeroAbove;
    } else if (is_branch(shape) && s.side == Side::kEnd) {
      p.method = Method::kVector;
      p.narrow = is_narrow_branch(u.op) || becomes_narrow_branch(s, sources, p);
    } else if (s.side == Side::kEnd) {
      p.method = Method::kVector;
    } else if (is_branch(shape)) {
      if (uniform) p.method = Method::kUniform;
      else if (!compact && !s.compacted) p.method = Method::kVector;
      else if (compact && comparison_of(u.op).relation != Relation::kNone) p.method = Method::kAffine;
      p.narrow = is_narrow_branch(u.op) || becomes_narrow_branch(s, sources, p);
    } else if (shape == Shape::kJmp || (shape == Shape::kJmpReg && uniform)) {
      p.method = Method::kJump;
    }
    if (p.method != Method::kVector && (s.parted || trace_.partial)) p.method = Method::kCall;
    if (p.method == Method::kVector && info.d.writes) {
      // Under a mask the row keeps its form, or takes the general one.
      p.row_kind = kLanes;
      if (trace_.partial) {
        p.d_kind = see(u.d, s.d_before);
        if (p.narrow && (words_of_row(p.d_kind) & p.result)) p.row_kind = p.d_kind;
      } else if (p.narrow) {
        p.row_kind = row_of(p.result);
      }
    }
    follow(s, sources, p);
    return p;
  }

  // The forms after the step.
  void follow(const Step& s, const Sources& sources, const Plan& p) {
    const Shape shape = shape_of(s.uop);
    if (p.method == Method::kCall && changes_sources(shape))
      for (int k = 0; k < sources.count; ++k)
        if (s.after[k] != s.before[k]) kinds_[sources.slot[k]] = s.after[k];
    if (p.method == Method::kCall && is_store(shape)) kinds_[s.uop.d] = s.d_after;
    if (info_of(s.uop).fp_state)
      kinds_[s.uop.e] = p.method == Method::kCall ? s.state_after : uint8_t{kUniform};
    if (!info_of(s.uop).d.writes) return;
    switch (p.method) {
      case Method::kVector:
        kinds_[s.uop.d] = trace_.partial || p.row_kind == kLanes ? p.row_kind : p.result;
        break;
      case Method::kUniform: kinds_[s.uop.d] = kUniform; break;
      default: kinds_[s.uop.d] = s.d_after;
    }
  }

  // What is known of the sources.
  std::array<Words, 4> words_of_sources(const Step& s, const Sources& sources, const Plan& p) {
    std::array<Words, 4> words{};
    for (size_t k = 0; k < static_cast<size_t>(sources.count); ++k)
      words[k] = is_compact(p.source_kind[k]) ? s.words[k] : words_of_row(kinds_[sources.slot[k]]);
    return words;
  }
  bool is_narrow(const Step& s, const Sources& sources, Plan& p) {
    const NarrowForm form = narrow_form(s.uop, words_of_sources(s, sources, p).data());
    p.result = form.result;
    if (form.result == 0) return false;
    for (int k = 0; k < sources.count; ++k)
      if (is_compact(p.source_kind[k])) p.need_words[k] = form.need[k];
    return true;
  }
  bool becomes_narrow_branch(const Step& s, const Sources& sources, Plan& p) {
    const Words need = narrow_branch_need(s.uop, words_of_sources(s, sources, p).data());
    for (int k = 0; k < sources.count; ++k)
      if (is_compact(p.source_kind[k])) p.need_words[k] = need;
    return need != 0;
  }
  static Words words_of_load(const AccessInfo& access) {
    if (access.extend == Extend::kSign64) return kSignAbove;
    return access.extend == Extend::kZero && access.size < 4 ? kBothAbove : kZeroAbove;
  }

  const Trace& trace_;
  TracePlan plan_;
  std::array<uint8_t, 256> kinds_;
};

}  // namespace

TracePlan make_plan(const Trace& trace) { return Planner(trace).run(); }

void leave_out_unfit_regions(Trace& trace) {
  for (;;) {
    const size_t unfit = make_plan(trace).unfit_region;
    if (unfit == SIZE_MAX) return;
    trace.end_at_branch(unfit);
  }
}

}  // namespace gpusim::simd
