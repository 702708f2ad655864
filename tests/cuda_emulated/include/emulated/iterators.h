// Thrust's iterators, as far as [], +, -, * and comparisons go. Each header of
// include/thrust/iterator is this one.
#pragma once
#include <cstddef>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulated/language.h"

namespace thrust {

// What every random-access iterator has, from `Derived::at(offset)` and `Derived::moved(offset)`.
#define CUDA_EMULATED_ITERATOR(Self, Value, Reference)                                      \
  using iterator_category = std::random_access_iterator_tag;                                \
  using difference_type = std::ptrdiff_t;                                                   \
  using value_type = Value;                                                                 \
  using reference = Reference;                                                              \
  using pointer = void;                                                                     \
  reference operator*() const { return (*this)[0]; }                                        \
  Self operator+(difference_type n) const { return Self(*this).operator+=(n); }             \
  Self operator-(difference_type n) const { return Self(*this).operator+=(-n); }            \
  Self& operator++() { return *this += 1; }                                                 \
  Self& operator--() { return *this += -1; }                                                \
  Self operator++(int) { return std::exchange(*this, *this + 1); }                          \
  friend bool operator!=(const Self& x, const Self& y) { return !(x == y); }                \
  friend bool operator<(const Self& x, const Self& y) { return x - y < 0; }

template <class T>
class counting_iterator {
 public:
  explicit counting_iterator(T value = {}) : value_(value) {}
  CUDA_EMULATED_ITERATOR(counting_iterator, T, T)
  T operator[](difference_type n) const { return static_cast<T>(value_ + static_cast<T>(n)); }
  counting_iterator& operator+=(difference_type n) {
    value_ = (*this)[n];
    return *this;
  }
  difference_type operator-(const counting_iterator& other) const {
    return static_cast<difference_type>(value_) - static_cast<difference_type>(other.value_);
  }
  bool operator==(const counting_iterator& other) const { return value_ == other.value_; }

 private:
  T value_;
};
template <class T>
counting_iterator<T> make_counting_iterator(T value) {
  return counting_iterator<T>(value);
}

template <class F, class It>
class transform_iterator {
  using Result = decltype(std::declval<F>()(*std::declval<It>()));

 public:
  transform_iterator(It it, F f) : it_(it), f_(f) {}
  CUDA_EMULATED_ITERATOR(transform_iterator, std::decay_t<Result>, Result)
  reference operator[](difference_type n) const { return f_(it_[n]); }
  transform_iterator& operator+=(difference_type n) {
    it_ += n;
    return *this;
  }
  difference_type operator-(const transform_iterator& other) const { return it_ - other.it_; }
  bool operator==(const transform_iterator& other) const { return it_ == other.it_; }

 private:
  It it_;
  F f_;
};
template <class It, class F>
transform_iterator<F, It> make_transform_iterator(It it, F f) {
  return {it, f};
}

template <class T>
class constant_iterator {
 public:
  explicit constant_iterator(T value, std::ptrdiff_t at = 0) : value_(value), at_(at) {}
  CUDA_EMULATED_ITERATOR(constant_iterator, T, T)
  T operator[](difference_type) const { return value_; }
  constant_iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  difference_type operator-(const constant_iterator& other) const { return at_ - other.at_; }
  bool operator==(const constant_iterator& other) const { return at_ == other.at_; }

 private:
  T value_;
  std::ptrdiff_t at_;
};
template <class T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

// values[indices[n]]
template <class Values, class Indices>
class permutation_iterator {
  using Result = decltype(std::declval<Values>()[0]);

 public:
  permutation_iterator(Values values, Indices indices) : values_(values), indices_(indices) {}
  CUDA_EMULATED_ITERATOR(permutation_iterator, std::decay_t<Result>, Result)
  reference operator[](difference_type n) const {
    return values_[static_cast<difference_type>(indices_[n])];
  }
  permutation_iterator& operator+=(difference_type n) {
    indices_ += n;
    return *this;
  }
  difference_type operator-(const permutation_iterator& other) const {
    return indices_ - other.indices_;
  }
  bool operator==(const permutation_iterator& other) const { return indices_ == other.indices_; }

 private:
  Values values_;
  Indices indices_;
};
template <class Values, class Indices>
permutation_iterator<Values, Indices> make_permutation_iterator(Values values, Indices indices) {
  return {values, indices};
}

// What is written is lost.
class discard_iterator {
 public:
  struct Nothing {
    template <class T>
    void operator=(const T&) const {}
  };
  explicit discard_iterator(std::ptrdiff_t at = 0) : at_(at) {}
  CUDA_EMULATED_ITERATOR(discard_iterator, Nothing, Nothing)
  Nothing operator[](difference_type) const { return {}; }
  discard_iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  difference_type operator-(const discard_iterator& other) const { return at_ - other.at_; }
  bool operator==(const discard_iterator& other) const { return at_ == other.at_; }

 private:
  std::ptrdiff_t at_;
};
inline discard_iterator make_discard_iterator() { return discard_iterator(); }

#undef CUDA_EMULATED_ITERATOR

}  // namespace thrust
