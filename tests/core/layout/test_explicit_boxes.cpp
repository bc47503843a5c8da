// SPDX-License-Identifier: BSD-3-Clause
// Layouts of explicit boxes: their text, what they refuse, and what they answer.
#include <catch2/catch.hpp>

#include <set>

#include "core/base/errors.h"
#include "core/layout/request.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Contains;

namespace {

Layout layout_of(const char* boxes, const char* shape = "4,6", const char* mesh = "4") {
  return parse_layout(shape, "f32", mesh_of(mesh), boxes, "--from");
}

std::string rewritten(const char* boxes) { return layout_of(boxes).placements_text(); }

}  // namespace

TEST_CASE("explicit boxes are written as they are read") {
  CHECK(rewritten("boxes(0: [0:2,0:6]; 1-3: [2:4,0:6])") == "boxes(0: [0:2,0:6]; 1-3: [2:4,0:6])");
  CHECK(rewritten("boxes(3: [:,0:6]; 1: [0:1,:] , [3:4,:])") ==
        "boxes(1: [0:1,0:6], [3:4,0:6]; 3: [0:4,0:6])");
  // Equal shards are one entry, boxes come in the order of the shard, and places are said only
  // where they are not the usual ones.
  CHECK(rewritten("boxes(0: [3:4,0:6]@1,0, [0:1,0:6]@0,0; 2: [0:1,0:6], [3:4,0:6])") ==
        "boxes(0,2: [0:1,0:6], [3:4,0:6])");
  CHECK(rewritten("boxes(0: [0:4,0:1]@0,1, [0:4,5:6]@0,0)") ==
        "boxes(0: [0:4,5:6], [0:4,0:1]@0,1)");
  CHECK(rewritten("boxes()") == "boxes()");
  CHECK(layout_of("boxes(0: [0:2,:])").text() == "f32[4,6](boxes(0: [0:2,0:6])) on 4");
}

TEST_CASE("what no box has of a shard is padding") {
  auto padding = [](const char* boxes) {
    Layout layout = layout_of(boxes);
    std::span<const Box> found = layout.padding(0);
    return std::vector<Box>(found.begin(), found.end());
  };
  CHECK(padding("boxes(0: [0:2,0:6], [2:3,0:6])").empty());
  CHECK(padding("boxes(0: [0:2,0:6], [2:3,0:5])") == std::vector<Box>{{{2, 5}, {3, 6}}});
  CHECK(padding("boxes(0: [0:2,0:6]@1,0)") == std::vector<Box>{{{0, 0}, {1, 6}}});
  CHECK(padding("boxes(0: [0:1,0:2]@0,4, [1:2,0:2]@2,1)") ==
        std::vector<Box>{{{0, 0}, {1, 4}}, {{1, 0}, {2, 6}}, {{2, 0}, {3, 1}}, {{2, 3}, {3, 6}}});
  CHECK(padding("boxes(1: [0:2,0:6])").empty());
  CHECK(layout_of("boxes(0: [0:2,0:6])").padding(1).empty());
}

TEST_CASE("explicit boxes that are no shards are refused") {
  auto refused = [](const char* boxes, const char* why) {
    CHECK_THROWS_WITH(layout_of(boxes), Contains(why) && Contains("--from"));
  };
  refused("boxes(0: [0:2,0:7])", "the end of a box");
  refused("boxes(0: [3:2,0:6])", "the end of a box");
  refused("boxes(0: [2:2,0:6])",
          "boxes of rank 0: expected boxes of the tensor [4,6], found "
          "[2:2,0:6]");
  refused("boxes(0: [0:2,0:6], [1:3,0:6])",
          "expected boxes that do not overlap, found [0:2,0:6] "
          "and [1:3,0:6]");
  refused("boxes(1: [0:2,0:6], [2:4,0:6]@1,0)",
          "boxes of rank 1: expected boxes that do not "
          "overlap in the shard");
  refused("boxes(0: [0:2,0:6]@2000000000000000000,2000000000000000000)",
          "a shard of at most 2^62 elements");
  refused("boxes(4: [0:2,0:6])", "each rank of the mesh at most once, found 4");
  refused("boxes(0,0: [0:2,0:6])", "each rank of the mesh at most once, found 0");
  refused("boxes(0: [0:2,0:6]; 0: [2:4,0:6])", "each rank of the mesh at most once");
  refused("boxes(0: [0:2])", "expected ','");
  refused("boxes(0: [0:2,0:6]", "expected ')'");
  refused("boxes(0 [0:2,0:6])", "expected");
  refused("boxes(0: )", "expected '['");
  refused("boxes(0: [0:2,0:6]) R", "expected");
  CHECK_THROWS_WITH(layout_of("boxes(0: [:], [:], [:])", "4611686018427387904"),
                    Contains("boxes of one rank that are at most the tensor"));
  CHECK_THROWS_WITH(layout_of("boxes(0: [:,:])", "4611686018427387904,4611686018427387904"),
                    Contains("a shard of at most 2^62 elements"));
  CHECK_THROWS_WITH(layout_of("boxes(1: [:,0:1])", "1099511627776,4611686018427387904"),
                    Contains("2^62 bytes"));
  CHECK_THROWS_WITH(layout_of("boxes()", "", "4"), Contains("at least 1 dim, found a scalar"));
}

TEST_CASE("a source of explicit boxes holds what is needed, or the request is refused") {
  Layout half = layout_of("boxes(0: [0:2,:]; 1: [2:4,0:4])"), whole = layout_of("S(1)");
  CHECK_THROWS_WITH(Request(half, whole),
                    Contains("source: expected every element that the destination needs, found "
                             "none of [2:4,4:6]"));
  CHECK_NOTHROW(Request(whole, half));
  CHECK_NOTHROW(Request(half, layout_of("boxes(3: [0:1,:], [2:3,0:4]@1,0, [1:2,2:4]@1,4)")));
}

TEST_CASE("requests of different boxes differ") {
  Layout from = layout_of("R");
  const char* texts[] = {"boxes(0: [0:2,:])",
                         "boxes(0: [0:2,:]; 1: [0:2,:])",
                         "boxes(1: [0:2,:])",
                         "boxes(0: [1:3,:])",
                         "boxes(0: [1:2,:], [0:1,:])",
                         "boxes()",
                         "R"};
  std::set<std::string> prints;
  for (const char* a : texts) {
    prints.insert(Request(from, layout_of(a)).fingerprint().hex());
    for (const char* b : texts)
      CHECK((layout_of(a) == layout_of(b)) == (std::string_view(a) == std::string_view(b)));
  }
  CHECK(prints.size() == std::size(texts));
}

TEST_CASE("a long list of boxes is counted where people read it") {
  std::string text = "boxes(0: [0:1,0:1]";
  for (int i = 1; i < 40; ++i)
    text += ", [" + std::to_string(i) + ":" + std::to_string(i + 1) + ",0:1]";
  Layout layout = layout_of((text + ")").c_str(), "40,1");
  CHECK(layout.label() == "boxes(40 in 2 different shards)");
  CHECK_THAT(Request(layout_of("R", "40,1"), layout).text(), Contains("-> boxes(40 in 2"));
}

TEST_CASE("layouts answer alike whether by placements or by boxes") {
  Prng prng(20261126);
  int compared = 0;
  for (int draw = 0; draw < 3000 / kOneOf; ++draw) {
    Layout product = draw_pair(prng).source;
    if (product.dims() == 0) continue;
    std::vector<std::vector<Part>> lists;
    std::vector<std::int32_t> list_of;
    for (std::int32_t p = 0; p < product.mesh().size(); ++p) {
      list_of.push_back(p);
      lists.emplace_back();
      product.for_each_part(p, [&](const Box& box, const DimVector& lo) {
        lists.back().push_back({box, lo});
      });
    }
    Layout boxes(product.shape(), product.dtype(), product.mesh_ref(),
                 ExplicitBoxes(product.shape(), product.mesh(), lists, list_of));
    INFO(product.text());
    CHECK(boxes == parse_layout(text(product.shape()), text(product.dtype()), product.mesh_ref(),
                                boxes.placements_text()));
    for (std::int32_t p = 0; p < product.mesh().size(); ++p) {
      CHECK(held_elements(boxes, p) == held_elements(product, p));
      CHECK(boxes.boxes(p) == product.boxes(p));
      CHECK(element_count(boxes.local_shape(p)) == element_count(product.local_shape(p)));
      for (std::int32_t q = 0; q < p; ++q)
        if (boxes.cell_of(p) != boxes.cell_of(q)) CHECK(product.cell_of(p) != product.cell_of(q));
      Box probe = box_of(product.shape());
      for (int d = 0; d < probe.dims(); ++d) {
        probe.lo[d] = prng.between(0, probe.hi[d]);
        probe.hi[d] = prng.between(probe.lo[d], probe.hi[d]);
      }
      if (!probe.empty()) CHECK(boxes.holds_some(p, probe) == product.holds_some(p, probe));
    }
    if (element_count(product.shape()) > 0)
      for (int d = 0; d < product.dims(); ++d) CHECK(boxes.cuts(d) == product.cuts(d));
    ++compared;
  }
  CHECK(compared > 2000 / kOneOf);
}
