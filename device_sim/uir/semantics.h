// Everything a runner needs to give micro-ops their meaning. No include guard of its own: each part
// has a per-target one.
#include "device_sim/uir/semantics_fp.h"
#include "device_sim/uir/semantics_int.h"
#include "device_sim/uir/semantics_vector.h"
