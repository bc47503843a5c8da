// SPDX-License-Identifier: BSD-3-Clause
// The program's results for random requests on many machines stay the same: bounds, and for every
// planner's plan its text, bytes, peak, time and what the time was spent waiting for. Other tests
// check that they are right; this one that nothing has changed. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_sweep "drawn figures*"
//
// rewrites tests/sweep/data/figures.txt; read the difference before you accept it.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/text/plan_text.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"
#include "tests/support/bounds_cases.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kPath = "tests/sweep/data/figures.txt";
constexpr std::uint64_t kDraws = 300;

std::vector<std::shared_ptr<const Topology>> all_machines() {
  std::vector<std::shared_ptr<const Topology>> out;
  for (const Topology& topology : machines())
    out.push_back(std::make_shared<const Topology>(topology));
  for (const char* spec : {"dgx-a100:2", "dgx-h100:2", "dgx-v100:2", "rtx-pro-6000-8:2",
                           "pcie-8x3090", "dgx-h100:3,oversubscription=2", "dgx-a100:2,nics=1",
                           "gb200-nvl72", "a100-quad:3", "l40s-8:2", "nvswitch:12"})
    out.push_back(std::make_shared<const Topology>(sim::find_topology(spec)));
  return out;
}

// As jobs have them: the first ranks, all axes of use, lengths that mostly divide.
Request usual_request(Prng& prng, std::int64_t devices) {
  const std::vector<std::string> small{"8", "2x4", "4x2", "2x2x2", "3x2", "5"},
      large{"16", "2x8", "4x4", "8x2", "2x2x4"};
  const std::vector<std::string> words{"R", "S(0)", "S(0)", "S(1)", "S(1)", "P(sum)", "P(avg)"};
  const std::vector<std::string> shapes{"64,64", "512,512", "4096,1000", "30,7", "48,16,8"};
  std::string shape = prng.pick(shapes), dtype = prng.pick(std::vector<std::string>{"f32", "bf16"});
  for (;;) {
    std::string mesh = prng.pick(devices >= 16 && prng.one_in(2) ? large : small);
    auto side = [&](const std::string& axes, const char* ranks) {
      MeshRef of = std::make_shared<const Mesh>(parse_mesh(axes, ranks));
      std::string placements;
      for (int axis = 0; axis < of->axes(); ++axis) placements += prng.pick(words);
      return std::pair(of, placements);
    };
    auto [from, source] = side(mesh, "");
    auto [to, destination] = side(mesh, "");
    if (prng.one_in(4)) std::tie(to, destination) = side("4", "2-5");
    if (!prng.one_in(4) && from->size() == to->size()) to = from;
    try {
      return Request(parse_layout(shape, dtype, from, source),
                     parse_layout(shape, dtype, to, destination));
    } catch (const InputError&) {
      // A forbidden transition: draw again.
    }
  }
}

std::string words_of(const Bound& bound) {
  return fmt::format("{} {} {} {} {}", bound.cut_ps, bound.volume_ps, bound.price_ps,
                     bound.holder_ps, bound.latency_ps);
}

std::string short_digest(std::string_view text) { return digest_of(text).hex().substr(0, 8); }

std::string words_of(sim::Study& study) {
  Hasher why;  // how it chose, and what its time was waited for
  for (const Explanation::Line& line : study.explanation()->lines()) why.add(line.why);
  for (const Explanation::Alternative& other : study.explanation()->alternatives())
    why.add(fmt::format("{} {} {} {} {}", other.planner, other.time_ps.value_or(-1),
                        other.first_use_ps, other.peak_bytes, other.taken));
  for (const sim::PathFacts::Cause& cause : study.critical_path().causes)
    why.add(fmt::format("{} {}", cause.name, cause.time_ps));
  return fmt::format("{} {} {} {} {} {}", short_digest(to_text(study.plan())), study.time_ps(),
                     study.bytes().received_total, study.bytes().peak_max, study.padding_total(),
                     why.digest().hex().substr(0, 8));
}

std::string line_of(std::uint64_t seed, const std::vector<std::shared_ptr<const Topology>>& all) {
  Prng prng(seed);
  const std::shared_ptr<const Topology>& topology = prng.pick(all);
  Request request = prng.one_in(3)
                        ? random_request(prng, topology->devices(),
                                         prng.pick(std::vector<std::int64_t>{1, 17, 300}))
                        : usual_request(prng, topology->devices());
  sim::StudyOptions options;
  options.explain = true;
  options.cold = prng.one_in(4);
  auto transport = static_cast<TransportKind>(prng.below(kTransportKinds));
  if (prng.one_in(4))
    options.memory.limit_bytes = request.source().bytes() / prng.between(1, 4) + 1;
  std::string out =
      fmt::format("{} {} {} {}: {} / {}", seed, topology->name(), text(transport), request.text(),
                  words_of(bound_of(request, *topology, Switches::Forward)),
                  words_of(bound_of(request, *topology, Switches::Reduce)));
  for (const PlannerRow& planner : planners()) {
    bool is_slow = planner.name == "packed" || planner.name == "auto";
    if (is_slow && !prng.one_in(4)) continue;
    sim::Studies studies(topology, planner, options);
    try {
      out += fmt::format(" | {} {}", planner.name, words_of(*studies.of(request, transport)));
    } catch (const InputError& error) {
      out += fmt::format(" | {} refuses {}", planner.name, short_digest(error.what()));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("drawn figures are what they were") {
  std::vector<std::shared_ptr<const Topology>> all = all_machines();
  check_lines(kPath, kDraws, [&](std::uint64_t seed) { return line_of(seed, all); });
}

}  // namespace reshard::test
