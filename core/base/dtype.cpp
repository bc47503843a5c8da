// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/dtype.h"

#include <array>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard {
namespace {

struct DTypeRow {
  std::string_view name, torch_name;
  std::int64_t size_bytes;
};

constexpr std::array<DTypeRow, kDTypeCount> kDTypes{{{"f64", "float64", 8},
                                                     {"f32", "float32", 4},
                                                     {"f16", "float16", 2},
                                                     {"bf16", "bfloat16", 2},
                                                     {"f8e4m3", "float8_e4m3fn", 1},
                                                     {"f8e5m2", "float8_e5m2", 1},
                                                     {"i64", "int64", 8},
                                                     {"i32", "int32", 4},
                                                     {"i16", "int16", 2},
                                                     {"i8", "int8", 1},
                                                     {"u8", "uint8", 1},
                                                     {"bool", "bool", 1},
                                                     {"c64", "complex64", 8}}};

constexpr std::array<std::string_view, kReduceOpCount> kOps{"sum",     "avg",  "min", "max",
                                                            "product", "band", "bor", "bxor"};

struct Alias {
  std::string_view name;
  DType dtype;
};
constexpr std::array<Alias, 10> kAliases{{{"double", DType::F64},
                                          {"float", DType::F32},
                                          {"half", DType::F16},
                                          {"long", DType::I64},
                                          {"int", DType::I32},
                                          {"short", DType::I16},
                                          {"cfloat", DType::C64},
                                          {"float8_e4m3", DType::F8E4M3},
                                          {"f8e4m3fn", DType::F8E4M3},
                                          {"b8", DType::Bool}}};

bool is_f8(DType dtype) { return dtype == DType::F8E4M3 || dtype == DType::F8E5M2; }

}  // namespace

std::int64_t size_bytes(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].size_bytes; }
bool is_floating(DType dtype) { return dtype <= DType::F8E5M2; }
bool is_integer(DType dtype) { return dtype >= DType::I64 && dtype <= DType::U8; }
std::string_view text(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }
std::string_view text(ReduceOp op) { return kOps[static_cast<std::size_t>(op)]; }

std::string bits_text(std::uint64_t bits, DType dtype) {
  return fmt::format("{:#0{}x}", bits, 2 * size_bytes(dtype) + 2);
}

DType parse_dtype(std::string_view text, std::string_view field) {
  std::string_view name = text;
  if (name.substr(0, 6) == "torch.") name.remove_prefix(6);
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (name == kDTypes[i].name || name == kDTypes[i].torch_name) return static_cast<DType>(i);
  for (const Alias& alias : kAliases)
    if (name == alias.name) return alias.dtype;
  throw InputError(
      fmt::format("{}: expected one of f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool c64 "
                  "or a torch name, found {}",
                  field, quoted(text)));
}

ReduceOp parse_reduce_op(std::string_view text, std::string_view field) {
  if (text == "prod") return ReduceOp::Product;
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (text == kOps[i]) return static_cast<ReduceOp>(i);
  throw InputError(fmt::format(
      "{}: expected one of sum avg min max product band bor bxor, found {}", field, quoted(text)));
}

bool can_reduce(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Product:
      return dtype != DType::Bool && !is_f8(dtype);
    case ReduceOp::Avg:
      return can_divide(dtype);
    case ReduceOp::Min:
    case ReduceOp::Max:
      return dtype != DType::C64 && !is_f8(dtype);
    case ReduceOp::Band:
    case ReduceOp::Bor:
    case ReduceOp::Bxor:
      return is_integer(dtype) || dtype == DType::Bool;
  }
  return false;
}

bool can_divide(DType dtype) {
  return (is_floating(dtype) && !is_f8(dtype)) || dtype == DType::C64;
}

}  // namespace reshard
