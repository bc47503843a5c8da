// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/case_sets.h"

#include "core/base/errors.h"
#include "tests/support/cases.h"

namespace reshard::test {
namespace {

std::vector<Shape> lengths(std::int64_t from, std::int64_t to) {
  std::vector<Shape> out;
  for (std::int64_t length = from; length <= to; ++length) out.push_back(Shape{length});
  return out;
}

std::vector<Shape> rectangles(std::initializer_list<std::int64_t> rows) {
  std::vector<Shape> out;
  for (std::int64_t row : rows)
    for (std::int64_t column : {0, 1, 2, 3, 5, 8}) out.push_back(Shape{row, column});
  return out;
}

std::vector<std::vector<std::int32_t>> one_or_two_axes() {
  std::vector<std::vector<std::int32_t>> meshes = single_axis_meshes(8);
  for (auto& mesh : factored_meshes(8, 2)) meshes.push_back(mesh);
  return meshes;
}

std::vector<CaseSet> made_sets() {
  const std::vector<Placement> one_dim{Placement::replicate(), Placement::shard(0),
                                       Placement::strided_shard(0, 2),
                                       Placement::strided_shard(0, 3), Placement::partial()};
  const std::vector<Placement> two_dims{Placement::replicate(), Placement::shard(0),
                                        Placement::shard(1), Placement::partial()};
  const std::vector<Placement> operators{Placement::replicate(),
                                         Placement::shard(0),
                                         Placement::partial(),
                                         Placement::partial(ReduceOp::Avg),
                                         Placement::partial(ReduceOp::Max),
                                         Placement::partial(ReduceOp::Product)};
  return {
      {"1-d on one axis and on two of two to eight ranks", lengths(0, 9), DType::F32, one_dim,
       one_or_two_axes()},
      {"1-d on 2x2x2, lengths 0 to 3", lengths(0, 3), DType::F32, one_dim, {{2, 2, 2}}},
      {"1-d on 2x2x2, lengths 4 to 6", lengths(4, 6), DType::F32, one_dim, {{2, 2, 2}}},
      {"1-d on 2x2x2, lengths 7 to 9", lengths(7, 9), DType::F32, one_dim, {{2, 2, 2}}},
      {"1-d beside an axis of size 1", lengths(0, 9), DType::BF16, one_dim, meshes_with_ones(8)},
      {"2-d on one axis", rectangles({0, 1, 2, 3, 5, 8}), DType::F64, two_dims,
       single_axis_meshes(8)},
      {"2-d on two axes, 0 to 2 rows", rectangles({0, 1, 2}), DType::F32, two_dims,
       factored_meshes(8, 2)},
      {"2-d on two axes, 3 to 8 rows", rectangles({3, 5, 8}), DType::F32, two_dims,
       factored_meshes(8, 2)},
      {"2-d beside an axis of size 1", rectangles({0, 1, 2, 3, 5, 8}), DType::F16, two_dims,
       meshes_with_ones(8)},
      {"1-d with different operators", lengths(5, 6), DType::F32, operators, {{2, 2}, {3, 2}}},
      {"1-d with different operators beside an axis of size 1",
       lengths(5, 5),
       DType::BF16,
       operators,
       {{3, 1}}},
  };
}

}  // namespace

const std::vector<CaseSet>& case_sets() {
  static const std::vector<CaseSet> sets = made_sets();
  return sets;
}

const CaseSet& case_set(std::string_view name) {
  for (const CaseSet& set : case_sets())
    if (set.name == name) return set;
  fail_check("case_set", __FILE__, __LINE__, std::string(name));
}

}  // namespace reshard::test
