// SPDX-License-Identifier: BSD-3-Clause
// What lies where in the buffers of ranks, as a page shows it.
#include <set>

#include <fmt/format.h>

#include "core/stored/generators.h"
#include "sim/page/page.h"
#include "sim/page/panels/panels.h"
#include "tests/sim/page/page_cases.h"

using namespace reshard;
using namespace reshard::sim;
using Catch::Contains;

namespace {

FusedBuffer fused(const char* name, int ranks, int first, std::vector<FusedBlock> blocks) {
  FusedBuffer out;
  out.name = name;
  out.mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}, Rank{first}));
  out.placements.placements = {Placement::shard(0)};
  out.blocks = std::move(blocks);
  return out;
}

// Per layer q and k alternate in two rows each; afterwards they are one after another on two ranks.
struct Layers {
  ModelTensors tensors;
  Stored source{tensors}, destination{tensors};
  explicit Layers(int layers) {
    for (int layer = 0; layer < layers; ++layer) {
      std::string prefix = fmt::format("layers.{}.", layer);
      ModelTensorId q = tensors.add(prefix + "q", {8, 2}, DType::BF16);
      ModelTensorId k = tensors.add(prefix + "k", {4, 2}, DType::BF16);
      std::string before = prefix + "qk", after = prefix + "split";
      add_fused(source, fused(before.c_str(), 1, 0, {{{{q, 2}, {k, 1}}, 2, 1}}));
      add_fused(destination, fused(after.c_str(), 2, 1, {{{{q, 1}}, 0, 1}, {{{k, 1}}, 0, 1}}));
    }
    // Padding before, in between and behind.
    ModelTensorId norm = tensors.add("norm", {4}, DType::F32);
    for (Stored* side : {&source, &destination})
      side->add({Rank{0},
                 "n",
                 {10},
                 DType::F32,
                 {{norm, {{0}, {2}}, 1, {1}}, {norm, {{2}, {4}}, 5, {1}}}});
  }
};

ReadPage drawn(const Layers& layers) {
  Page page("test", "buffers");
  StoredRequests stored(layers.source, layers.destination);
  draw_buffers(page.add_panel("buffers", "Buffers"), stored);
  return ReadPage(page.text());
}

std::vector<std::string> rows_of(const ReadPage& page) {
  std::vector<std::string> out;
  for (const auto& row : page.document.select_nodes("//tbody/tr")) {
    std::string text;
    for (pugi::xml_node cell : row.node().children())
      text += (text.empty() ? "" : "|") + std::string(cell.text().get());
    out.push_back(text);
  }
  return out;
}

}  // namespace

TEST_CASE("a page shows the sections of buffers in memory order, of one layer") {
  Layers layers(3);
  ReadPage page = drawn(layers);
  CHECK(rows_of(page) ==
        std::vector<std::string>{
            "before|layers.0.qk|0|layers.0.q[0:4,:], layers.0.k[0:2,:], layers.0.q[4:8,:], "
            "layers.0.k[2:4,:]",
            "before|n|0|padding of 1, norm[0:2], padding of 2, norm[2:4], padding of 3",
            "after|layers.0.split|1|layers.0.q[0:4,:], layers.0.k[0:2,:]",
            "after|layers.0.split|2|layers.0.q[4:8,:], layers.0.k[2:4,:]",
            "after|n|0|padding of 1, norm[0:2], padding of 2, norm[2:4], padding of 3"});
  CHECK(page.count("//svg/rect") == 4 + 5 + 4 + 5);
  CHECK(page.count("//svg/rect[@class='ground']") == 6);
  // q, k and norm.
  std::set<std::string> colours;
  for (const auto& bar : page.document.select_nodes("//svg/rect[not(@class)]"))
    colours.insert(bar.node().attribute("fill").value());
  CHECK(colours.size() == 3);
}

TEST_CASE("ranks with the same in their buffers share a bar") {
  Layers layers(1);
  ModelTensors& tensors = layers.tensors;
  ModelTensorId w = tensors.add("w", {2}, DType::F32);
  for (int rank : {0, 3, 4, 5})
    layers.source.add({Rank{rank}, "w", {2}, DType::F32, {{w, {{0}, {2}}, 0, {1}}}});
  layers.destination.add({Rank{1}, "w", {2}, DType::F32, {{w, {{0}, {2}}, 0, {1}}}});
  CHECK_THAT(rows_of(drawn(layers))[2], Contains("before|w|0,3-5|w[:]"));
}
