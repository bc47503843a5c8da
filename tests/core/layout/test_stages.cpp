// SPDX-License-Identifier: BSD-3-Clause
// Stages against their definition, tensor by tensor: the same tensors before and the same after.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/layout/stages.h"
#include "tests/support/prng.h"

using namespace reshard;
using reshard::test::Prng;

namespace {

TensorOrder order_from(const std::vector<std::vector<int>>& lists) {
  TensorOrder out(lists.size());
  for (std::size_t t = 0; t < lists.size(); ++t)
    for (int other : lists[t]) out[t].push_back(TensorId{other});
  return out;
}

using Matrix = std::vector<std::vector<bool>>;  // [a][b]: a comes after b

Matrix closed(Matrix after) {
  std::size_t n = after.size();
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (after[i][k] && after[k][j]) after[i][j] = true;
  return after;
}

Matrix matrix_of(const TensorOrder& order) {
  Matrix out(order.size(), std::vector<bool>(order.size(), false));
  for (std::size_t t = 0; t < order.size(); ++t)
    for (TensorId other : order[t]) out[t][to_index(other)] = true;
  return closed(std::move(out));
}

// By tensor: all that the stages directly before its own have.
TensorOrder order_of(const Stages& stages, std::size_t tensors) {
  TensorOrder out(tensors);
  for (const Stage& stage : stages)
    for (TensorId tensor : stage.tensors)
      for (std::int32_t before : stage.after)
        for (TensorId other : stages[to_index(before)].tensors) out[tensor].push_back(other);
  return out;
}

// A drawn order without cycles, whose tensors are not in the order of their numbers.
TensorOrder drawn(Prng& prng, int count) {
  std::vector<int> place;
  for (int i = 0; i < count; ++i) place.push_back(i);
  prng.shuffle(place);
  TensorOrder out(static_cast<std::size_t>(count));
  std::int64_t layers = prng.between(1, 4);
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < a; ++b) {
      // Half of the orders are of layers, in which twins are frequent.
      bool named = count % 2 == 0 ? a % layers == b % layers + 1 : prng.one_in(4);
      if (named) out[place[to_index(a)]].push_back(TensorId{place[to_index(b)]});
    }
  return out;
}

}  // namespace

TEST_CASE("drawn orders: stages are the tensors with the same before and after them") {
  int several = 0, twins = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Prng prng(seed);
    int count = static_cast<int>(prng.between(1, 12));
    TensorOrder order = drawn(prng, count);
    CAPTURE(seed);
    Matrix after = matrix_of(order);
    Stages stages = stages_of(order);
    bool none = std::all_of(order.begin(), order.end(), [](const auto& l) { return l.empty(); });
    CHECK(stages.empty() == none);
    if (none) continue;
    ++several;
    IndexVector<TensorId, std::int32_t> of = stage_of_tensors(stages, order.size());
    std::size_t n = order.size();
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) {
        bool same = true;
        for (std::size_t c = 0; c < n; ++c)
          same = same && after[a][c] == after[b][c] && after[c][a] == after[c][b];
        CHECK((of[a] == of[b]) == same);
        twins += a != b && same ? 1 : 0;
      }
    // What stages say is the order, with nothing added and nothing twice.
    CHECK(matrix_of(order_of(stages, n)) == after);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      CHECK(std::is_sorted(stages[s].tensors.begin(), stages[s].tensors.end()));
      for (std::int32_t before : stages[s].after) {
        CHECK(to_index(before) < s);
        Stages fewer = stages;
        std::erase(fewer[s].after, before);
        CHECK(matrix_of(order_of(fewer, n)) != after);
      }
    }
  }
  CHECK(several > 200);
  CHECK(twins > 200);
}

TEST_CASE("stages are listed in turn, else by their first tensors") {
  // Two independent chains, 1 -> 2 and 3 -> 0, and 4 alone.
  Stages stages = stages_of(order_from({{3}, {}, {1}, {}, {}}));
  REQUIRE(stages.size() == 5);
  CHECK(stages[0] == Stage{{TensorId{1}}, {}});
  CHECK(stages[1] == Stage{{TensorId{2}}, {0}});
  CHECK(stages[2] == Stage{{TensorId{3}}, {}});
  CHECK(stages[3] == Stage{{TensorId{0}}, {2}});
  CHECK(stages[4] == Stage{{TensorId{4}}, {}});
  // Layers in turn, one of which names all before it.
  stages = stages_of(order_from({{}, {}, {0, 1}, {1, 0}, {0, 1, 2, 3}}));
  REQUIRE(stages.size() == 3);
  CHECK(stages[0] == Stage{{TensorId{0}, TensorId{1}}, {}});
  CHECK(stages[1] == Stage{{TensorId{2}, TensorId{3}}, {0}});
  CHECK(stages[2] == Stage{{TensorId{4}}, {1}});
}

TEST_CASE("groups of several jobs stay beside each other, twins among them are one stage") {
  TensorId a{0}, b{1}, c{2}, d{3}, e{4};
  Stages groups;
  add_groups(groups, {{{b}, {}}, {{a}, {0}}}, 2, 0);  // b, then a
  add_groups(groups, {}, 1, 2);
  add_groups(groups, {{{a}, {}}, {{b}, {0}}}, 2, 3);  // d, then e
  CHECK(groups[2] == Stage{{c}, {}});
  CHECK(groups[4] == Stage{{e}, {3}});
  CHECK(stages_of(groups) == Stages{{{b}, {}}, {{a}, {0}}, {{c}, {}}, {{d}, {}}, {{e}, {3}}});
  // All of the last after all of the first: d comes after both.
  groups[3].after = {1, 0};
  CHECK(stages_of(groups) == Stages{{{b}, {}}, {{a}, {0}}, {{c}, {}}, {{d}, {1}}, {{e}, {3}}});
  // Groups can name later ones, and the same ones.
  CHECK(stages_of(Stages{{{a}, {2}}, {{b}, {2}}, {{c}, {}}}) == Stages{{{c}, {}}, {{a, b}, {0}}});
  CHECK(stages_of(Stages{{{a}, {}}, {{b}, {}}}).empty());
}

TEST_CASE("too many stages are refused, many tensors in few are not") {
  auto chain = [](std::size_t count, std::size_t of_each) {
    TensorOrder out(count);
    for (std::size_t t = of_each; t < count; ++t)
      for (std::size_t i = 0; i < of_each; ++i)
        out[t].push_back(id_of<TensorId>((t / of_each - 1) * of_each + i));
    return out;
  };
  CHECK(stages_of(chain(kMaxStages, 1)).size() == kMaxStages);
  CHECK(stages_of(chain(4 * 1024, 4)).size() == 1024);
  CHECK_THROWS_AS(stages_of(chain(kMaxStages + 1, 1)), InputError);
}

TEST_CASE("a job's identity is that of its requests and their order") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  Request request(parse_layout("4", "f32", mesh, "S(0)"), parse_layout("4", "f32", mesh, "R"));
  std::vector<Request> three(3, request);
  std::set<Digest> all{fingerprint_of(three)};
  CHECK(fingerprint_of(three, {}) == fingerprint_of(three));
  for (const auto& lists : std::vector<std::vector<std::vector<int>>>{
           {{}, {0}, {0}}, {{}, {}, {0, 1}}, {{}, {0}, {1}}, {{}, {0}, {}}, {{1}, {}, {}}})
    CHECK(all.insert(fingerprint_of(three, stages_of(order_from(lists)))).second);
}
