// SPDX-License-Identifier: BSD-3-Clause
// Decisions about attention: masks of every shape, groups of heads that a shard keeps or splits,
// and what is reported where PyTorch chooses another row.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <set>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/head_groups.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/operator_cases.h"

namespace reshard::test {
namespace {

using Catch::Contains;

struct Input {
  Shape shape;
  const char* placements;
};

struct Asked {
  const char *op, *mesh;
  std::vector<Input> in;
  std::vector<std::pair<const char*, bool>> attributes = {};
};

Decision decided_attention(const Asked& asked, const Choosing& choosing = {}) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh(asked.mesh));
  std::vector<TensorSpec> specs;
  for (const Input& input : asked.in)
    specs.push_back({{input.shape, DType::BF16}, parse_op_placements(input.placements)});
  OpCall call{&find_operator(asked.op), {}, {}};
  for (const auto& [name, value] : asked.attributes) call.attributes.set(name, OpValue(value));
  for (const TensorSpec& spec : specs) call.arguments.push_back({false, {&spec}});
  TorchMoves moves(mesh, 1);
  return decide(
      call, mesh->shape(),
      [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); },
      choosing);
}

std::string words(const Decision& decision) {
  return fmt::format("{} -> {}", text(decision.wanted), text(decision.outputs[0]->placements));
}

constexpr const char *kComposite = "scaled_dot_product_attention",
                     *kFlash = "_scaled_dot_product_flash_attention",
                     *kEfficient = "_scaled_dot_product_efficient_attention";

std::string with_mask(const char* op, const Shape& mask, const char* cut, const char* at = "R") {
  Shape heads{4, 8, 16, 8};
  return words(
      decided_attention({op, "4", {{heads, cut}, {heads, cut}, {heads, cut}, {mask, at}}}));
}

TEST_CASE("a mask is cut at the dim that broadcasting makes of it") {
  struct Row {
    Shape mask;
    const char *heads, *batches;
  };
  for (const Row& row : std::vector<Row>{{{16, 16}, "R", "R"},
                                         {{16}, "R", "R"},
                                         {{1, 16}, "R", "R"},
                                         {{8, 16, 16}, "S(0)", "R"},
                                         {{1, 16, 16}, "R", "R"},
                                         {{1, 1, 16, 16}, "R", "R"},
                                         {{4, 1, 1, 16}, "R", "S(0)"},
                                         {{1, 8, 16, 1}, "S(1)", "R"},
                                         {{4, 8, 16, 16}, "S(1)", "S(0)"}}) {
    CAPTURE(text(row.mask));
    CHECK(with_mask(kComposite, row.mask, "S(1)") ==
          fmt::format("S(1), S(1), S(1), {} -> S(1)", row.heads));
    CHECK(with_mask(kComposite, row.mask, "S(0)") ==
          fmt::format("S(0), S(0), S(0), {} -> S(0)", row.batches));
  }
}

TEST_CASE("a kernel's mask that PyTorch cuts at another dim is cut at its own, and that is said") {
  Shape heads{4, 8, 16, 8};
  for (const char* op : {kEfficient, "_scaled_dot_product_cudnn_attention"}) {
    for (const Shape& mask : {Shape{16, 16}, Shape{8, 16, 16}}) {
      Decision found = decided_attention(
          {op, "4", {{heads, "S(1)"}, {heads, "S(1)"}, {heads, "S(1)"}, {mask, "R"}}});
      CHECK(words(found) ==
            fmt::format("S(1), S(1), S(1), {} -> S(1)", mask.size() == 2 ? "R" : "S(0)"));
      CHECK_THAT(std::string(found.corrected), Contains("PyTorch 2.15") && Contains("mask"));
    }
    // With as many dims as the scores it is right, if wasteful: what is broadcast it cannot cut.
    Decision whole = decided_attention(
        {op, "4", {{heads, "S(0)"}, {heads, "S(0)"}, {heads, "S(0)"}, {{1, 8, 16, 16}, "R"}}});
    CHECK(words(whole) == "R, R, R, R -> R");
    CHECK(whole.corrected.empty());
  }
}

TEST_CASE("where PyTorch need not be followed, broadcast masks and queries may be cut") {
  Choosing free{Ties::Fewest, true, true};
  Shape heads{4, 8, 16, 8};
  auto in = [&](const char* cut, const Shape& mask) {
    return std::vector<Input>{{heads, cut}, {heads, cut}, {heads, cut}, {mask, "R"}};
  };
  CHECK(words(decided_attention({kEfficient, "4", in("S(0)", {1, 8, 16, 16})}, free)) ==
        "S(0), S(0), S(0), R -> S(0)");
  std::vector<Input> queries{{heads, "S(2)"}, {heads, "R"}, {heads, "R"}};
  CHECK(words(decided_attention({kFlash, "4", queries}, free)) == "S(2), R, R -> S(2)");
  CHECK(words(decided_attention({kFlash, "4", queries})) == "R, R, R -> R");
  // The first query of a rank is not the first of all.
  CHECK(words(decided_attention({kFlash, "4", queries, {{"is_causal", true}}}, free)) !=
        "S(2), R, R -> S(2)");
}

TEST_CASE("queries of CPUs are cut with their mask, and not where they are causal") {
  const char* cpu = "_scaled_dot_product_flash_attention_for_cpu";
  Shape heads{1, 3, 16, 8};
  std::vector<Input> in{{heads, "S(2)"}, {heads, "R"}, {heads, "R"}};
  CHECK(words(decided_attention({cpu, "4", in})) == "S(2), R, R -> S(2)");
  CHECK(words(decided_attention({cpu, "4", in, {{"is_causal", true}}})) == "R, R, R -> R");
  in.push_back({{16, 16}, "R"});
  CHECK(words(decided_attention({cpu, "4", in})) == "S(2), R, R, S(0) -> S(2)");
  in.back() = {{1, 1, 1, 16}, "R"};
  CHECK(words(decided_attention({cpu, "4", in})) == "S(2), R, R, R -> S(2)");
}

// ---- groups

struct Heads {
  std::int64_t queries, keys;
  const char* mesh;
};

Decision grouped(const char* op, const Heads& of, const char* cut, const Choosing& choosing = {}) {
  Shape query{1, of.queries, 8, 16}, key{1, of.keys, 8, 16};
  Asked asked{op, of.mesh, {{query, cut}, {key, cut}, {key, cut}}};
  if (std::string(op) == kComposite) asked.attributes = {{"enable_gqa", true}};
  return decided_attention(asked, choosing);
}

TEST_CASE("heads stay cut where every rank has whole groups, else they are gathered") {
  for (const char* op : {kComposite, kFlash, kEfficient}) {
    for (const Heads& of : {Heads{8, 4, "4"}, Heads{4, 2, "2"}, Heads{16, 4, "2"}, Heads{6, 3, "3"},
                            Heads{24, 8, "4"}, Heads{9, 9, "4"}}) {
      CAPTURE(op, of.queries, of.keys, of.mesh);
      Decision found = grouped(op, of, "S(1)");
      CHECK(words(found) == "S(1), S(1), S(1) -> S(1)");
      CHECK(found.corrected.empty());
      CHECK(found.cost_us == 0);
    }
    for (const Heads& of :
         {Heads{12, 3, "2"}, Heads{6, 3, "2"}, Heads{12, 6, "4"}, Heads{8, 4, "3"},
          Heads{16, 8, "6"}, Heads{10, 5, "4"}, Heads{9, 3, "2"}, Heads{24, 8, "6"}}) {
      CAPTURE(op, of.queries, of.keys, of.mesh);
      Decision found = grouped(op, of, "S(1)");
      CHECK(text(*found.wanted[1]) == "R");
      CHECK_THAT(std::string(found.corrected), Contains("silently wrong") && Contains("heads"));
    }
  }
}

TEST_CASE("keys that could be cut as queries are, and nothing is said of it") {
  Shape query{1, 8, 8, 16}, key{1, 4, 8, 16};
  for (const char* op : {kComposite, kFlash}) {
    Asked asked{op, "4", {{query, "S(1)"}, {key, "R"}, {key, "R"}}};
    if (op == kComposite) asked.attributes = {{"enable_gqa", true}};
    Decision found = decided_attention(asked);
    CHECK(words(found) == "S(1), S(1), S(1) -> S(1)");
    CHECK(found.corrected.empty());
  }
}

TEST_CASE("query heads may be cut along two axes where KV heads are along one") {
  Choosing free{Ties::Fewest, true, true};
  Shape query{1, 8, 8, 16}, key{1, 2, 8, 16};
  Asked asked{kFlash, "2x2", {{query, "S(1)S(1)"}, {key, "S(1)R"}, {key, "S(1)R"}}};
  CHECK(words(decided_attention(asked, free)) == "S(1)S(1), S(1)R, S(1)R -> S(1)S(1)");
  CHECK(words(decided_attention(asked)) == "S(1)R, S(1)R, S(1)R -> S(1)R");
}

TEST_CASE("fewer KV heads than ranks stay whole where PyTorch need not be followed") {
  Choosing free{Ties::Fewest, true, true};
  for (std::int64_t keys : {1, 2}) {
    Shape query{1, 8, 8, 16}, key{1, keys, 8, 16};
    std::vector<Input> in{{query, "S(1)"}, {key, "R"}, {key, "R"}};
    CHECK(words(decided_attention({kFlash, "4", in}, free)) == "S(1), R, R -> S(1)");
    CHECK(words(decided_attention({kFlash, "4", in})) == "R, R, R -> R");
    CHECK(words(decided_attention({kComposite, "4", in, {{"enable_gqa", true}}})) ==
          "S(1), R, R -> S(1)");
  }
  // Their gradients are addends.
  Shape query{1, 8, 8, 16}, key{1, 2, 8, 16};
  Asked backward{"_scaled_dot_product_flash_attention_backward",
                 "4",
                 {{query, "S(1)"},
                  {query, "S(1)"},
                  {key, "R"},
                  {key, "R"},
                  {query, "S(1)"},
                  {{1, 8, 8}, "S(1)"}}};
  Decision found = decided_attention(backward, free);
  CHECK(text(found.outputs[0]->placements) == "S(1)");
  CHECK(text(found.outputs[1]->placements) == "P(sum)");
  CHECK(text(found.outputs[2]->placements) == "P(sum)");
}

TEST_CASE("heads that do not group, and masks that do not broadcast, are refused") {
  Shape query{2, 8, 4, 8};
  auto of = [&](const char* op, const Shape& key, const Shape& mask, bool causal = false) {
    return decided_attention(
        {op, "2", {{query, "R"}, {key, "R"}, {key, "R"}, {mask, "R"}}, {{"is_causal", causal}}});
  };
  CHECK_THROWS_WITH(of(kEfficient, {2, 3, 4, 8}, {4, 4}),
                    Contains("8 query heads do not divide into groups over 3 KV heads"));
  CHECK_THROWS_WITH(of(kComposite, {2, 4, 4, 8}, {4, 4}), Contains("broadcast"));
  CHECK_THROWS_WITH(of(kEfficient, {1, 8, 4, 8}, {4, 4}), Contains("of one batch"));
  CHECK_THROWS_WITH(of(kComposite, {2, 8, 4, 8}, {3, 4}),
                    Contains("a mask of [3,4] does not broadcast to scores of [2,8,4,4]"));
  CHECK_THROWS_WITH(of(kComposite, {2, 8, 4, 8}, {5, 2, 8, 4, 4}), Contains("does not broadcast"));
  CHECK_THROWS_WITH(of(kComposite, {2, 8, 4, 8}, {4, 4}, true), Contains("found both"));
  CHECK_NOTHROW(of(kComposite, {1, 1, 4, 8}, {4, 4}));
}

TEST_CASE("the heads that a rank asks for are those of its queries' groups") {
  auto asked = [](std::vector<Run> queries, std::vector<Run> keys, std::int64_t group) {
    std::optional<KeyHeads> found = heads_asked_for(queries, keys, group);
    return found ? fmt::format("{}+{}", found->first, found->count) : std::string("torn");
  };
  CHECK(asked({{0, 0, 6}}, {{0, 0, 3}}, 4) == "torn");  // heads 0 to 3 and 4, 5
  CHECK(asked({{0, 0, 8}}, {{0, 0, 3}}, 4) == "0+2");
  CHECK(asked({{4, 0, 4}}, {{0, 0, 3}}, 4) == "1+1");
  CHECK(asked({{4, 0, 2}}, {{0, 0, 3}}, 4) == "1+1");
  CHECK(asked({{2, 0, 4}}, {{0, 0, 3}}, 4) == "0+2");   // two of each
  CHECK(asked({{8, 0, 4}}, {{0, 0, 2}}, 4) == "torn");  // its head is elsewhere
  CHECK(asked({{0, 0, 2}, {4, 2, 2}}, {{0, 0, 1}, {1, 1, 1}}, 2) == "torn");  // heads 0 and 2
  CHECK(asked({}, {{0, 0, 2}}, 4) == "0+0");
}

}  // namespace
}  // namespace reshard::test
