// What the device can't do, for the one who asked.
#pragma once
#include <stdexcept>
#include <string>

namespace gpusim::offload {

/// An errno of Linux's generic table (positive), and a sentence.
class OffloadError : public std::runtime_error {
 public:
  OffloadError(int number, const std::string& text) : std::runtime_error(text), number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace gpusim::offload
