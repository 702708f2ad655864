#include "host/gdb/condition.h"

#include <algorithm>
#include <vector>

namespace gpusim::host::gdb {
namespace {

// GDB manual, "Bytecode Descriptions".
enum : uint8_t {
  kAdd = 0x02,
  kSub = 0x03,
  kMul = 0x04,
  kDivSigned = 0x05,
  kDivUnsigned = 0x06,
  kRemSigned = 0x07,
  kRemUnsigned = 0x08,
  kLsh = 0x09,
  kRshSigned = 0x0a,
  kRshUnsigned = 0x0b,
  kLogNot = 0x0e,
  kBitAnd = 0x0f,
  kBitOr = 0x10,
  kBitXor = 0x11,
  kBitNot = 0x12,
  kEqual = 0x13,
  kLessSigned = 0x14,
  kLessUnsigned = 0x15,
  kExt = 0x16,
  kRef8 = 0x17,
  kRef16 = 0x18,
  kRef32 = 0x19,
  kRef64 = 0x1a,
  kIfGoto = 0x20,
  kGoto = 0x21,
  kConst8 = 0x22,
  kConst16 = 0x23,
  kConst32 = 0x24,
  kConst64 = 0x25,
  kReg = 0x26,
  kEnd = 0x27,
  kDup = 0x28,
  kPop = 0x29,
  kZeroExt = 0x2a,
  kSwap = 0x2b,
  kPick = 0x32,
  kRot = 0x33,
};

class Evaluation {
 public:
  Evaluation(std::span<const uint8_t> code, const ConditionContext& context)
      : code_(code), context_(context) {}

  std::optional<uint64_t> run() {
    constexpr int kMostSteps = 10000;  // expressions have no loops of their own
    for (int i = 0; i < kMostSteps && ok_; ++i) {
      const auto op = static_cast<uint8_t>(operand(1));
      if (op == kEnd) {
        const uint64_t value = pop();
        return ok_ ? std::optional(value) : std::nullopt;
      }
      if (ok_) execute(op);
    }
    return std::nullopt;
  }

 private:
  uint64_t fail() {
    ok_ = false;
    return 0;
  }
  // Big-endian, behind the operation.
  uint64_t operand(size_t size) {
    if (size > code_.size() - at_) return fail();
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | code_[at_++];
    return value;
  }
  uint64_t pop() {
    if (stack_.empty()) return fail();
    const uint64_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  void push(uint64_t value) {
    constexpr size_t kMostDeep = 1000;
    if (stack_.size() >= kMostDeep) fail();
    stack_.push_back(value);
  }
  void load(size_t size) {
    uint8_t bytes[8] = {};
    if (!context_.read_memory(pop(), {bytes, size})) fail();
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | bytes[i];
    push(value);
  }
  void jump(uint64_t to) {
    if (to >= code_.size()) fail();
    at_ = ok_ ? to : at_;
  }

  static uint64_t extend(uint64_t value, uint64_t bits, bool is_signed) {
    if (bits == 0 || bits >= 64) return value;
    const auto shift = static_cast<int>(64 - bits);
    value <<= shift;
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value) >> shift) : value >> shift;
  }

  uint64_t binary(uint8_t op, uint64_t a, uint64_t b) {
    const auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    switch (op) {
      case kAdd:
        return a + b;
      case kSub:
        return a - b;
      case kMul:
        return a * b;
      case kDivSigned:
        return b == 0 ? fail() : b == ~uint64_t{0} ? 0 - a : static_cast<uint64_t>(sa / sb);
      case kDivUnsigned:
        return b == 0 ? fail() : a / b;
      case kRemSigned:
        return b == 0 ? fail() : b == ~uint64_t{0} ? 0 : static_cast<uint64_t>(sa % sb);
      case kRemUnsigned:
        return b == 0 ? fail() : a % b;
      case kLsh:
        return b > 63 ? 0 : a << b;
      case kRshSigned:
        return static_cast<uint64_t>(sa >> std::min<uint64_t>(b, 63));
      case kRshUnsigned:
        return b > 63 ? 0 : a >> b;
      case kBitAnd:
        return a & b;
      case kBitOr:
        return a | b;
      case kBitXor:
        return a ^ b;
      case kEqual:
        return a == b;
      case kLessSigned:
        return sa < sb;
      case kLessUnsigned:
        return a < b;
      default:
        return fail();
    }
  }

  void execute(uint8_t op) {
    switch (op) {
      case kLogNot:
        return push(pop() == 0);
      case kBitNot:
        return push(~pop());
      case kExt:
      case kZeroExt: {
        const uint64_t bits = operand(1);
        return push(extend(pop(), bits, op == kExt));
      }
      case kRef8:
        return load(1);
      case kRef16:
        return load(2);
      case kRef32:
        return load(4);
      case kRef64:
        return load(8);
      case kIfGoto: {
        const uint64_t to = operand(2);
        if (pop() != 0) jump(to);
        return;
      }
      case kGoto:
        return jump(operand(2));
      case kConst8:
        return push(operand(1));
      case kConst16:
        return push(operand(2));
      case kConst32:
        return push(operand(4));
      case kConst64:
        return push(operand(8));
      case kReg: {
        const auto value = context_.read_register(static_cast<uint32_t>(operand(2)));
        return push(value ? *value : fail());
      }
      case kDup: {
        const uint64_t value = pop();
        push(value);
        return push(value);
      }
      case kPop:
        pop();
        return;
      case kSwap: {
        const uint64_t top = pop(), next = pop();
        push(top);
        return push(next);
      }
      case kPick: {
        const uint64_t depth = operand(1);
        return push(depth < stack_.size() ? stack_[stack_.size() - 1 - depth] : fail());
      }
      case kRot: {  // a b c => c a b
        const uint64_t c = pop(), b = pop(), a = pop();
        push(c);
        push(a);
        return push(b);
      }
      default: {
        const uint64_t b = pop(), a = pop();
        return push(binary(op, a, b));
      }
    }
  }

  std::span<const uint8_t> code_;
  const ConditionContext& context_;
  size_t at_ = 0;
  std::vector<uint64_t> stack_;
  bool ok_ = true;
};

}  // namespace

std::optional<uint64_t> evaluate_condition(std::span<const uint8_t> code,
                                           const ConditionContext& context) {
  return Evaluation(code, context).run();
}

}  // namespace gpusim::host::gdb
