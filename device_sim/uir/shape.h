// Shapes: which fields of a micro-op name slots, and whether it reads or writes them.
#pragma once
#include <cstdint>

#include "device_sim/uir/vector.h"

namespace gpusim {

enum class Shape : uint8_t {
  // Values: slots in, one slot out, no other effect.
  kDI, kDA, kDAI, kDAB, kDABI, kDABC, kDABCI,
  kSel,      // kDABC with a condition in imm16
  kSelCmp,   // kDABC with a fourth source in e
  kSelCmpI,  // kDABCI
  // Values that also read and update the floating-point state slot named by e.
  kFA, kFAB, kFABC, kGA, kGAB, kGABC,
  // Memory.
  kLdI, kLdX, kLdW, kStI, kStX, kStW, kAmo, kCas, kCas128, kStx, kStx128, kAlign, kFence, kNote,
  kVector,  // any part of memory and of the vector state
  // What cores of a warp or a CTA do together.
  kWarp, kWarpSync, kCtaSync, kCtaReduce,
  // Ends of blocks.
  kJmp, kLink, kJmpReg, kBrAB, kBrAI, kGiveWay, kEnd, kService, kTrap,
};

// Shapes of rows that only modules with warps have: uir/warp.h.
constexpr bool is_of_warps(Shape s) {
  return (s >= Shape::kWarp && s <= Shape::kCtaReduce) || s == Shape::kEnd;
}

// How one operand field is used. A run of n names the slots field .. field + n - 1.
struct OperandUse {
  uint8_t reads = 0;   // number of consecutive slots read
  uint8_t writes = 0;  // number of consecutive slots written
};

struct ShapeInfo {
  OperandUse d{}, a{}, b{}, c{}, e{};
  bool fp_state = false;    // e names a slot that is read and written
  bool ends_block = false;
  bool falls_through = false;  // a conditional branch
  bool has_target = false;  // i holds a target micro-op
  bool pure = false;        // removing it is unobservable when its result is dead
};

constexpr ShapeInfo shape_info(Shape s) {
  constexpr OperandUse in{1, 0}, out{0, 1}, none{};
  switch (s) {
    case Shape::kDI: return {.d = out, .pure = true};
    case Shape::kDA:
    case Shape::kDAI: return {.d = out, .a = in, .pure = true};
    case Shape::kDAB:
    case Shape::kDABI: return {.d = out, .a = in, .b = in, .pure = true};
    case Shape::kDABC:
    case Shape::kDABCI:
    case Shape::kSel:
    case Shape::kSelCmpI: return {.d = out, .a = in, .b = in, .c = in, .pure = true};
    case Shape::kSelCmp:
      return {.d = out, .a = in, .b = in, .c = in, .e = in, .pure = true};
    case Shape::kFA:
    case Shape::kGA: return {.d = out, .a = in, .fp_state = true};
    case Shape::kFAB:
    case Shape::kGAB: return {.d = out, .a = in, .b = in, .fp_state = true};
    case Shape::kFABC:
    case Shape::kGABC: return {.d = out, .a = in, .b = in, .c = in, .fp_state = true};
    case Shape::kLdI: return {.d = out, .a = in};
    case Shape::kLdX:
    case Shape::kLdW: return {.d = out, .a = in, .b = in};
    case Shape::kStI: return {.d = in, .a = in};
    case Shape::kStX:
    case Shape::kStW: return {.d = in, .a = in, .b = in};
    case Shape::kAmo: return {.d = out, .a = in, .b = in};
    case Shape::kCas: return {.d = out, .a = in, .b = in, .c = in};
    case Shape::kCas128: return {.d = {2, 2}, .a = in, .b = {2, 0}};
    case Shape::kStx: return {.d = out, .a = in, .b = in, .c = {2, 1}};
    case Shape::kStx128: return {.d = out, .a = in, .b = {2, 0}, .c = {3, 1}};
    case Shape::kAlign: return {.a = in};
    case Shape::kFence: return {};
    case Shape::kNote: return {.a = in, .b = in};
    case Shape::kVector: {
      constexpr uint8_t state = vector::kSlotCount;
      return {.d = out, .a = in, .b = in, .c = {state, state}, .e = {1, 1}};
    }
    case Shape::kWarp:
    case Shape::kCtaReduce: return {.d = out, .a = in, .b = in, .c = in};
    case Shape::kWarpSync: return {.c = in};
    case Shape::kCtaSync: return {.b = in, .c = in};
    case Shape::kJmp:
    case Shape::kLink: return {.ends_block = true, .has_target = true};
    case Shape::kGiveWay: return {.a = {2, 0}, .ends_block = true, .has_target = true};
    case Shape::kJmpReg: return {.a = in, .ends_block = true};
    case Shape::kBrAB:
      return {.a = in, .b = in, .ends_block = true, .falls_through = true, .has_target = true};
    case Shape::kBrAI:
      return {.a = in, .ends_block = true, .falls_through = true, .has_target = true};
    case Shape::kService: return {.d = none, .ends_block = true, .has_target = true};
    case Shape::kEnd:
    case Shape::kTrap: return {.ends_block = true};
  }
  return {};
}

}  // namespace gpusim
