// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/stage_loads.h"

#include <algorithm>
#include <map>

#include "core/base/integers.h"
#include "core/base/limits.h"

namespace reshard {
namespace {

// By stage, the bytes that every resource class carries.
class StageLoads {
 public:
  explicit StageLoads(const RankRoutes& routes) : routes_(routes) {}

  void add(const Branch& branch, std::int64_t bytes) {
    std::map<Slot, std::size_t> reached;  // the first stage in which a rank can send
    for (const std::vector<TreeHop>* hops : {&branch.in, &branch.out})
      for (const TreeHop& hop : *hops) {
        std::size_t stage = reached[hop.from];
        reached[hop.to] = std::max(reached[hop.to], stage + 1);
        if (stages_.size() <= stage)
          stages_.resize(stage + 1, std::vector<Int128>(routes_.classes().size(), 0));
        routes_.for_each_class(hop.from, hop.to,
                               [&](std::int32_t of) { stages_[stage][to_index(of)] += bytes; });
      }
  }

  // The sum over all stages but the longest of the time of each. Everything is carried `copies`
  // times, evenly over the resources of a class.
  std::int64_t without_longest_ps(std::int64_t copies) const {
    Int128 sum = 0, longest = 0;
    for (const std::vector<Int128>& bytes : stages_) {
      Int128 time = 0;
      for (std::size_t of = 0; of < bytes.size(); ++of) {
        const RankRoutes::ResourceClass& resources = routes_.classes()[of];
        time = std::max(time, bytes[of] * copies / resources.resources * 1'000'000 /
                                  std::max<std::int64_t>(1, resources.bytes_per_s / 1'000'000));
      }
      sum += time;
      longest = std::max(longest, time);
    }
    return static_cast<std::int64_t>(std::min<Int128>(sum - longest, kMaxTimePs));
  }

 private:
  const RankRoutes& routes_;
  std::vector<std::vector<Int128>> stages_;
};

}  // namespace

std::int64_t later_stages_ps(const Packing& packing, const Commodities& commodities,
                             const RankRoutes& routes, const Symmetry& symmetry) {
  StageLoads loads(routes);
  for (const PackedTree& tree : packing.trees) {
    std::size_t of = to_index(tree.commodity);
    auto bytes = static_cast<std::int64_t>(Int128{commodities.list()[of].bytes} * tree.granules /
                                           (packing.granules[of] * packing.stabilizer[of]));
    for (const Branch& branch : tree.branches) loads.add(branch, bytes);
  }
  return loads.without_longest_ps(symmetry.size());
}

}  // namespace reshard
