#include "device_sim/uir/vector.h"

#include "device_sim/uir/vector_compute.h"
#include "device_sim/uir/vector_rules.h"
