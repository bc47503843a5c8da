// SPDX-License-Identifier: BSD-3-Clause
// Which rank gets which GPU.
#include <catch2/catch.hpp>

#include "backends/launch/place.h"
#include "core/base/errors.h"
#include "tests/backends/launch/threaded_meeting.h"

namespace reshard::backends::launch {
namespace {

using Devices = std::vector<std::vector<int>>;

TEST_CASE("ranks are dealt out to GPUs") {
  std::vector<std::string> four{"a", "b", "c", "d"};
  // A single process: one rank per GPU, in turn, or all on the GPU that was named.
  CHECK(place({{"n", -1, -1, four}}, 4).devices == Devices{{0, 1, 2, 3}});
  CHECK(place({{"n", -1, -1, {"a", "b"}}}, 5).devices == Devices{{0, 1, 0, 1, 0}});
  CHECK(place({{"n", -1, 2, four}}, 2).devices == Devices{{2, 2}});
  // One process per rank: by local rank, by the order on the node where the launcher does not
  // number them, or as named.
  CHECK(place({{"n", 1, -1, four}, {"n", 0, -1, four}, {"m", 3, -1, four}}, 0).devices ==
        Devices{{1}, {0}, {3}});
  CHECK(place({{"n", -1, -1, four}, {"m", -1, -1, four}, {"n", -1, -1, four}}, 0).devices ==
        Devices{{0}, {0}, {1}});
  CHECK(place({{"n", 0, 3, four}, {"n", 1, -1, four}}, 0).devices == Devices{{3}, {1}});

  Placement own =
      place({{"n", 0, -1, {"a"}}, {"n", 1, -1, {"b"}}}, 0);  // each sees only its own GPU
  CHECK(own.devices == Devices{{0}, {0}});
  CHECK(own.most_on_one == 1);
  CHECK(own.gpus == 2);
  Placement shared =
      place({{"n", 0, -1, {"a", "b"}}, {"n", 1, -1, {"a", "b"}}, {"n", 2, -1, {"a", "b"}}}, 0);
  CHECK(shared.most_on_one == 2);
  CHECK(shared.gpus == 2);
  CHECK(shared.ranks == 3);
  CHECK_THROWS_WITH(place({{"n", 0, -1, {}}}, 1), "device: rank 0 sees no GPU");
  CHECK_THROWS_WITH(place({{"n", 0, -1, {"a"}}, {"n", 1, 1, {"b"}}}, 0),
                    "device: expected one of the 1 GPU that rank 1 sees, found 1");
}

TEST_CASE("everybody knows everybody's facts") {
  std::vector<ProcessFacts> facts{
      {"node with blanks", -1, 2, {"gpu 0", "gpu 1"}}, {"", 3, -1, {}}, {"n", 0, 0, {"x"}}};
  std::vector<std::vector<ProcessFacts>> seen(3);
  std::vector<std::string> thrown = run_ranks(3, [&](Meeting& meeting) {
    seen[static_cast<std::size_t>(meeting.index())] =
        share_facts(meeting, facts[static_cast<std::size_t>(meeting.index())]);
  });
  CHECK(thrown == std::vector<std::string>(3));
  for (const std::vector<ProcessFacts>& one : seen) {
    REQUIRE(one.size() == 3);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(one[p].node == facts[p].node);
      CHECK(one[p].local_rank == facts[p].local_rank);
      CHECK(one[p].device == facts[p].device);
      CHECK(one[p].gpus == facts[p].gpus);
    }
  }
  CHECK_FALSE(this_node().empty());
}

}  // namespace
}  // namespace reshard::backends::launch
