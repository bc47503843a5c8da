// SPDX-License-Identifier: BSD-3-Clause
// The policies of the communicator registry, one by one.
#include <catch2/catch.hpp>

#include <map>
#include <mutex>
#include <set>

#include "backends/nccl/communicators.h"
#include "core/base/errors.h"
#include "core/plan/plan.h"
#include "tests/conformance/conformance.h"
#include "tests/support/standins/nccl_ranks.h"

namespace reshard::test {
namespace {

using namespace reshard::backends::nccl;

// Runs the body on every rank with a registry of its own; bodies record what they see under the
// lock.
StandinOutcome run_registries(
    const StandinJob& job,
    const std::function<void(Communicators& registry, std::int32_t driver)>& body) {
  return run_parts(job, [&](StandinParts parts, std::int32_t driver) {
    std::vector<LocalRank> locals;
    for (std::size_t i = 0; i < parts.ranks.size(); ++i)
      locals.push_back({parts.ranks[i], parts.devices[i].get()});
    Communicators registry(*parts.api, *parts.meeting, job.world, locals, job.policies, job.limit,
                           parts.warn);
    body(registry, driver);
  });
}

StandinJob job_of(std::int32_t world, bool eager = true, Drive drive = Drive::RankPerThread) {
  StandinJob job;
  job.world = world;
  job.drive = drive;
  job.policies.eager_parent = eager;
  return job;
}

void require_clean(const StandinOutcome& outcome) {
  INFO(outcome.text());
  CHECK(outcome.clean());
}

// All pairs of ranks, ascending.
std::vector<std::pair<std::int32_t, std::int32_t>> all_pairs(std::int32_t world) {
  std::vector<std::pair<std::int32_t, std::int32_t>> out;
  for (std::int32_t low = 0; low < world; ++low)
    for (std::int32_t high = low + 1; high < world; ++high) out.emplace_back(low, high);
  return out;
}

TEST_CASE("the parent is made at once, or never") {
  for (bool eager : {true, false})
    for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
      int found = 0;
      std::mutex mutex;
      StandinOutcome outcome =
          run_registries(job_of(4, eager, drive), [&](Communicators& registry, std::int32_t) {
            std::lock_guard lock(mutex);
            found += registry.find(kParentKey) != nullptr;
          });
      require_clean(outcome);
      CHECK(found == (eager ? static_cast<int>(outcome.errors.size()) : 0));
      CHECK(outcome.communicators == (eager ? 1 : 0));
      CHECK(outcome.warnings.empty());
    }
}

TEST_CASE("look-ups make nothing") {
  std::set<std::string> refusals;
  std::mutex mutex;
  StandinOutcome outcome = run_registries(job_of(3, false), [&](Communicators& registry,
                                                                std::int32_t driver) {
    std::string text;
    if (registry.find("0-2") != nullptr || registry.find(Communicators::pair_key(0, 1)) != nullptr)
      text = "found";
    try {
      registry.route(0, (driver + 1) % 3);
    } catch (const CheckFailure& failure) {
      text += failure.what();
    }
    if (registry.size() != 0) text += "made";
    std::lock_guard lock(mutex);
    refusals.insert(text.substr(text.find("ranks ")));
  });
  require_clean(outcome);
  CHECK(refusals == std::set<std::string>{"ranks 0 and 1 are not connected",
                                          "ranks 1 and 2 are not connected",
                                          "ranks 2 and 0 are not connected"});
  CHECK(outcome.communicators == 0);
}

TEST_CASE("kernels of all streams fit on a GPU together") {
  struct Row {
    int multiprocessors, blocks;  // of a further stream
  };
  // H100, A100, V100, and one with no room beside the main stream's kernel.
  for (Row row : {Row{132, 32}, Row{108, 25}, Row{80, 16}, Row{32, 1}})
    for (int version : {22809, kNcclSplit - 100}) {
      StandinJob job = job_of(4, true);
      job.standin.version = version;
      job.standin.multiprocessors = row.multiprocessors;
      std::set<int> main, further;
      std::mutex mutex;
      auto blocks = [](const NcclCommunicator* of, std::size_t local) {
        return reinterpret_cast<const NcclHandle*>(of->comms[local])->blocks;
      };
      StandinOutcome outcome = run_registries(job, [&](Communicators& registry, std::int32_t) {
        std::lock_guard lock(mutex);
        main.insert(blocks(registry.find(kParentKey), 0));
      });
      require_clean(outcome);
      outcome = run_registries(job, [&](Communicators& registry, std::int32_t) {
        std::set<int> found;
        for (std::int32_t stream = 1; stream < kMaxStreams; ++stream) {
          found.insert(blocks(&registry.all(stream), 0));
          for (const NcclCommunicator* group : registry.groups({{0, 1}, {2, 3}}, stream))
            if (group->comms[0] != nullptr) found.insert(blocks(group, 0));
        }
        std::lock_guard lock(mutex);
        further.insert(found.begin(), found.end());
      });
      require_clean(outcome);
      CAPTURE(row.multiprocessors, version);
      CHECK(main == std::set<int>{kBlocksOfKernel});
      CHECK(further == std::set<int>{row.blocks});
    }
}

TEST_CASE("groups are split from the parent once, all of a step together, and cached") {
  for (int version : {22809, kNcclSplit, kNcclSplit - 100})
    for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
      StandinJob job = job_of(6, true, drive);
      job.standin.version = version;
      std::vector<std::string> wrong;
      std::mutex mutex;
      StandinOutcome outcome =
          run_registries(job, [&](Communicators& registry, std::int32_t driver) {
            auto first = registry.groups({{0, 1, 2}, {5, 3}});
            auto again = registry.groups({{0, 1, 2}, {5, 3}});
            auto whole = registry.groups({{0, 1, 2, 3, 4, 5}});
            auto turned = registry.groups({{2, 1, 0}});
            std::string text;
            if (first != again) text += "made twice. ";
            if (whole[0] != registry.find(kParentKey)) text += "the parent was made again. ";
            if (turned[0] == first[0] || turned[0]->place_of(0) != 2 || first[1]->place_of(3) != 1)
              text += "order. ";
            if (registry.find("0-2") != first[0] || registry.find("5,3") != first[1] ||
                registry.size() != 4)
              text += "keys. ";
            for (std::size_t i = 0; i < registry.local_count(); ++i) {
              std::int32_t rank = registry.local(i).rank;
              if ((first[0]->comms[i] != nullptr) != (rank < 3) ||
                  (first[1]->comms[i] != nullptr) != (rank == 3 || rank == 5))
                text += "members. ";
            }
            std::lock_guard lock(mutex);
            if (!text.empty()) wrong.push_back(std::to_string(driver) + ": " + text);
          });
      CAPTURE(version, wrong);
      require_clean(outcome);
      CHECK(wrong.empty());
      CHECK(outcome.communicators == 4);
      CHECK(outcome.warnings.empty());
    }
}

TEST_CASE(
    "without a parent pairs are connected, in an order that cannot deadlock, with one warning") {
  for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
    std::vector<std::int32_t> sizes;
    std::mutex mutex;
    StandinOutcome outcome =
        run_registries(job_of(5, false, drive), [&](Communicators& registry, std::int32_t) {
          registry.connect({{0, 1}});
          registry.connect(all_pairs(5));
          registry.connect(all_pairs(5));
          for (std::size_t i = 0; i < registry.local_count(); ++i)
            for (std::int32_t peer = 0; peer < 5; ++peer) {
              if (peer == registry.local(i).rank) continue;
              PeerRoute route = registry.route(i, peer);
              RESHARD_CHECK(
                  route.comm != nullptr && route.peer == (peer > registry.local(i).rank ? 1 : 0),
                  "a pair's places");
            }
          std::lock_guard lock(mutex);
          sizes.push_back(static_cast<std::int32_t>(registry.size()));
        });
    require_clean(outcome);
    CHECK(sizes == std::vector<std::int32_t>(outcome.errors.size(), 10));
    CHECK(outcome.communicators == 10);
    CHECK(outcome.warnings.size() == outcome.errors.size());  // one per process
    CHECK_THAT(outcome.warnings.front(), Catch::Matchers::Contains("communicators of two ranks"));
  }
  // With a parent there is nothing to connect.
  StandinOutcome outcome = run_registries(
      job_of(3), [](Communicators& registry, std::int32_t) { registry.connect(all_pairs(3)); });
  require_clean(outcome);
  CHECK(outcome.communicators == 1);
  CHECK(outcome.warnings.empty());
}

TEST_CASE("communicators that share a stream key share the stream") {
  for (bool own : {false, true}) {
    StandinJob job = job_of(3, false);
    job.policies.stream_per_pair = own;
    int right = 0;
    std::mutex mutex;
    StandinOutcome outcome = run_registries(job, [&](Communicators& registry, std::int32_t driver) {
      registry.connect(all_pairs(3));
      PeerRoute left = registry.route(0, (driver + 1) % 3),
                other = registry.route(0, (driver + 2) % 3);
      bool same = left.stream == other.stream && left.stream == registry.stream(0, kMainStream);
      bool apart = left.stream != other.stream && left.stream != registry.stream(0, kMainStream) &&
                   other.stream != registry.stream(0, kMainStream);
      std::lock_guard lock(mutex);
      right += (left.communicator != other.communicator) && (own ? apart : same);
    });
    require_clean(outcome);
    CHECK(right == 3);
  }
}

TEST_CASE("exchanges over pairs end with the same bytes as over the parent") {
  for (bool own_streams : {false, true})
    for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
      StandinJob job = job_of(5, false, drive);
      job.policies.stream_per_pair = own_streams;
      job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
      job.standin.seed = own_streams ? 11 : 12;
      std::int64_t failed = -1;
      StandinOutcome outcome =
          run_on_standin(job, [&](NcclExecutor& executor, std::int32_t driver) {
            ConformanceOptions options;
            options.world = 5;
            options.draws = 60;
            options.seed = 77;
            ConformanceReport report = check_conformance(executor, options);
            if (driver == 0) failed = report.failed;
          });
      CAPTURE(own_streams);
      require_clean(outcome);
      CHECK(failed == 0);
      CHECK(outcome.warnings.size() == outcome.errors.size());
    }
}

TEST_CASE("each policy by its name makes what it says and carries the same bytes") {
  // Communicators of five ranks: the parent; with all pairs split off it, or of their own.
  struct Row {
    CommunicatorPolicy policy;
    int at_start, connected;
    bool own_streams;
  };
  for (Row row :
       {Row{CommunicatorPolicy::Eager, 1, 1, false},
        Row{CommunicatorPolicy::StreamPerPair, 1, 1, true},
        Row{CommunicatorPolicy::Split, 1, 11, true}, Row{CommunicatorPolicy::Cached, 0, 10, true},
        Row{CommunicatorPolicy::Pairwise, 0, 10, true}}) {
    CAPTURE(text(row.policy));
    StandinJob job = job_of(5);
    job.policies = policies_of(row.policy);
    std::mutex mutex;
    int right = 0;
    StandinOutcome outcome = run_registries(job, [&](Communicators& registry, std::int32_t) {
      bool at_start = registry.size() == to_index(row.at_start);
      registry.connect(all_pairs(5));
      bool connected = registry.size() == to_index(row.connected);
      PeerRoute next = registry.route(0, (registry.local(0).rank + 1) % 5);
      bool apart = next.stream != registry.stream(0, kMainStream);
      std::lock_guard lock(mutex);
      right += at_start && connected && apart == row.own_streams;
    });
    require_clean(outcome);
    CHECK(right == 5);
    CHECK(outcome.communicators == row.connected);
    std::int64_t failed = -1;
    job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
    StandinOutcome carried = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t driver) {
      ConformanceOptions options;
      options.world = 5;
      options.draws = 40;
      options.seed = 5;
      ConformanceReport report = check_conformance(executor, options);
      if (driver == 0) failed = report.failed;
    });
    require_clean(carried);
    CHECK(failed == 0);
  }
}

TEST_CASE("cached: a group of all ranks becomes the parent, and exchanges use it from then on") {
  StandinJob job = job_of(4);
  job.policies = policies_of(CommunicatorPolicy::Cached);
  std::mutex mutex;
  int right = 0;
  StandinOutcome outcome = run_registries(job, [&](Communicators& registry, std::int32_t) {
    bool none = registry.find(kParentKey) == nullptr;
    registry.groups({{0, 1}, {2, 3}});
    registry.groups({{0, 1, 2, 3}});
    registry.connect(all_pairs(4));
    registry.groups({{0, 2}, {1, 3}});  // split off it now
    PeerRoute next = registry.route(0, (registry.local(0).rank + 1) % 4);
    std::lock_guard lock(mutex);
    right += none && next.communicator == registry.find(kParentKey) && registry.size() == 5;
  });
  require_clean(outcome);
  CHECK(right == 4);
  CHECK(outcome.communicators == 5);
  CHECK(outcome.warnings.empty());
}

}  // namespace
}  // namespace reshard::test
