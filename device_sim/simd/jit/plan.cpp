#include "device_sim/simd/jit/plan.h"

#include "device_sim/simd/jit/lower_kinds.h"
#include "device_sim/simd/narrow.h"

namespace gpusim::simd {

namespace {

bool narrow_fields_of(const Uop& u) {
  switch (u.op) {
#define GPUSIM_UOP(name, shape, fields, traits) \
  case Op::name: return narrow_fields<Op::name>(u);
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP
  }
  return false;
}
bool narrow_always_of(const Uop& u) {
  if (u.op == Op::sel_cmp) return narrow_always<Op::sel_cmp>(u);
  return u.op == Op::sel_cmpi && narrow_always<Op::sel_cmpi>(u);
}

class Planner {
 public:
  explicit Planner(const Trace& trace) : trace_(trace) { kinds_.fill(kUnknown); }

  TracePlan run() {
    for (const Step& s : trace_.steps) plan_.steps.push_back(plan_step(s));
    plan_.loops = trace_.closed;
    for (const auto& [slot, kind] : plan_.guards) plan_.loops &= kinds_[slot] == kind;
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
    return kinds_[s];
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
      p.narrow = is_load(shape) ? access.is_narrow() : access.size <= 4;
      if (compact && s.consecutive) p.method = Method::kVector;
      // Of what comes back compact the handler makes more.
      const bool stays_compact = is_load(shape) && is_compact(s.d_after);
      p.in_row = compact && s.in_row && !stays_compact && !(trace_.partial && is_store(shape));
      if (p.in_row) p.method = Method::kVector;
      // Small elements are stored one by one, which takes all lanes.
      const auto displacement = static_cast<int64_t>(u.imm);
      const bool near = access.mode != AddressMode::kImmediate ||
                        (displacement >= -(int64_t{1} << 30) && displacement < int64_t{1} << 30);
      p.scattered = s.scattered && near && !(trace_.partial && is_store(shape) && access.size < 4);
      if (p.scattered) p.method = Method::kVector;
      if (is_load(shape) && uniform && s.uniform_linear) p.method = Method::kUniform;
    } else if (info.pure) {
      if (uniform) {
        if (is_straight(u.op)) p.method = Method::kUniform;
      } else if (!(compact && is_compact(s.d_after))) {
        p.method = Method::kVector;
        p.narrow = is_narrow(s, sources, p);
      } else if (s.d_after == kAffine && is_affine_inline(u.op)) {
        p.method = Method::kAffine;
      }
    } else if (info.fp_state) {
      if (!uniform && s.fp_settled) p.method = Method::kVector;
      p.narrow = is_single_precision(u);
    } else if (is_branch(shape)) {
      if (uniform) p.method = Method::kUniform;
      else if (!compact && !s.compacted) p.method = Method::kVector;
      else if (compact && comparison_of(u.op).relation != Relation::kNone) p.method = Method::kAffine;
      p.narrow = narrow_branch(u.op);
    } else if (shape == Shape::kJmp || shape == Shape::kLink ||
               (shape == Shape::kJmpReg && uniform)) {
      p.method = Method::kJump;
    }
    if (p.method != Method::kVector && (s.parted || trace_.partial)) p.method = Method::kCall;
    if (p.method == Method::kVector && info.d.writes) {
      // Under a mask the row keeps its form, or takes the general one.
      p.d_kind = trace_.partial ? see(u.d, s.d_before) : uint8_t{kNarrow};
      p.keeps_narrow = p.narrow && p.d_kind == kNarrow;
    }
    follow(s, sources, p);
    return p;
  }

  // The forms after the step.
  void follow(const Step& s, const Sources& sources, const Plan& p) {
    const Shape shape = shape_of(s.uop);
    if (p.method == Method::kCall && changes_sources(shape))
      for (int k = 0; k < sources.count; ++k) kinds_[sources.slot[k]] = s.after[k];
    if (p.method == Method::kCall && is_store(shape)) kinds_[s.uop.d] = s.d_after;
    if (info_of(s.uop).fp_state)
      kinds_[s.uop.e] = p.method == Method::kCall ? s.state_after : uint8_t{kUniform};
    if (!info_of(s.uop).d.writes) return;
    switch (p.method) {
      case Method::kVector: kinds_[s.uop.d] = p.keeps_narrow ? kNarrow : kLanes; break;
      case Method::kUniform: kinds_[s.uop.d] = kUniform; break;
      case Method::kAffine: kinds_[s.uop.d] = kAffine; break;
      default: kinds_[s.uop.d] = s.d_after;
    }
  }

  static bool is_narrow(const Step& s, const Sources& sources, Plan& p) {
    const Uop& u = s.uop;
    const simd::Narrow form = narrow_form(u.op);
    if (form == simd::Narrow::kNever || !narrow_fields_of(u)) return false;
    if (form == simd::Narrow::kAlways || narrow_always_of(u)) return true;
    for (int k = 0; k < sources.count; ++k) {
      if (p.source_kind[k] == kLanes) return false;
      if (!is_compact(p.source_kind[k])) continue;
      if (!(s.fits_32_bits >> k & 1)) return false;
      p.need_32_bits[k] = true;
    }
    return true;
  }

  const Trace& trace_;
  TracePlan plan_;
  std::array<uint8_t, 256> kinds_;
};

}  // namespace

TracePlan make_plan(const Trace& trace) { return Planner(trace).run(); }

}  // namespace gpusim::simd
