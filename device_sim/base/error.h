// The user's failure: bad input. The message says what is wrong, where, and what to do.
#pragma once
#include <stdexcept>
#include <string>

namespace gpusim {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gpusim
