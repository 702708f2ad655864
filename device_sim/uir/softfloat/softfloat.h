// Everything: include this one.
#pragma once

#include "device_sim/uir/softfloat/arith.h"
#include "device_sim/uir/softfloat/compare.h"
#include "device_sim/uir/softfloat/convert.h"
#include "device_sim/uir/softfloat/estimate.h"
#include "device_sim/uir/softfloat/format.h"
