// Stands in for the CUDA toolkit's header of this name: see tests/cuda_emulated/README.md.
#pragma once
#include "emulated/arithmetic.h"
#include "emulated/atomics.h"
#include "emulated/language.h"
#include "emulated/launch.h"
#include "emulated/runtime.h"
#include "emulated/warp.h"
