// Where the published measurements are.
#pragma once
#include <string>

// The folder `accelwattch` of the data, with a slash at the end.
const std::string& published_folder();
