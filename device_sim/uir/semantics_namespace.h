// Where semantics live. Outside Highway they are compiled once, in gpusim::sem. Highway compiles
// its users once per SIMD target; semantics included there are compiled per target too, because
// inlining needs caller and callee to have the same target. Hence these headers have Highway's
// per-target include guards.
// (No include guard of its own: the macros follow the current target.)
#undef GPUSIM_SEM_BEGIN
#undef GPUSIM_SEM_END
#ifdef HWY_TARGET_TOGGLE_ACTIVE
#define GPUSIM_SEM_BEGIN \
  HWY_BEFORE_NAMESPACE(); namespace gpusim { namespace HWY_NAMESPACE { namespace sem {
#define GPUSIM_SEM_END \
  }}} HWY_AFTER_NAMESPACE();
#else
#define GPUSIM_SEM_BEGIN namespace gpusim { namespace sem {
#define GPUSIM_SEM_END }}
#endif
