// SPDX-License-Identifier: BSD-3-Clause
// Which rank gets which GPU, and what is said and set where several get the same.
#include <catch2/catch.hpp>

#include <map>

#include "backends/nccl/place.h"
#include "core/base/errors.h"
#include "tests/support/threaded_meeting.h"

namespace reshard::backends::nccl {
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

TEST_CASE("several ranks on one GPU need NCCL 2.30, some variables and a warning") {
  Placement shared = place({{"n", -1, -1, {"a"}}}, 4),
            apart = place({{"n", -1, -1, {"a", "b"}}}, 2);
  std::map<std::string, std::string> variables;
  std::vector<std::string> warnings;
  Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  auto allow = [&](const Placement& placement, int version) {
    allow_sharing(
        placement, version, environment,
        [&](const char* name, const char* value) { variables[name] = value; },
        [&](const std::string& text) { warnings.push_back(text); });
  };
  allow(apart, 21400);
  CHECK(variables.empty());
  CHECK(warnings.empty());
  CHECK_THROWS_WITH(allow(shared, 22809),
                    "NCCL: 4 ranks on 1 GPU need NCCL 2.30.0 or newer, found 2.28.9");
  CHECK(variables.empty());
  allow(shared, 23007);
  CHECK(variables == std::map<std::string, std::string>{{"NCCL_MULTI_RANK_GPU_ENABLE", "1"},
                                                        {"NCCL_NVLS_ENABLE", "0"},
                                                        {"NCCL_MAX_CTAS", "8"},
                                                        {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}});
  CHECK(warnings == std::vector<std::string>{"NCCL: 4 ranks on 1 GPU: results are those of that "
                                             "many GPUs, times say nothing about links"});
  variables = {{"NCCL_NVLS_ENABLE", "2"}};
  allow(shared, 23007);
  CHECK(variables["NCCL_NVLS_ENABLE"] == "2");
}

TEST_CASE("everybody knows everybody's facts") {
  std::vector<ProcessFacts> facts{
      {"node with blanks", -1, 2, {"gpu 0", "gpu 1"}}, {"", 3, -1, {}}, {"n", 0, 0, {"x"}}};
  std::vector<std::vector<ProcessFacts>> seen(3);
  run_meeting(3, [&](Meeting& meeting) {
    seen[static_cast<std::size_t>(meeting.index())] =
        share_facts(meeting, facts[static_cast<std::size_t>(meeting.index())]);
  });
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
}  // namespace reshard::backends::nccl
