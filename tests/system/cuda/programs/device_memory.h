// Memory of the device that a program fills and reads back.
#pragma once
#include <cstddef>
#include <vector>

#include "check.h"

template <class T>
struct Device {
  explicit Device(const std::vector<T>& values) : count_(values.size()) {
    FINE(cudaMalloc(&data, count_ * sizeof(T)));
    FINE(cudaMemcpy(data, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  // Zeros.
  explicit Device(size_t count) : Device(std::vector<T>(count)) {}
  ~Device() { cudaFree(data); }
  std::vector<T> host() const {
    std::vector<T> out(count_);
    FINE(cudaMemcpy(out.data(), data, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
  T* data = nullptr;

 private:
  size_t count_;
};
