#pragma once
#include "emulated/iterators.h"
