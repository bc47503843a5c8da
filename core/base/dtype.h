// SPDX-License-Identifier: BSD-3-Clause
// Element types, reduction operators, and which operators apply to which types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reshard {

enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool,
  C64
};
inline constexpr int kDTypeCount = 13;

enum class ReduceOp : std::uint8_t { Sum, Avg, Min, Max, Product, Band, Bor, Bxor };
inline constexpr int kReduceOpCount = 8;

std::int64_t size_bytes(DType dtype);
bool is_floating(DType dtype);  // f64 .. f8e5m2; not c64
bool is_integer(DType dtype);   // i64 .. u8; not bool

std::string_view text(DType dtype);  // "f32"
std::string_view text(ReduceOp op);  // "sum"
// The bits of an element in hex: "0x3f80" for a bf16.
std::string bits_text(std::uint64_t bits, DType dtype);

// Accepts reshard's names, PyTorch's names and common aliases ("bf16", "bfloat16",
// "torch.bfloat16", "half"); throws InputError naming `field`.
DType parse_dtype(std::string_view text, std::string_view field = "dtype");
// Accepts "sum", "avg", "min", "max", "product" (also "prod"), "band", "bor", "bxor"; throws
// InputError naming `field`.
ReduceOp parse_reduce_op(std::string_view text, std::string_view field = "reduction");

// sum, product: all types except bool and f8. avg: those of can_divide. min, max: all except c64
// and f8. band, bor, bxor: integers and bool.
bool can_reduce(ReduceOp op, DType dtype);

// Whether values can be divided by an integer (avg, R->P(sum)): floating types except f8, and c64.
bool can_divide(DType dtype);

}  // namespace reshard
