// SPDX-License-Identifier: BSD-3-Clause
// Single views: what they do to placements, what they refuse, and what they cannot mean.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/views/view_rule.h"

namespace reshard {
namespace {

using Catch::Matchers::StartsWith;
using Sizes = std::vector<std::int64_t>;

struct Case {
  const char* name;
  std::vector<std::int32_t> mesh;
  const char* shape;
  std::vector<std::pair<const char*, Sizes>> attributes;
  const char* placements;
  const char* expected;  // "wanted -> output", or how the refusal starts
};

OpAttributes attributes_of(const Case& c) {
  OpAttributes out;
  for (const auto& [name, list] : c.attributes) {
    bool is_list = std::string_view(name).ends_with('s') || std::string_view(name) == "size";
    out.set(name, is_list ? OpValue(list) : OpValue(list[0]));
  }
  return out;
}

TensorSpec spec_of(const Case& c) {
  TensorSpec out{{parse_shape(c.shape), DType::F32}, {}};
  int axes = static_cast<int>(c.mesh.size());
  for (const Placement& placement :
       parse_placements(c.placements, axes, out.meta.shape.size(), "placements").placements)
    out.placements.emplace_back(placement);
  return out;
}

ViewResult result_of(const Case& c) {
  TensorSpec spec = spec_of(c);
  return propagate(view_map(c.name, spec.meta, attributes_of(c)), spec, c.mesh);
}

std::string answer(const ViewResult& result) {
  if (!result.refusal.empty()) return result.refusal;
  return text(result.wanted) + " -> " + text(result.output);
}

// Answers of PyTorch 2.15.
TEST_CASE("views: what the reference says") {
  const Case cases[]{
      {"view", {4}, "4,8,16", {{"size", {32, 16}}}, "S(1)", "S(1) -> _S(0, 4)"},
      {"view", {4}, "4,8,16", {{"size", {32, 16}}}, "S(2)", "S(2) -> S(1)"},
      {"view",
       {4},
       "32,16",
       {{"size", {2, 16, 16}}},
       "S(0)",
       "Cannot unflatten unevenly sharded tensor: output dimension 0 (size 2) is not evenly "
       "divisible by mesh dimension 0 (size 4)"},
      {"view",
       {4},
       "5,8",
       {{"size", {40}}},
       "S(0)",
       "Cannot flatten unevenly sharded tensor: dimension 0 (size 5)"},
      {"view", {4}, "8,5", {{"size", {40}}}, "S(1)", "S(1) -> _S(0, 8)"},
      {"view", {2, 2}, "8,8", {{"size", {64}}}, "S(0)S(1)", "S(0)S(1) -> S(0)_S(0, 4)"},
      {"view", {2, 2}, "64", {{"size", {8, 8}}}, "S(0)_S(0,4)", "S(0)_S(0, 4) -> S(0)S(1)"},
      {"view", {4}, "2,8,32", {{"size", {2, 8, 4, 8}}}, "S(2)", "S(2) -> S(2)"},
      {"view", {4}, "2,8,32", {{"size", {2, 8, 2, 16}}}, "S(2)", "Cannot unflatten unevenly"},
      {"view", {4}, "2,8,4,8", {{"size", {2, 8, 32}}}, "S(3)", "S(3) -> _S(2, 4)"},
      {"view", {4}, "12,8", {{"size", {8, 12}}}, "S(0)", "S(0) -> S(0)"},
      {"view", {4}, "12,8", {{"size", {8, 12}}}, "S(1)", "R -> R"},
      {"view", {2, 2}, "4,8,16", {{"size", {32, 16}}}, "S(0)S(1)", "S(0)S(1) -> S(0)_S(0, 2)"},
      {"view", {4}, "8,16", {{"size", {2, 4, 16}}}, "_S(0,2)", "_S(0, 2) -> S(1)"},
      {"view", {4}, "1,8,16", {{"size", {8, 16}}}, "S(1)", "S(1) -> S(0)"},
      {"view_copy", {4}, "32,16", {{"size", {2, 16, 16}}}, "S(0)", "R -> R"},
      {"view_copy", {4}, "4,8,16", {{"size", {32, 16}}}, "S(1)", "R -> R"},
      {"squeeze.dim",
       {4},
       "1,8",
       {{"dim", {0}}},
       "S(0)",
       "This operation would remove or reshape sharded dimension 0, which requires "
       "redistribution"},
      {"squeeze", {4}, "1,2,8", {}, "S(1)", "S(1) -> S(0)"},
      {"repeat", {4}, "8,4", {{"repeats", {2, 1}}}, "S(0)", "R -> R"},
      {"permute", {4}, "5,8,4", {{"dims", {2, 0, -2}}}, "S(0)", "S(0) -> S(1)"},
      {"unsqueeze", {4}, "5,8", {{"dim", {-3}}}, "S(1)", "S(1) -> S(2)"},
      {"movedim.int",
       {4},
       "5,8,4",
       {{"source", {0}}, {"destination", {-1}}},
       "S(0)",
       "S(0) -> S(2)"},
      {"view", {2, 2}, "8,8", {{"size", {64}}}, "P(max)S(0)", "P(max)S(0) -> P(max)S(0)"},
  };
  for (const Case& c : cases) {
    INFO(c.name << " " << c.shape << " " << c.placements);
    ViewResult result = result_of(c);
    CHECK_THAT(answer(result), StartsWith(c.expected));
    CHECK(result.corrected.empty());
  }
}

TEST_CASE("views: where PyTorch fails inside or takes elements for others") {
  const Case cases[]{
      // A KeyError.
      {"expand", {4}, "1,8", {{"size", {4, 8}}}, "S(0)", "R -> R"},
      // Its size rule is evaluated twice, the second answer wins: local (3, 3) of 8 elements.
      {"view_copy", {3}, "3,8", {{"size", {8, 3}}}, "S(0)", "R -> R"},
      // Keeps _S(0, 2), whose pieces of 12 are others than those of 4.
      {"view", {3}, "4,3", {{"size", {12}}}, "_S(0,2)", "This operation would remove or reshape"},
      // Each axis alone divides the first piece, both do not.
      {"view", {2, 2}, "8", {{"size", {2, 4}}}, "S(0)S(0)", "This operation would remove"},
  };
  for (const Case& c : cases) {
    INFO(c.name << " " << c.shape << " " << c.placements);
    ViewResult result = result_of(c);
    CHECK_THAT(answer(result), StartsWith(c.expected));
    CHECK_FALSE(result.corrected.empty());
  }
}

TEST_CASE("views: partials of operators pass, and who made a strided shard is remembered") {
  TensorSpec spec{{parse_shape("4,8"), DType::F32}, {OpPlacement::shard(1)}};
  OpAttributes flat;
  flat.set("size", OpValue(Sizes{32}));
  ViewMap map = view_map("view", spec.meta, flat);
  std::vector<std::int32_t> sizes{4};
  CHECK(propagate(map, spec, sizes).of_view);
  spec.placements = {OpPlacement(Placement::strided_shard(0, 1))};
  CHECK_FALSE(propagate(map, spec, sizes).of_view);
  spec.of_view = true;
  CHECK(propagate(map, spec, sizes).of_view);
  CHECK(text(propagate(map, spec, sizes).output) == "_S(0, 1)");
  spec.placements = {OpPlacement::mask_partial(spec.meta.shape, 0)};
  CHECK(propagate(map, spec, sizes).output == spec.placements);
  CHECK_FALSE(propagate(map, spec, sizes).of_view);
}

// PyTorch has rows for t: a dim shorter than its axes is gathered.
TEST_CASE("t: short dims are gathered") {
  auto moved = [](const TensorSpec& from, const OpPlacements& to) {
    return from.placements == to ? 0.0 : 1.0;
  };
  std::vector<std::int32_t> sizes{4};
  for (auto [shape, expected] : {std::pair{"8,5", "S(1)"}, std::pair{"3,5", "R"}}) {
    TensorSpec spec{{parse_shape(shape), DType::F32}, {OpPlacement::shard(0)}};
    OpCall call{&find_operator("t"), {{false, {&spec}}}, {}};
    CHECK(text(decide(call, sizes, moved).outputs.at(0)->placements) == expected);
  }
}

TEST_CASE("views: arguments that do not fit") {
  const Case cases[]{
      {"view", {1}, "4,6", {{"size", {5, 5}}}, "R", "attr size: expected sizes of 24 elements"},
      {"view", {1}, "4,6", {{"size", {-1, 5}}}, "R", "attr size: expected sizes of 24 elements"},
      {"view", {1}, "4,6", {{"size", {-1, -1}}}, "R", "attr size: expected sizes of 24 elements"},
      {"view", {1}, "4,6", {{"size", {-2, -12}}}, "R", "attr size: expected sizes of 24 elements"},
      {"view", {1}, "0,6", {{"size", {-1, 0}}}, "R", "attr size: expected sizes of 0 elements"},
      {"view", {1}, "1", {{"size", {1, 1, 1, 1, 1, 1, 1, 1, 1}}}, "R", "attr size: expected at"},
      {"view", {1}, "4", {{"size", {std::int64_t{1} << 62, 16}}}, "R", "attr size: expected sizes"},
      {"view", {1}, "4", {}, "R", "attr size: expected"},
      {"unflatten", {1}, "4,6", {{"dim", {0}}, {"sizes", {2, 3}}}, "R", "attr sizes: expected"},
      {"unflatten", {1}, "4,4", {{"dim", {2}}, {"sizes", {2, 2}}}, "R", "attr dim: expected a dim"},
      {"permute", {1}, "4,6", {{"dims", {0, 0}}}, "R", "attr dims: expected each dim once"},
      {"permute", {1}, "4,6", {{"dims", {0}}}, "R", "attr dims: expected 2 dims"},
      {"transpose.int", {1}, "4,6", {{"dim0", {0}}, {"dim1", {2}}}, "R", "attr dim1: expected a"},
      {"expand", {1}, "4,6", {{"size", {4, 7}}}, "R", "attr size: expected a dim longer than 1"},
      {"expand", {1}, "4,6", {{"size", {6}}}, "R", "attr size: expected at least as many sizes"},
      {"expand", {1}, "4,6", {{"size", {-1, 4, 6}}}, "R", "attr size: expected sizes of at least"},
      {"repeat", {1}, "4,6", {{"repeats", {2}}}, "R", "attr repeats: expected at least 2 numbers"},
      {"repeat", {1}, "4", {{"repeats", {-1}}}, "R", "attr repeats: expected counts of at least 0"},
      {"flatten", {1}, "4,6", {{"start_dim", {1}}, {"end_dim", {0}}}, "R", "attr start_dim: exp"},
      {"squeeze.dim", {1}, "4,6", {{"dim", {5}}}, "R", "attr dim: expected a dim from -2 to 1"},
      {"t", {1}, "4,6,2", {}, "R", "t: expected a tensor of at most 2 dims"},
      {"unsqueeze", {1}, "1,1,1,1,1,1,1,1", {{"dim", {0}}}, "R", "shape: expected at most 8 dims"},
  };
  for (const Case& c : cases) {
    INFO(c.name << " " << c.shape << " " << c.expected);
    CHECK_THROWS_WITH(view_map(c.name, spec_of(c).meta, attributes_of(c)), StartsWith(c.expected));
  }
}

}  // namespace
}  // namespace reshard
