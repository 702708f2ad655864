#include "host/run/slice_of_threads.h"

#include <doctest/doctest.h>

namespace gpusim::host {
namespace {

TEST_CASE("slices of threads grow while there are no system calls") {
  SliceOfThreads slice;
  CHECK(slice.length() == SliceOfThreads::kFirst);
  uint64_t before = slice.length();
  for (int i = 0; i < 20; ++i) {
    slice.note(/*has_calls=*/false, 1024);
    CHECK(slice.length() >= before);
    before = slice.length();
  }
  CHECK(slice.length() == SliceOfThreads::kMost);
}

TEST_CASE("with system calls slices of threads are the shorter the more run") {
  SliceOfThreads slice;
  slice.note(false, 64);
  slice.note(true, 64);  // that many may spin until the one that made the call goes on
  CHECK(slice.length() == SliceOfThreads::kFirst);
  slice.note(true, 128);
  CHECK(slice.length() == SliceOfThreads::kFirst / 2);
  slice.note(true, 1);
  CHECK(slice.length() == SliceOfThreads::kMost);
  slice.note(true, 0);
  CHECK(slice.length() == SliceOfThreads::kMost);
  slice.note(true, 1u << 20);
  CHECK(slice.length() == SliceOfThreads::kLeast);
}

}  // namespace
}  // namespace gpusim::host
