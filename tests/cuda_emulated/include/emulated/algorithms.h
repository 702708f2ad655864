// CUB's device-wide algorithms, on std. Each header of include/cub is this one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "emulated/launch.h"

namespace cuda_emulated {

template <class It>
using ValueOf = std::decay_t<decltype(*std::declval<It>())>;

// The two calls of every algorithm: how much scratch memory, then the work.
template <class F>
cudaError_t algorithm(const char* what, const void* scratch, size_t& bytes, size_t items,
                      cudaStream_t stream, F run) {
  cudaError_t status = cudaSuccess;
  if (!has_scratch(scratch, bytes, items, status)) return status;
  return enqueue_algorithm(what, std::move(run), stream);
}

// Copies come first: input and output may be the same.
template <class It>
auto values_of(It in, size_t n) {
  std::vector<ValueOf<It>> values;
  values.reserve(n);
  for (size_t i = 0; i < n; ++i) values.push_back(in[static_cast<std::ptrdiff_t>(i)]);
  return values;
}

// The key of each run of equal keys, and the sum of its values. Returns how many.
template <class Key, class Value, class Unique, class Out, class Same, class Sum>
std::ptrdiff_t reduce_runs(const std::vector<Key>& keys, const std::vector<Value>& values,
                           Unique to_key, Out to, Same same, Sum sum) {
  std::ptrdiff_t runs = 0;
  for (size_t i = 0; i < keys.size(); ++runs) {
    auto total = values[i];
    size_t next = i + 1;
    for (; next < keys.size() && same(keys[next], keys[i]); ++next)
      total = sum(total, values[next]);
    to_key[runs] = keys[i];
    to[runs] = total;
    i = next;
  }
  return runs;
}

// Places of keys in order; of equal keys in their own. Only bits [begin, end) count.
template <class Key>
std::vector<size_t> sorted_places(const std::vector<Key>& keys, int begin, int end, bool down) {
  const auto cut = [=](Key key) {
    using Bits = std::make_unsigned_t<Key>;
    constexpr int kBits = static_cast<int>(sizeof(Key) * 8);
    const Bits flip = std::is_signed_v<Key> ? Bits{1} << (kBits - 1) : 0;
    const Bits up = static_cast<Bits>((static_cast<Bits>(key) ^ flip) << (kBits - end));
    return static_cast<Bits>(up >> (kBits - end + begin));
  };
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t x, size_t y) {
    return down ? cut(keys[y]) < cut(keys[x]) : cut(keys[x]) < cut(keys[y]);
  });
  return places;
}

}  // namespace cuda_emulated

namespace cub {

template <class T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

struct DeviceSelect {
  template <class In, class Out, class Count, class N, class Predicate>
  static cudaError_t If(void* scratch, size_t& bytes, In in, Out out, Count count, N n,
                        Predicate predicate, cudaStream_t stream = nullptr) {
    return select("DeviceSelect::If", scratch, bytes, in, out, count, size_t(n), stream,
                  [=](std::ptrdiff_t, const auto& value) { return predicate(value); });
  }
  template <class In, class Flags, class Out, class Count, class N>
  static cudaError_t Flagged(void* scratch, size_t& bytes, In in, Flags flags, Out out, Count count,
                             N n, cudaStream_t stream = nullptr) {
    return select("DeviceSelect::Flagged", scratch, bytes, in, out, count, size_t(n), stream,
                  [=](std::ptrdiff_t i, const auto&) { return flags[i]; });
  }
  template <class In, class Out, class Count, class N>
  static cudaError_t Unique(void* scratch, size_t& bytes, In in, Out out, Count count, N n,
                            cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("DeviceSelect::Unique", scratch, bytes, size_t(n), stream, [=] {
      auto values = cuda_emulated::values_of(in, size_t(n));
      values.erase(std::unique(values.begin(), values.end()), values.end());
      std::copy(values.begin(), values.end(), out);
      *count = static_cast<cuda_emulated::ValueOf<Count>>(values.size());
    });
  }

 private:
  template <class In, class Out, class Count, class Keeps>
  static cudaError_t select(const char* what, void* scratch, size_t& bytes, In in, Out out,
                            Count count, size_t n, cudaStream_t stream, Keeps keeps) {
    return cuda_emulated::algorithm(what, scratch, bytes, n, stream, [=] {
      const auto values = cuda_emulated::values_of(in, n);
      auto to = out;
      std::ptrdiff_t kept = 0;
      for (size_t i = 0; i < n; ++i)
        if (keeps(static_cast<std::ptrdiff_t>(i), values[i])) to[kept++] = values[i];
      *count = static_cast<cuda_emulated::ValueOf<Count>>(kept);
    });
  }
};

struct DeviceRadixSort {
#define CUDA_EMULATED_SORT(pairs, keys, down)                                                      \
  template <class Key, class Value, class N>                                                       \
  static cudaError_t pairs(void* scratch, size_t& bytes, const Key* in, Key* out,                  \
                           const Value* values_in, Value* values_out, N n, int begin = 0,          \
                           int end = sizeof(Key) * 8, cudaStream_t stream = nullptr) {             \
    return cuda_emulated::algorithm(#pairs, scratch, bytes, size_t(n), stream, [=] {               \
      const auto all = cuda_emulated::values_of(in, size_t(n));                                    \
      const auto values = cuda_emulated::values_of(values_in, size_t(n));                          \
      const auto places = cuda_emulated::sorted_places(all, begin, end, down);                     \
      for (size_t i = 0; i < places.size(); ++i) {                                                 \
        out[i] = all[places[i]];                                                                   \
        values_out[i] = values[places[i]];                                                         \
      }                                                                                            \
    });                                                                                            \
  }                                                                                                \
  template <class Key, class Value, class N>                                                       \
  static cudaError_t pairs(void* scratch, size_t& bytes, DoubleBuffer<Key>& k,                     \
                           DoubleBuffer<Value>& v, N n, int begin = 0, int end = sizeof(Key) * 8,  \
                           cudaStream_t stream = nullptr) {                                        \
    const cudaError_t status = pairs(scratch, bytes, k.Current(), k.Alternate(), v.Current(),      \
                                     v.Alternate(), n, begin, end, stream);                        \
    if (scratch) k.selector ^= 1, v.selector ^= 1;                                                 \
    return status;                                                                                 \
  }                                                                                                \
  template <class Key, class N>                                                                    \
  static cudaError_t keys(void* scratch, size_t& bytes, const Key* in, Key* out, N n,              \
                          int begin = 0, int end = sizeof(Key) * 8,                                \
                          cudaStream_t stream = nullptr) {                                         \
    return cuda_emulated::algorithm(#keys, scratch, bytes, size_t(n), stream, [=] {                \
      const auto all = cuda_emulated::values_of(in, size_t(n));                                    \
      const auto places = cuda_emulated::sorted_places(all, begin, end, down);                     \
      for (size_t i = 0; i < places.size(); ++i) out[i] = all[places[i]];                          \
    });                                                                                            \
  }
  CUDA_EMULATED_SORT(SortPairs, SortKeys, false)
  CUDA_EMULATED_SORT(SortPairsDescending, SortKeysDescending, true)
#undef CUDA_EMULATED_SORT
};

struct DeviceScan {
  template <class In, class Out, class F, class T, class N>
  static cudaError_t ExclusiveScan(void* scratch, size_t& bytes, In in, Out out, F f, T init, N n,
                                   cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("DeviceScan", scratch, bytes, size_t(n), stream, [=] {
      const auto values = cuda_emulated::values_of(in, size_t(n));
      std::exclusive_scan(values.begin(), values.end(), out, init, f);
    });
  }
  template <class In, class Out, class F, class N>
  static cudaError_t InclusiveScan(void* scratch, size_t& bytes, In in, Out out, F f, N n,
                                   cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("DeviceScan", scratch, bytes, size_t(n), stream, [=] {
      const auto values = cuda_emulated::values_of(in, size_t(n));
      std::inclusive_scan(values.begin(), values.end(), out, f);
    });
  }
  template <class In, class Out, class N>
  static cudaError_t ExclusiveSum(void* scratch, size_t& bytes, In in, Out out, N n,
                                  cudaStream_t stream = nullptr) {
    return ExclusiveScan(scratch, bytes, in, out, std::plus<>(), cuda_emulated::ValueOf<In>{}, n,
                         stream);
  }
  template <class In, class Out, class N>
  static cudaError_t InclusiveSum(void* scratch, size_t& bytes, In in, Out out, N n,
                                  cudaStream_t stream = nullptr) {
    return InclusiveScan(scratch, bytes, in, out, std::plus<>(), n, stream);
  }
};

struct DeviceReduce {
  template <class In, class Out, class N, class F, class T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, N n, F f, T init,
                            cudaStream_t stream = nullptr) {
    return TransformReduce(scratch, bytes, in, out, n, f, std::identity(), init, stream);
  }
  template <class In, class Out, class N, class F, class Transform, class T>
  static cudaError_t TransformReduce(void* scratch, size_t& bytes, In in, Out out, N n, F f,
                                     Transform transform, T init, cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("DeviceReduce", scratch, bytes, size_t(n), stream, [=] {
      T result = init;
      for (const auto& v : cuda_emulated::values_of(in, size_t(n)))
        result = f(result, transform(v));
      *out = result;
    });
  }
  template <class In, class Out, class N>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, N n,
                         cudaStream_t stream = nullptr) {
    return Reduce(scratch, bytes, in, out, n, std::plus<>(), cuda_emulated::ValueOf<In>{}, stream);
  }
  template <class In, class Out, class N>
  static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, N n,
                         cudaStream_t stream = nullptr) {
    using T = cuda_emulated::ValueOf<In>;
    return Reduce(scratch, bytes, in, out, n, [](T x, T y) { return std::min(x, y); },
                  std::numeric_limits<T>::max(), stream);
  }
  template <class In, class Out, class N>
  static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, N n,
                         cudaStream_t stream = nullptr) {
    using T = cuda_emulated::ValueOf<In>;
    return Reduce(scratch, bytes, in, out, n, [](T x, T y) { return std::max(x, y); },
                  std::numeric_limits<T>::lowest(), stream);
  }
  template <class Keys, class Unique, class In, class Out, class Count, class F, class N>
  static cudaError_t ReduceByKey(void* scratch, size_t& bytes, Keys keys, Unique unique, In in,
                                 Out out, Count count, F f, N n, cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("ReduceByKey", scratch, bytes, size_t(n), stream, [=] {
      const auto key = cuda_emulated::values_of(keys, size_t(n));
      const auto value = cuda_emulated::values_of(in, size_t(n));
      const auto runs = cuda_emulated::reduce_runs(key, value, unique, out, std::equal_to<>(), f);
      *count = static_cast<cuda_emulated::ValueOf<Count>>(runs);
    });
  }
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class N, class Begins, class Ends>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, N segments, Begins begins,
                         Ends ends, cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm(
        "SegmentedReduce", scratch, bytes, size_t(segments), stream, [=] {
          auto to = out;
          for (std::ptrdiff_t s = 0; s < static_cast<std::ptrdiff_t>(segments); ++s) {
            cuda_emulated::ValueOf<Out> sum{};
            for (auto i = begins[s]; i < ends[s]; ++i) sum += in[static_cast<std::ptrdiff_t>(i)];
            to[s] = sum;
          }
        });
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Unique, class Lengths, class Count, class N>
  static cudaError_t Encode(void* scratch, size_t& bytes, In in, Unique unique, Lengths lengths,
                            Count count, N n, cudaStream_t stream = nullptr) {
    using Length = cuda_emulated::ValueOf<Lengths>;
    return cuda_emulated::algorithm("RunLengthEncode", scratch, bytes, size_t(n), stream, [=] {
      auto to = unique;
      auto to_length = lengths;
      std::ptrdiff_t runs = 0;
      for (const auto& v : cuda_emulated::values_of(in, size_t(n))) {
        if (runs != 0 && to[runs - 1] == v) {
          to_length[runs - 1] = static_cast<Length>(to_length[runs - 1] + 1);
          continue;
        }
        to[runs] = v;
        to_length[runs++] = 1;
      }
      *count = static_cast<cuda_emulated::ValueOf<Count>>(runs);
    });
  }
};

struct DeviceHistogram {
  template <class In, class Counter, class Level, class N>
  static cudaError_t HistogramEven(void* scratch, size_t& bytes, In in, Counter* counts, int levels,
                                   Level lower, Level upper, N n, cudaStream_t stream = nullptr) {
    return cuda_emulated::algorithm("HistogramEven", scratch, bytes, size_t(n), stream, [=] {
      std::fill_n(counts, levels - 1, Counter{});
      for (const auto& v : cuda_emulated::values_of(in, size_t(n)))
        if (v >= lower && v < upper)
          ++counts[static_cast<size_t>((v - lower) * (levels - 1) / (upper - lower))];
    });
  }
};

struct DeviceFor {
  template <class N, class F>
  static cudaError_t Bulk(N n, F f, cudaStream_t stream = nullptr) {
    return cuda_emulated::enqueue_algorithm("DeviceFor", [=] {
      auto each = f;
      for (N i = 0; i < n; ++i) each(i);
    }, stream);
  }
};

}  // namespace cub
