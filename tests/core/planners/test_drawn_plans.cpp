// SPDX-License-Identifier: BSD-3-Clause
// Planners' results for random requests on odd machines, without a simulator: each line of the data
// is one machine with a few requests, with a separate digest for each planner (texts of plans,
// reasons, refusals) and for each part of a packing. Other tests check that they are right; this
// one that nothing has changed. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_planners "drawn plans*"
//
// rewrites tests/core/planners/data/drawn_plans.txt.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/packing/packing.h"
#include "core/packing/steps/pipelined_trees.h"
#include "core/planners/planner.h"
#include "core/text/plan_text.h"
#include "core/traffic/accounting.h"
#include "sim/machines/presets.h"
#include "tests/support/cases.h"
#include "tests/support/odd_machine.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kPath = "tests/core/planners/data/drawn_plans.txt";
constexpr std::uint64_t kMachines = 300;
constexpr int kRequests = 4;

MeshRef mesh_of(const std::string& text, std::vector<Rank> ranks) {
  std::vector<std::int32_t> shape = parse_mesh(text).shape();
  ranks.resize(to_index(parse_mesh(text).size()));
  return std::make_shared<const Mesh>(shape, std::move(ranks));
}

// Axes and lengths that divide, so that there are symmetries; the first ranks, or any.
std::optional<Request> even_request(Prng& prng, std::int64_t devices) {
  std::vector<std::string> meshes;
  for (const char* text : {"2", "3", "4", "2x2", "6", "2x3", "3x2", "8", "2x4", "4x2", "2x2x2", "9",
                           "3x3", "12", "2x6", "3x4", "4x3", "2x3x2"})
    if (parse_mesh(text).size() <= devices) meshes.push_back(text);
  std::vector<Rank> ranks;
  for (std::int64_t device = 0; device < devices; ++device)
    ranks.push_back(static_cast<Rank>(device));
  const std::vector<std::string> words{"R", "S(0)", "S(1)", "S(0)", "S(1)", "P(sum)", "P(avg)"};
  auto side = [&](const MeshRef& mesh) {
    std::string out;
    for (int axis = 0; axis < mesh->axes(); ++axis) out += prng.pick(words);
    return out;
  };
  std::string mesh = prng.pick(meshes);
  if (prng.one_in(4)) prng.shuffle(ranks);
  MeshRef from = mesh_of(mesh, ranks), to = from;
  if (prng.one_in(4)) {
    if (prng.one_in(2)) std::rotate(ranks.begin(), ranks.begin() + devices / 2, ranks.end());
    to = mesh_of(prng.one_in(2) ? mesh : prng.pick(meshes), ranks);
  }
  std::string source = side(from), destination = side(to),
              shape = prng.pick(std::vector<std::string>{"24,24", "72,12", "144,1000", "36,50,2"}),
              dtype = prng.pick(std::vector<std::string>{"f32", "u8", "bf16"});
  try {
    return Request(parse_layout(shape, dtype, from, source),
                   parse_layout(shape, dtype, to, destination));
  } catch (const InputError&) {
    return {};
  }
}

std::optional<Request> odd_request(Prng& prng, std::int64_t devices) {
  DrawnPair pair = draw_pair(prng, static_cast<std::int32_t>(devices));
  try {
    return Request(pair.source, pair.destination);
  } catch (const InputError&) {
    return {};
  }
}

// The longest chain of steps, each a nanosecond and what all receive at 1 GB/s.
PlanTiming chain_time(const Plan& plan, const Topology&, std::int64_t) {
  PlanBytes bytes = count_bytes(plan);
  std::vector<std::int64_t> end;
  std::int64_t longest = 0;
  for (const Step& step : plan.steps) {
    std::int64_t begin = 0;
    for (StepId before : step.after) begin = std::max(begin, end[to_index(before)]);
    end.push_back(begin + 1000 + 1000 * bytes.received_per_step[end.size()]);
    longest = std::max(longest, end.back());
  }
  return longest;
}

// Of all that was added, as text.
class ShortDigest {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    hasher_.add(fmt::format(format, std::forward<Values>(values)...));
  }
  std::string text() const { return hasher_.digest().hex().substr(0, 6); }

 private:
  Hasher hasher_;
};

void add_plan(ShortDigest& part, const PlannerRow& planner, const Request& request,
              PlannerInput input) {
  Explanation why;
  input.explanation = &why;
  try {
    Plan plan = make_plan(planner, request, input);
    PlanBytes bytes = count_bytes(plan);
    part.add("{}{} {}", to_text(plan), bytes.received_total, bytes.peak_max);
  } catch (const InputError& error) {
    part.add("refuses {}", error.what());
  }
  for (const Explanation::Line& line : why.lines())
    part.add("{} {}", line.step ? std::to_string(to_index(*line.step)) : "plan", line.why);
  for (const Explanation::Alternative& other : why.alternatives())
    part.add("{} {} {} {} {} {}", other.planner, other.time_ps.value_or(-1), other.first_use_ps,
             other.peak_bytes, other.refusal, other.taken);
}

struct PackingParts {
  ShortDigest symmetry, roads, trees, steps;

  void add(const Request& request, const Topology& topology, Prng& prng) {
    Demand demand(request);
    Commodities commodities(demand);
    Symmetry found_symmetry(commodities, topology);
    for (const Symmetry::Generator& generator : found_symmetry.generators())
      symmetry.add("{} {} {}", fmt::join(generator.slot, " "), fmt::join(generator.commodity, " "),
                   generator.order);
    if (commodities.list().empty()) return;
    RankRoutes found(topology, commodities.ranks(), found_symmetry);
    for (const RankRoutes::ResourceClass& of : found.classes())
      roads.add("{} {} {}", of.bytes_per_s, of.resources, of.name);
    for (const RankRoutes::Trunk& trunk : found.trunks())
      roads.add("{} {} {}", trunk.rule, trunk.between_nodes, trunk.latency_ps);
    PackingOptions options;
    options.target_ps = prng.pick(std::vector<std::int64_t>{1, 1000, 50'000, 1'000'000'000});
    options.latency_permille = prng.pick(std::vector<std::int64_t>{0, 50, 200, 1000, 10'000'000});
    options.granules = static_cast<std::int32_t>(prng.between(1, 40));
    options.rounds = static_cast<int>(prng.between(1, 3));
    options.shallower_rounds = static_cast<int>(prng.below(4));
    Packing packing = pack(commodities, found, found_symmetry, options);
    add(packing);
    Chunking chunking;
    chunking.weights.clear();
    for (std::int64_t count = prng.between(1, 9); count > 0; --count)
      chunking.weights.push_back(static_cast<std::int32_t>(prng.between(1, 4)));
    chunking.window = static_cast<int>(prng.between(1, 3));
    chunking.waves = prng.one_in(3);
    Plan plan(request, "drawn");
    emit_trees(plan, commodities, found_symmetry, found, packing, chunking,
               [&](StepId id, const std::string& why) { steps.add("{} {}", to_index(id), why); });
    steps.add("{}", to_text(plan));
  }

  void add(const Packing& packing) {
    trees.add("{} {} {} {}", packing.time_ps, packing.busiest, fmt::join(packing.granules, " "),
              fmt::join(packing.stabilizer, " "));
    for (const PackedTree& tree : packing.trees) {
      trees.add("{} {}", tree.commodity, tree.granules);
      for (const Branch& branch : tree.branches) {
        trees.add("root {} {}", branch.root, fmt::join(branch.contributors, " "));
        for (const TreeHop& hop : branch.in) trees.add("in {} {}", hop.from, hop.to);
        for (const TreeHop& hop : branch.out) trees.add("out {} {}", hop.from, hop.to);
      }
    }
  }
};

std::string line_of(std::uint64_t seed) {
  Prng prng(seed);
  Topology topology = odd_machine(prng);
  std::vector<ShortDigest> parts(planners().size());
  PackingParts packings;
  for (int drawn = 0; drawn < kRequests;) {
    std::optional<Request> request = prng.one_in(2) ? odd_request(prng, topology.devices())
                                                    : even_request(prng, topology.devices());
    if (!request) continue;
    ++drawn;
    PlannerInput input;
    input.topology = &topology;
    input.plan_time = chain_time;
    input.steps_in_turn = prng.one_in(3);
    if (prng.one_in(3))
      input.memory.limit_bytes = request->source().bytes() / prng.between(1, 4) + 1;
    if (prng.one_in(2))
      input.first_use_ps = [](const Plan& plan) {
        return 500 * static_cast<std::int64_t>(plan.steps.size());
      };
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const PlannerRow& planner = planners()[i];
      bool is_slow = planner.name == "packed" || planner.name == "auto";
      if (!is_slow || prng.one_in(8)) add_plan(parts[i], planner, *request, input);
    }
    packings.add(*request, topology, prng);
  }
  std::string out = std::to_string(seed);
  for (const ShortDigest& part : parts) out += " " + part.text();
  return out + fmt::format(" {} {} {} {}", packings.symmetry.text(), packings.roads.text(),
                           packings.trees.text(), packings.steps.text());
}

}  // namespace

TEST_CASE("drawn plans are what they were") { check_lines(kPath, kMachines, line_of); }

TEST_CASE("of more items than a packing takes packed makes the plan of p2p") {
  Topology topology = sim::find_topology("nvswitch:256");
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("256"));
  Request request(parse_layout("256,256", "u8", mesh, "S0"),
                  parse_layout("256,256", "u8", mesh, "S1"));
  PlannerInput input;
  input.topology = &topology;
  Plan packed = plan_packed(request, input);
  CHECK(packed.planner == "packed");
  CHECK((packed.steps == plan_p2p(request, input).steps));
}

}  // namespace reshard::test
