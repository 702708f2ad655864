#pragma once
#include "emulated/algorithms.h"
