// SPDX-License-Identifier: BSD-3-Clause
// Every dtype and every reduction: names, widths, and which combinations are allowed.
#include <catch2/catch.hpp>

#include "core/base/dtype.h"
#include "core/base/errors.h"

using namespace reshard;
using Catch::Matchers::Message;

TEST_CASE("dtypes: names, widths and kinds") {
  const struct {
    DType dtype;
    const char *name, *torch_name;
    std::int64_t size_bytes;
    bool floating, integer, divides;
    const char* reductions;  // that the dtype allows
  } rows[] = {
      {DType::F64, "f64", "float64", 8, true, false, true, "sum avg min max product"},
      {DType::F32, "f32", "float32", 4, true, false, true, "sum avg min max product"},
      {DType::F16, "f16", "float16", 2, true, false, true, "sum avg min max product"},
      {DType::BF16, "bf16", "bfloat16", 2, true, false, true, "sum avg min max product"},
      {DType::F8E4M3, "f8e4m3", "float8_e4m3fn", 1, true, false, false, ""},
      {DType::F8E5M2, "f8e5m2", "float8_e5m2", 1, true, false, false, ""},
      {DType::I64, "i64", "int64", 8, false, true, false, "sum min max product band bor bxor"},
      {DType::I32, "i32", "int32", 4, false, true, false, "sum min max product band bor bxor"},
      {DType::I16, "i16", "int16", 2, false, true, false, "sum min max product band bor bxor"},
      {DType::I8, "i8", "int8", 1, false, true, false, "sum min max product band bor bxor"},
      {DType::U8, "u8", "uint8", 1, false, true, false, "sum min max product band bor bxor"},
      {DType::Bool, "bool", "bool", 1, false, false, false, "min max band bor bxor"},
      {DType::C64, "c64", "complex64", 8, false, false, true, "sum avg product"},
  };
  int count = 0;
  for (const auto& row : rows) {
    CAPTURE(row.name);
    CHECK(static_cast<int>(row.dtype) == count++);
    CHECK(text(row.dtype) == row.name);
    CHECK(parse_dtype(row.name) == row.dtype);
    CHECK(parse_dtype(row.torch_name) == row.dtype);
    CHECK(parse_dtype(std::string("torch.") + row.torch_name) == row.dtype);
    CHECK(size_bytes(row.dtype) == row.size_bytes);
    CHECK(is_floating(row.dtype) == row.floating);
    CHECK(is_integer(row.dtype) == row.integer);
    CHECK(can_divide(row.dtype) == row.divides);
    std::string reductions;
    for (int op = 0; op < kReduceOpCount; ++op)
      if (can_reduce(static_cast<ReduceOp>(op), row.dtype))
        reductions += (reductions.empty() ? "" : " ") + std::string(text(ReduceOp(op)));
    CHECK(reductions == row.reductions);
  }
  CHECK(count == kDTypeCount);
  CHECK_THROWS_MATCHES(parse_dtype("torch.torch.f32", "--dtype"), InputError,
                       Message("--dtype: expected one of f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 "
                               "i16 i8 u8 bool c64 or a torch name, found 'torch.torch.f32'"));
}

TEST_CASE("reductions are read by the names that they print") {
  const char* names[] = {"sum", "avg", "min", "max", "product", "band", "bor", "bxor"};
  for (int op = 0; op < kReduceOpCount; ++op) {
    CHECK(text(static_cast<ReduceOp>(op)) == names[op]);
    CHECK(parse_reduce_op(names[op]) == static_cast<ReduceOp>(op));
  }
  CHECK(parse_reduce_op("prod") == ReduceOp::Product);
  CHECK_THROWS_MATCHES(
      parse_reduce_op("mean", "--op"), InputError,
      Message("--op: expected one of sum avg min max product band bor bxor, found 'mean'"));
}

TEST_CASE("bits are printed as wide as the element is") {
  CHECK(bits_text(0x7, DType::I8) == "0x07");
  CHECK(bits_text(0x3f80, DType::BF16) == "0x3f80");
  CHECK(bits_text(0x1, DType::F32) == "0x00000001");
  CHECK(bits_text(0xfedcba9876543210, DType::C64) == "0xfedcba9876543210");
}
