// Owned device memory and checked CUDA calls.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/core/device_error.h"

namespace gpusim::cuda {

// Errors of the device stay: every later call has them, too.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string text = std::string("CUDA: ") + what + ": " + cudaGetErrorString(status);
  cudaGetLastError();
  throw DeviceError(text, cudaDeviceSynchronize() != cudaSuccess);
}

// An array in device memory. Move-only.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(size_t size, const char* what) : size_(size) {
    if (size == 0) return;
    const cudaError_t status = cudaMalloc(&data_, size * sizeof(T));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::runtime_error("the GPU has no " + std::to_string((size * sizeof(T)) >> 20) +
                               " MiB left for " + what +
                               "; use fewer cores or a smaller --memory-size or --stack-size");
    }
    check(status, what);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  void zero() {
    if (size_) check(cudaMemset(data_, 0, size_ * sizeof(T)), "clearing memory");
  }
  void upload(std::span<const T> from) {
    if (!from.empty())
      check(cudaMemcpy(data_, from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "upload");
  }
  void download(std::span<T> to) const {
    if (!to.empty())
      check(cudaMemcpy(to.data(), data_, to.size_bytes(), cudaMemcpyDeviceToHost), "download");
  }
  // At least so many elements; does not keep the contents.
  void reserve(size_t size, const char* what) {
    if (size > size_) *this = DeviceArray(size + size / 2, what);
  }

 private:
  void swap(DeviceArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
DeviceArray<T> to_device(const std::vector<T>& from, const char* what) {
  DeviceArray<T> array(from.size(), what);
  array.upload(from);
  return array;
}

}  // namespace gpusim::cuda
