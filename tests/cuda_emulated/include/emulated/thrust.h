// Thrust's algorithms, on std. Each header of include/thrust is this one or iterators.h.
#pragma once
#include <stdexcept>

#include "emulated/algorithms.h"
#include "emulated/iterators.h"

namespace thrust {

// Algorithms wait for their end, but for those of par_nosync.
struct ExecutionPolicy {
  bool waits = true;
  cudaStream_t stream = nullptr;
  ExecutionPolicy on(cudaStream_t s) const { return {waits, s}; }
};
inline constexpr ExecutionPolicy device{};
namespace cuda {
inline constexpr ExecutionPolicy par{};
inline constexpr ExecutionPolicy par_nosync{.waits = false};
}  // namespace cuda

template <class T>
using plus = std::plus<T>;
template <class T>
using identity = std::identity;
template <class T>
struct maximum {
  T operator()(const T& x, const T& y) const { return x < y ? y : x; }
};
template <class T>
struct minimum {
  T operator()(const T& x, const T& y) const { return y < x ? y : x; }
};
using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tuple;

namespace emulated {

inline void do_algorithm(const ExecutionPolicy& policy, const char* what,
                         std::function<void()> run) {
  cudaError_t status = cuda_emulated::enqueue_algorithm(what, std::move(run), policy.stream);
  if (status == cudaSuccess && policy.waits) status = cudaStreamSynchronize(policy.stream);
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
// Of one that has a result, for which the host waits.
template <class T, class F>
T result_of(ExecutionPolicy policy, const char* what, F run) {
  policy.waits = true;
  T result{};
  do_algorithm(policy, what, [&result, run] { result = run(); });
  return result;
}
template <class It>
auto values(It first, It last) {
  return cuda_emulated::values_of(first, static_cast<size_t>(last - first));
}
template <class From, class Out>
void put(const From& from, Out out) {
  std::ptrdiff_t i = 0;
  for (const auto& v : from) out[i++] = v;
}

}  // namespace emulated

template <class It, class N, class F>
It for_each_n(const ExecutionPolicy& policy, It first, N n, F f) {
  emulated::do_algorithm(policy, "for_each_n", [=] {
    auto each = f;
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i) each(first[i]);
  });
  return first + static_cast<std::ptrdiff_t>(n);
}
template <class It, class F>
It for_each(const ExecutionPolicy& policy, It first, It last, F f) {
  return for_each_n(policy, first, last - first, f);
}
template <class It, class T>
void fill(const ExecutionPolicy& policy, It first, It last, const T& value) {
  emulated::do_algorithm(policy, "fill", [=] { std::fill(first, last, value); });
}
template <class It, class N, class T>
It fill_n(const ExecutionPolicy& policy, It first, N n, const T& value) {
  fill(policy, first, first + n, value);
  return first + n;
}
template <class It>
void sequence(const ExecutionPolicy& policy, It first, It last) {
  emulated::do_algorithm(policy, "sequence", [=] { std::iota(first, last, 0); });
}
template <class In, class Out>
Out copy(const ExecutionPolicy& policy, In first, In last, Out out) {
  emulated::do_algorithm(policy, "copy",
                         [=] { emulated::put(emulated::values(first, last), out); });
  return out + (last - first);
}
template <class In, class Out, class F>
Out copy_if(const ExecutionPolicy& policy, In first, In last, Out out, F f) {
  return out + emulated::result_of<std::ptrdiff_t>(policy, "copy_if", [=] {
    std::ptrdiff_t kept = 0;
    auto to = out;
    for (const auto& v : emulated::values(first, last))
      if (f(v)) to[kept++] = v;
    return kept;
  });
}
template <class In, class Out, class F>
Out transform(const ExecutionPolicy& policy, In first, In last, Out out, F f) {
  emulated::do_algorithm(policy, "transform", [=] {
    auto to = out;
    for (std::ptrdiff_t i = 0; i < last - first; ++i) to[i] = f(first[i]);
  });
  return out + (last - first);
}
template <class Map, class In, class Out>
Out gather(const ExecutionPolicy& policy, Map first, Map last, In in, Out out) {
  emulated::do_algorithm(policy, "gather", [=] {
    auto to = out;
    for (std::ptrdiff_t i = 0; i < last - first; ++i)
      to[i] = in[static_cast<std::ptrdiff_t>(first[i])];
  });
  return out + (last - first);
}
template <class In, class Map, class Out>
void scatter(const ExecutionPolicy& policy, In first, In last, Map map, Out out) {
  emulated::do_algorithm(policy, "scatter", [=] {
    auto to = out;
    for (std::ptrdiff_t i = 0; i < last - first; ++i)
      to[static_cast<std::ptrdiff_t>(map[i])] = first[i];
  });
}
template <class In, class F, class T, class Sum>
T transform_reduce(const ExecutionPolicy& policy, In first, In last, F f, T init, Sum sum) {
  return emulated::result_of<T>(policy, "transform_reduce", [=] {
    T result = init;
    for (const auto& v : emulated::values(first, last)) result = sum(result, f(v));
    return result;
  });
}
template <class In, class T = cuda_emulated::ValueOf<In>, class Sum = std::plus<>>
T reduce(const ExecutionPolicy& policy, In first, In last, T init = T{}, Sum sum = {}) {
  return transform_reduce(policy, first, last, std::identity(), init, sum);
}
template <class In, class F>
std::ptrdiff_t count_if(const ExecutionPolicy& policy, In first, In last, F f) {
  return transform_reduce(policy, first, last,
                          [f](const auto& v) -> std::ptrdiff_t { return f(v) ? 1 : 0; },
                          std::ptrdiff_t{0}, std::plus<>());
}
template <class In, class Out, class T = cuda_emulated::ValueOf<In>, class Sum = std::plus<>>
Out exclusive_scan(const ExecutionPolicy& policy, In first, In last, Out out, T init = T{},
                   Sum sum = {}) {
  emulated::do_algorithm(policy, "exclusive_scan", [=] {
    const auto from = emulated::values(first, last);
    std::exclusive_scan(from.begin(), from.end(), out, init, sum);
  });
  return out + (last - first);
}
template <class In, class Out, class Sum = std::plus<>>
Out inclusive_scan(const ExecutionPolicy& policy, In first, In last, Out out, Sum sum = {}) {
  emulated::do_algorithm(policy, "inclusive_scan", [=] {
    const auto from = emulated::values(first, last);
    std::inclusive_scan(from.begin(), from.end(), out, sum);
  });
  return out + (last - first);
}
template <class Keys, class Values, class Less = std::less<>>
void stable_sort_by_key(const ExecutionPolicy& policy, Keys first, Keys last, Values values,
                        Less less = {}) {
  emulated::do_algorithm(policy, "sort_by_key", [=] {
    const auto keys = emulated::values(first, last);
    const auto carried = cuda_emulated::values_of(values, keys.size());
    std::vector<size_t> places(keys.size());
    std::iota(places.begin(), places.end(), size_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t x, size_t y) { return less(keys[x], keys[y]); });
    auto to_key = first;
    auto to = values;
    for (size_t i = 0; i < places.size(); ++i) {
      to_key[static_cast<std::ptrdiff_t>(i)] = keys[places[i]];
      to[static_cast<std::ptrdiff_t>(i)] = carried[places[i]];
    }
  });
}
template <class Keys, class Values, class Less = std::less<>>
void sort_by_key(const ExecutionPolicy& policy, Keys first, Keys last, Values values,
                 Less less = {}) {
  stable_sort_by_key(policy, first, last, values, less);
}
template <class It, class Less = std::less<>>
void sort(const ExecutionPolicy& policy, It first, It last, Less less = {}) {
  emulated::do_algorithm(policy, "sort", [=] { std::stable_sort(first, last, less); });
}
template <class Keys, class In, class Unique, class Out, class Same = std::equal_to<>,
          class Sum = std::plus<>>
pair<Unique, Out> reduce_by_key(const ExecutionPolicy& policy, Keys first, Keys last, In in,
                                Unique unique, Out out, Same same = {}, Sum sum = {}) {
  const auto runs = emulated::result_of<std::ptrdiff_t>(policy, "reduce_by_key", [=] {
    const auto keys = emulated::values(first, last);
    const auto values = cuda_emulated::values_of(in, keys.size());
    return cuda_emulated::reduce_runs(keys, values, unique, out, same, sum);
  });
  return {unique + runs, out + runs};
}

}  // namespace thrust
