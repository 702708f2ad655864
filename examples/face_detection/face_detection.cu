// The detector of face_detection.c as a CUDA program: the same cascade, picture, windows and faces,
// so it finds what OpenCV's CPU detector finds, to the pixel.
//
// Kernels resample the picture to all scales, add up integral images, and try the cascade at each
// window. The cascade lies in constant memory. After some stages a kernel collects the windows that
// are left, so that the threads of a warp all have one. The host makes the plan of scales and, at
// last, groups what passed.
//
// Faces go to standard error; with the argument "windows" each window that passed, too.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Of gpusim_guest.h, for the host, which is one core.
static void gpusim_barrier() {}
static void gpusim_count_u32(uint32_t* counter, uint32_t by) { *counter += by; }
#define GPUSIM_FACE_DETECTION_HOST
#include "cascade.h"
#include "group.h"
#include "pyramid.h"

enum { kMaxWindows = 3 * kPictureWidth * kPictureHeight };
enum { kRowThreads = 128, kThreads = 128, kWarp = 32 };
enum : uint8_t { kFlat, kRejected, kPassed };  // what the first stage found

// Stages before each collection of the windows that are left.
static const uint32_t kRounds[] = {1, 2, 3, 4, 6, 9, 13, kStages};

#define FINE(call) check((call), #call, __LINE__)
static void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "face_detection.cu:%d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}

// A stump of the cascade in 28 bytes, so that all of them fit constant memory.
struct PackedStump {
  uchar4 rectangle[3];  // x, y, width, height
  char4 weight;         // the third is 0 where there are two rectangles
  float threshold, below, above;
};
constexpr int kStumpCount = sizeof kStumps / sizeof kStumps[0];
static_assert(kStumpCount * sizeof(PackedStump) < 61 << 10, "the cascade does not fit");

__constant__ PackedStump stumps[kStumpCount];
__constant__ uint16_t first_stump[kStages + 1];
__constant__ float stage_threshold[kStages];
__constant__ scale_t scales[kMaxScales + 1];

// Memory of the device.
struct Device {
  const uint8_t* picture;
  const sample_t *rows, *columns;
  uint32_t *sums, *squares;  // integral images
  float* norm;               // per window
  uint8_t* first_stage;
  uint32_t* list[2];
  uint32_t* kept;  // the length of each list
};

// The inclusive sum of a warp's values up to this lane.
__device__ uint32_t warp_scan(uint32_t value) {
  const uint32_t lane = threadIdx.x % kWarp;
  for (uint32_t step = 1; step < kWarp; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffff, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

// A block per row of a scale: resampled, and added up from the left.
__global__ void add_up_rows(Device d) {
  __shared__ uint32_t of_warp[2][kRowThreads / kWarp];
  const scale_t* s = scales;
  while (blockIdx.x >= s[1].first_row) ++s;
  if (blockIdx.x - s->first_row == s->height) return;
  const sample_t row = d.rows[blockIdx.x];
  const size_t to = size_t{blockIdx.x + 1} * ROW + 1;
  uint32_t before = 0, squares_before = 0;
  for (uint32_t start = 0; start < s->width; start += kRowThreads) {
    const uint32_t x = start + threadIdx.x, warp = threadIdx.x / kWarp;
    uint32_t pixel = 0;
    if (x < s->width) {
      const sample_t column = d.columns[s->first_column + x];
      const uint8_t* const p = d.picture + row.from * kPictureWidth + column.from;
      const uint32_t right = column.share, left = 256 - right;
      const uint32_t upper = left * p[0] + right * p[1];
      const uint32_t lower = left * p[kPictureWidth] + right * p[kPictureWidth + 1];
      pixel = (upper * (256u - row.share) + lower * row.share + (1u << 15)) >> 16;
    }
    uint32_t sum = warp_scan(pixel), square_sum = warp_scan(pixel * pixel);
    if (threadIdx.x % kWarp == kWarp - 1) {
      of_warp[0][warp] = sum;
      of_warp[1][warp] = square_sum;
    }
    __syncthreads();
    sum += before;
    square_sum += squares_before;
    for (uint32_t w = 0; w < kRowThreads / kWarp; ++w) {
      if (w < warp) {
        sum += of_warp[0][w];
        square_sum += of_warp[1][w];
      }
      before += of_warp[0][w];
      squares_before += of_warp[1][w];
    }
    if (x < s->width) {
      d.sums[to + x] = sum;
      d.squares[to + x] = square_sum;
    }
    __syncthreads();
  }
}

// A thread per column of a scale.
__global__ void add_up_columns(Device d, uint32_t columns) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= columns) return;
  const scale_t* s = scales;
  while (i >= s[1].first_column) ++s;
  size_t at = (size_t)s->first_row * ROW + 1 + (i - s->first_column);
  uint32_t sum = 0, square_sum = 0;
  for (uint32_t y = 1; y <= s->height; ++y) {
    at += ROW;
    sum += d.sums[at];
    square_sum += d.squares[at];
    d.sums[at] = sum;
    d.squares[at] = square_sum;
  }
}

__device__ const scale_t* scale_of(uint32_t window) {
  const scale_t* s = scales;
  while (window >= s[1].first_window) ++s;
  return s;
}

// Where the window begins in the integral images.
__device__ size_t place_of(uint32_t window) {
  const scale_t* const s = scale_of(window);
  const uint32_t position = window - s->first_window;
  const uint32_t x = position % s->across * s->step, y = position / s->across * s->step;
  return (size_t)(s->first_row + y) * ROW + x;
}

__device__ int32_t rectangle_sum(const uint32_t* sums, uchar4 r) {
  const uint32_t* const upper = sums + r.y * ROW + r.x;
  const uint32_t* const lower = upper + r.w * ROW;
  return (int32_t)(upper[0] - upper[r.z] - lower[0] + lower[r.z]);
}

// As window_norm() of face_detection.c.
__device__ float window_norm(const Device& d, size_t at) {
  const uchar4 inner = make_uchar4(1, 1, kWindowWidth - 2, kWindowHeight - 2);
  const double area = (kWindowWidth - 2) * (kWindowHeight - 2);
  const double sum = rectangle_sum(d.sums + at, inner);
  const double square_sum = (uint32_t)rectangle_sum(d.squares + at, inner);
  const double scaled_variance = __dsub_rn(__dmul_rn(area, square_sum), __dmul_rn(sum, sum));
  if (!(scaled_variance > 0)) return 0;
  const float inverse = (float)(1.0 / __dsqrt_rn(scaled_variance));
  return area * inverse < 0.1 ? inverse : 0;
}

// Products and sums are not fused, so that they are the host's.
__device__ bool passes_stage(uint32_t stage, const uint32_t* sums, float inverse) {
  double total = 0;
  for (uint32_t k = first_stump[stage]; k < first_stump[stage + 1]; ++k) {
    const PackedStump& s = stumps[k];
    float value = __fadd_rn(__fmul_rn(s.weight.x, (float)rectangle_sum(sums, s.rectangle[0])),
                            __fmul_rn(s.weight.y, (float)rectangle_sum(sums, s.rectangle[1])));
    if (s.weight.z != 0)
      value = __fadd_rn(value, __fmul_rn(s.weight.z, (float)rectangle_sum(sums, s.rectangle[2])));
    total += __fmul_rn(value, inverse) < s.threshold ? s.below : s.above;
  }
  return total >= stage_threshold[stage];
}

// Threads of a warp append together.
__device__ void append(uint32_t* list, uint32_t* length, bool is_kept, uint32_t window) {
  const uint32_t keepers = __ballot_sync(0xffffffff, is_kept), lane = threadIdx.x % kWarp;
  if (keepers == 0) return;
  uint32_t first = 0;
  if (lane == 0) first = atomicAdd(length, __popc(keepers));
  first = __shfl_sync(0xffffffff, first, 0);
  if (is_kept) list[first + __popc(keepers & ((1u << lane) - 1))] = window;
}

__global__ void run_first_stage(Device d, uint32_t windows) {
  const uint32_t window = blockIdx.x * blockDim.x + threadIdx.x;
  if (window >= windows) return;
  const size_t at = place_of(window);
  const float inverse = window_norm(d, at);
  d.norm[window] = inverse;
  d.first_stage[window] = inverse == 0                            ? kFlat
                          : passes_stage(0, d.sums + at, inverse) ? kPassed
                                                                  : kRejected;
}

// As skip_as_opencv_does() of face_detection.c.
__global__ void collect_first(Device d, uint32_t windows) {
  const uint32_t window = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_kept = false;
  if (window < windows && d.first_stage[window] == kPassed) {
    const scale_t* const s = scale_of(window);
    const uint32_t row_start = window - (window - s->first_window) % s->across;
    uint32_t first = window;
    while (first > row_start && d.first_stage[first - 1] == kRejected) --first;
    is_kept = (window - first) % 2 == 0;
  }
  append(d.list[0], &d.kept[0], is_kept, window);
}

__global__ void run_stages(Device d, uint32_t from, uint32_t number, uint32_t first, uint32_t end) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t window = 0;
  bool is_kept = false;
  if (i < number) {
    window = d.list[from][i];
    const uint32_t* const sums = d.sums + place_of(window);
    const float inverse = d.norm[window];
    uint32_t stage = first;
    while (stage < end && passes_stage(stage, sums, inverse)) ++stage;
    is_kept = stage == end;
  }
  append(d.list[from ^ 1], &d.kept[from ^ 1], is_kept, window);
}

template <class T>
static T* zeroed(size_t count) {
  T* memory = nullptr;
  FINE(cudaMalloc(&memory, count * sizeof(T)));
  FINE(cudaMemset(memory, 0, count * sizeof(T)));
  return memory;
}
template <class T>
static T* copied(const T* from, size_t count) {
  T* const memory = zeroed<T>(count);
  FINE(cudaMemcpy(memory, from, count * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

static void copy_cascade() {
  static PackedStump packed[kStumpCount];
  for (int k = 0; k < kStumpCount; ++k) {
    const stump_t& s = kStumps[k];
    PackedStump& p = packed[k];
    signed char weights[3];
    for (int r = 0; r < 3; ++r) {
      const int32_t* const c = s.corners[r];
      p.rectangle[r] = make_uchar4(c[0] % ROW, c[0] / ROW, c[1] - c[0], (c[2] - c[0]) / ROW);
      weights[r] = (signed char)s.weight[r];
      if ((float)weights[r] != s.weight[r]) {
        std::fprintf(stderr, "face_detection.cu: a weight of %g is not supported\n", s.weight[r]);
        std::exit(1);
      }
    }
    p.weight = make_char4(weights[0], weights[1], weights[2], 0);
    p.threshold = s.threshold;
    p.below = s.below;
    p.above = s.above;
  }
  FINE(cudaMemcpyToSymbol(stumps, packed, sizeof packed));
  FINE(cudaMemcpyToSymbol(first_stump, kFirstStump, sizeof kFirstStump));
  FINE(cudaMemcpyToSymbol(stage_threshold, kStageThreshold, sizeof kStageThreshold));
  FINE(cudaMemcpyToSymbol(scales, pyramid.scale, sizeof pyramid.scale));
}

static uint32_t length_of(const Device& d, uint32_t list) {
  uint32_t length = 0;
  FINE(cudaMemcpy(&length, d.kept + list, sizeof length, cudaMemcpyDeviceToHost));
  return length;
}

static uint32_t blocks(uint32_t items) { return (items + kThreads - 1) / kThreads; }

// The windows that pass all stages, in order.
static std::vector<uint32_t> run_cascade(const Device& d) {
  run_first_stage<<<blocks(pyramid.windows), kThreads>>>(d, pyramid.windows);
  collect_first<<<blocks(pyramid.windows), kThreads>>>(d, pyramid.windows);
  uint32_t from = 0, number = length_of(d, 0);
  for (uint32_t round = 1; round < sizeof kRounds / sizeof kRounds[0] && number != 0; ++round) {
    FINE(cudaMemset(d.kept + (from ^ 1), 0, sizeof(uint32_t)));
    run_stages<<<blocks(number), kThreads>>>(d, from, number, kRounds[round - 1], kRounds[round]);
    from ^= 1;
    number = length_of(d, from);
  }
  std::vector<uint32_t> passed(number);
  FINE(cudaMemcpy(passed.data(), d.list[from], number * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  std::sort(passed.begin(), passed.end());
  return passed;
}

static void tell(const char* what, const box_t& b, int windows) {
  std::fprintf(stderr, "%s x=%d y=%d width=%d height=%d windows=%d\n", what, b.x, b.y, b.width,
               b.height, windows);
}

static box_t box_of(uint32_t window) {
  const scale_t* s = pyramid.scale;
  while (window >= s[1].first_window) ++s;
  const uint32_t position = window - s->first_window;
  const auto scaled = [&](uint32_t x) { return round_even((double)((float)x * s->factor)); };
  return {scaled(position % s->across * s->step), scaled(position / s->across * s->step),
          scaled(kWindowWidth), scaled(kWindowHeight)};
}

int main(int argc, char** argv) {
  plan_pyramid();
  if (pyramid.errors != 0 || pyramid.windows > kMaxWindows) {
    std::fprintf(stderr, "face_detection.cu: the picture is too large\n");
    return 1;
  }
  sample_pyramid(0, 1);
  copy_cascade();
  const size_t sums = (size_t)kMaxRows * ROW;
  const Device d = {copied(picture_pixels, sizeof picture_pixels),
                    copied(row_sample, kMaxRows),
                    copied(column_sample, kMaxColumns),
                    zeroed<uint32_t>(sums),
                    zeroed<uint32_t>(sums),
                    zeroed<float>(kMaxWindows),
                    zeroed<uint8_t>(kMaxWindows),
                    {zeroed<uint32_t>(kMaxWindows), zeroed<uint32_t>(kMaxWindows)},
                    zeroed<uint32_t>(2)};
  add_up_rows<<<pyramid.rows, kRowThreads>>>(d);
  add_up_columns<<<blocks(pyramid.columns), kThreads>>>(d, pyramid.columns);
  const std::vector<uint32_t> passed = run_cascade(d);
  if (passed.size() > kMaxPassed) {
    std::fprintf(stderr, "face_detection.cu: too many windows passed\n");
    return 1;
  }
  const auto number = (uint32_t)passed.size();
  for (uint32_t i = 0; i < number; ++i) passed_box[i] = box_of(passed[i]);
  const uint32_t* const labels = label[label_groups(0, 1, number)];
  average_groups(0, 1, number, labels);
  choose_faces(0, 1, number);
  for (uint32_t i = 0; argc > 1 && argv[1][0] == 'w' && i < number; ++i)
    tell("window", passed_box[i], 1);
  int faces = 0;
  for (uint32_t i = 0; i < number; ++i) {
    if (!group[i].is_face) continue;
    tell("face", group[i].box, group[i].windows);
    ++faces;
  }
  return faces != 0 ? 0 : 1;
}
