#pragma once
#include "emulated/thrust.h"
