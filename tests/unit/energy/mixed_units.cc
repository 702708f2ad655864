// Compiles as it stands; each of the macros adds a mistake.
#include "energy/units.h"

using namespace gpusim::energy;

static_assert(Watts(3) * Seconds(2) == Joules(6));
static_assert(Joules(6) / Seconds(2) == Watts(3));
static_assert(Joules(6) / Watts(3) == Seconds(2));
static_assert(Bytes(8) / BytesPerSecond(4) == Seconds(2));
static_assert(Joules(6) / Joules(2) == 3.0);
static_assert(10.0 / Hertz(5) == Seconds(2));

#ifdef GPUSIM_JOULES_PLUS_WATTS
auto sum = Joules(1) + Watts(1);
#endif
#ifdef GPUSIM_WATTS_FROM_JOULES
Watts power = Joules(1);
#endif
#ifdef GPUSIM_SECONDS_FROM_BYTES
Seconds time = Bytes(1) * BytesPerSecond(1);
#endif
#ifdef GPUSIM_JOULES_FROM_NUMBER
Joules energy = 1.0;
#endif
