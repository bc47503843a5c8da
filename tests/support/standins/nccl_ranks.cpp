// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/standins/nccl_ranks.h"

#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "tests/support/standins/nccl_standin.h"

namespace reshard::test {
namespace {

using namespace reshard::backends::nccl;
using Lock = std::unique_lock<std::mutex>;

// Processes in one: as Star, gathering does not wait at the senders.
class StandinMeeting : public Meeting {
 public:
  StandinMeeting(NcclWorld& world, std::size_t driver) : world_(world), driver_(driver) {}
  int index() const override { return static_cast<int>(driver_); }
  int count() const override { return static_cast<int>(world_.driver_count()); }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    check();
    std::size_t place = 0;
    {
      Lock lock(world_.mutex());
      place = world_.driver(driver_).gathers++;
      if (world_.gathered.size() <= place)
        world_.gathered.resize(
            place + 1, std::vector<std::optional<std::vector<std::byte>>>(world_.driver_count()));
      world_.gathered[place][driver_].emplace(mine.begin(), mine.end());
      world_.activity();
    }
    std::vector<std::vector<std::byte>> out;
    if (driver_ != 0) return out;
    wait("gather", [&] {
      for (const auto& one : world_.gathered[place])
        if (!one) return false;
      return true;
    });
    Lock lock(world_.mutex());
    for (auto& one : world_.gathered[place]) out.push_back(std::move(*one));
    return out;
  }

  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override {
    check();
    std::size_t place = 0;
    {
      Lock lock(world_.mutex());
      place = world_.driver(driver_).broadcasts++;
      if (driver_ == 0) world_.broadcast.emplace_back(mine.begin(), mine.end());
      world_.activity();
    }
    wait("broadcast", [&] { return world_.broadcast.size() > place; });
    Lock lock(world_.mutex());
    return world_.broadcast[place];
  }

  void check() override {
    Lock lock(world_.mutex());
    world_.ensure_sound();
    if (!world_.given_up.empty())
      throw BackendError("system", "waiting for the other ranks", world_.given_up,
                         world_.driver(driver_).ranks.front());
  }

  void give_up(const std::string& why) noexcept override {
    Lock lock(world_.mutex());
    if (world_.given_up.empty()) world_.given_up = why;
    world_.expect_hanging();
  }

 private:
  template <class Done>
  void wait(const char* what, Done&& done) {
    while (true) {
      {
        Lock lock(world_.mutex());
        world_.driver(driver_).waits_for = what;
        if (done()) break;
        world_.idle(driver_);
      }
      check();
      let_devices_run(world_, driver_);
      std::this_thread::yield();
    }
    Lock lock(world_.mutex());
    world_.driver(driver_).waits_for.clear();
  }

  NcclWorld& world_;
  std::size_t driver_;
};

std::vector<std::vector<std::int32_t>> drivers_of(const StandinJob& job) {
  std::vector<std::vector<std::int32_t>> out(
      job.drive == Drive::OneThread ? 1 : static_cast<std::size_t>(job.world));
  for (std::int32_t r = 0; r < job.world; ++r)
    out[job.drive == Drive::OneThread ? 0 : static_cast<std::size_t>(r)].push_back(r);
  return out;
}

}  // namespace

bool StandinOutcome::clean() const {
  for (const std::string& error : errors)
    if (!error.empty()) return false;
  return misuse.empty() && live_handles == 0;
}

std::string StandinOutcome::text() const {
  return fmt::format("errors: {}; misuse: {}; {} communicator ends left over",
                     fmt::join(errors, " | "), misuse, live_handles);
}

LoggedLaunch logged(const NcclLaunch& launch);

StandinOutcome run_parts(const StandinJob& job,
                         const std::function<void(StandinParts parts, std::int32_t driver)>& body) {
  std::vector<std::vector<std::int32_t>> drivers = drivers_of(job);
  NcclWorld world(drivers, job.standin);
  StandinOutcome outcome;
  outcome.errors.resize(drivers.size());
  auto drive = [&](std::size_t d) {
    std::string error;
    try {
      StandinParts parts;
      parts.api = std::make_unique<NcclStandin>(world, d);
      parts.meeting = std::make_unique<StandinMeeting>(world, d);
      parts.ranks = drivers[d];
      for (std::int32_t rank : parts.ranks)
        parts.devices.push_back(std::make_unique<StandinDevice>(world, d, rank));
      parts.warn = [&](const std::string& text) {
        Lock lock(world.mutex());
        outcome.warnings.push_back(text);
      };
      body(std::move(parts), static_cast<std::int32_t>(d));
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    Lock lock(world.mutex());
    outcome.errors[d] = error;
    world.driver(d).ended = true;
    if (!error.empty()) {
      // A process that fails is noticed by the others.
      if (world.given_up.empty())
        world.given_up = fmt::format("rank {} failed", drivers[d].front());
      world.expect_hanging();
    }
    world.activity();
  };
  std::vector<std::thread> threads;
  for (std::size_t d = 1; d < drivers.size(); ++d) threads.emplace_back(drive, d);
  drive(0);
  for (std::thread& thread : threads) thread.join();
  outcome.misuse = world.finding();
  outcome.launches = world.launch_count();
  outcome.communicators = world.family_count();
  outcome.live_handles = world.live_handles();
  for (const std::shared_ptr<NcclLaunch>& launch : world.launches())
    outcome.log.push_back(logged(*launch));
  return outcome;
}

namespace {

std::int64_t type_bytes(backends::nccl::NcclType type) {
  using backends::nccl::NcclType;
  switch (type) {
    case NcclType::Int8:
    case NcclType::Uint8:
      return 1;
    case NcclType::Float16:
    case NcclType::Bfloat16:
      return 2;
    case NcclType::Int64:
    case NcclType::Float64:
      return 8;
    default:
      return 4;
  }
}

}  // namespace

LoggedLaunch logged(const NcclLaunch& launch) {
  LoggedLaunch out{launch.handle->global_rank, {}, {}};
  for (const NcclHandle* member : launch.handle->family->members)
    out.members.push_back(member == nullptr ? -1 : member->global_rank);
  for (const NcclOperation& operation : launch.operations) {
    bool to_peer = operation.call == NcclCall::Send || operation.call == NcclCall::Receive;
    out.operations.push_back({operation.call,
                              to_peer ? out.members[static_cast<std::size_t>(operation.peer)] : -1,
                              operation.count * type_bytes(operation.type)});
  }
  return out;
}

StandinOutcome run_on_standin(
    const StandinJob& job,
    const std::function<void(NcclExecutor& executor, std::int32_t driver)>& body) {
  return run_parts(job, [&](StandinParts parts, std::int32_t driver) {
    Job made;
    made.api = std::move(parts.api);
    made.meeting = std::move(parts.meeting);
    made.world = job.world;
    made.ranks = parts.ranks;
    for (auto& device : parts.devices) made.devices.push_back(std::move(device));
    made.limit = job.limit;
    made.declared_order = job.declared_order;
    made.policies = job.policies;
    made.warn = parts.warn;
    NcclExecutor executor(std::move(made));
    body(executor, driver);
  });
}

}  // namespace reshard::test
