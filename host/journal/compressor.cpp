#include "host/journal/compressor.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "device_sim/base/error.h"

namespace gpusim::host {
namespace {

constexpr size_t kPiece = 1 << 16;

[[noreturn]] void fail() { throw Error("a trace could not be compressed: out of memory"); }

class Gzip final : public Compressor {
 public:
  Gzip() {
    constexpr int kLevel = 1, kWindowBits = 15, kWithGzipHeader = 16, kMemory = 8;
    if (::deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindowBits + kWithGzipHeader, kMemory,
                       Z_DEFAULT_STRATEGY) != Z_OK)
      fail();
  }
  ~Gzip() override { ::deflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void add(std::string_view text, std::string& packed) override {
    while (!text.empty()) {
      const size_t size = std::min<size_t>(text.size(), uint32_t{1} << 30);  // avail_in has 32 bits
      feed(text.substr(0, size), Z_NO_FLUSH, packed);
      text.remove_prefix(size);
    }
  }
  void finish(std::string& packed) override { feed({}, Z_FINISH, packed); }

 private:
  void feed(std::string_view text, int flush, std::string& packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = piece_.data();
      stream_.avail_out = static_cast<uInt>(piece_.size());
      if (::deflate(&stream_, flush) == Z_STREAM_ERROR) fail();
      packed.append(reinterpret_cast<char*>(piece_.data()), piece_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }
  z_stream stream_{};
  std::array<Bytef, kPiece> piece_;
};

class Xz final : public Compressor {
 public:
  Xz() {
    constexpr uint32_t kLevel = 1;
    if (::lzma_easy_encoder(&stream_, kLevel, LZMA_CHECK_CRC64) != LZMA_OK) fail();
  }
  ~Xz() override { ::lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;

  // Without anything to do it reports an error.
  void add(std::string_view text, std::string& packed) override {
    if (!text.empty()) feed(text, LZMA_RUN, packed);
  }
  void finish(std::string& packed) override { feed({}, LZMA_FINISH, packed); }

 private:
  void feed(std::string_view text, lzma_action action, std::string& packed) {
    stream_.next_in = reinterpret_cast<const uint8_t*>(text.data());
    stream_.avail_in = text.size();
    lzma_ret result = LZMA_OK;
    do {
      stream_.next_out = piece_.data();
      stream_.avail_out = piece_.size();
      result = ::lzma_code(&stream_, action);
      if (result != LZMA_OK && result != LZMA_STREAM_END) fail();
      packed.append(reinterpret_cast<char*>(piece_.data()), piece_.size() - stream_.avail_out);
    } while (action == LZMA_FINISH ? result != LZMA_STREAM_END : stream_.avail_in != 0);
  }
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::array<uint8_t, kPiece> piece_;
};

class Zstd final : public Compressor {
 public:
  Zstd() : context_(::ZSTD_createCCtx(), ::ZSTD_freeCCtx) {
    if (!context_) fail();
  }
  void add(std::string_view text, std::string& packed) override {
    feed(text, ZSTD_e_continue, packed);
  }
  void finish(std::string& packed) override { feed({}, ZSTD_e_end, packed); }

 private:
  void feed(std::string_view text, ZSTD_EndDirective directive, std::string& packed) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    size_t left = 0;
    do {
      ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
      left = ::ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (::ZSTD_isError(left)) fail();
      packed.append(piece_.data(), out.pos);
    } while (directive == ZSTD_e_end ? left != 0 : in.pos != in.size);
  }
  std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> context_;
  std::array<char, kPiece> piece_;
};

template <class C>
std::unique_ptr<Compressor> make() {
  return std::make_unique<C>();
}
struct Kind {
  std::string_view end;
  std::unique_ptr<Compressor> (*make)();
};
constexpr Kind kKinds[] = {{".gz", make<Gzip>}, {".xz", make<Xz>}, {".zst", make<Zstd>}};

}  // namespace

std::unique_ptr<Compressor> compressor_for(std::string_view path) {
  for (const Kind& kind : kKinds)
    if (path.ends_with(kind.end)) return kind.make();
  return nullptr;
}

std::string_view without_compression(std::string_view path) {
  for (const Kind& kind : kKinds)
    if (path.ends_with(kind.end)) return path.substr(0, path.size() - kind.end.size());
  return path;
}

}  // namespace gpusim::host
