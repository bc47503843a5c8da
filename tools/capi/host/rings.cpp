// SPDX-License-Identifier: BSD-3-Clause
// The C API: runs a rank's program over memory that the processes of a host share.
#include <map>
#include <vector>

#include "backends/host/ring_traffic.h"
#include "tools/capi/guard.h"
#include "tools/capi/host/host_run.h"
#include "tools/capi/reshard_rings.h"

using namespace reshard;
using namespace reshard::capi;
using backends::host::Doorbells;
using backends::host::End;
using HostMessage = backends::host::HostMessage;
using backends::host::RankMemory;
using backends::host::Rings;
using backends::host::RingTraffic;

namespace {

// For all slots of all processes; only the pages that messages need are touched.
constexpr std::int64_t kBudget = std::int64_t{64} << 20;
constexpr std::int32_t kMostPlaces = 4096;

std::int64_t bytes_for(std::int32_t places) {
  if (places < 1 || places > kMostPlaces)
    throw InputError("rank_count: expected 1 to " + std::to_string(kMostPlaces) + ", found " +
                     std::to_string(places));
  return Rings(0, places, kBudget).bytes() + Doorbells::bytes(places);
}

reshard_rings_options checked(const reshard_rings_options* given) {
  reshard_rings_options options = taken(given, "options");
  std::int64_t needed = bytes_for(options.rank_count);
  if (options.reserved != 0) throw InputError("options.reserved: expected 0");
  if (options.place < 0 || options.place >= options.rank_count)
    throw InputError("place: expected one of " + std::to_string(options.rank_count) + ", found " +
                     std::to_string(options.place));
  if (options.ranks == nullptr) throw InputError("ranks: expected a pointer, found NULL");
  if (options.memory == nullptr ||
      reinterpret_cast<std::uintptr_t>(options.memory) % Rings::kPage != 0)
    throw InputError("memory: expected a page's first byte");
  if (options.memory_bytes < needed)
    throw InputError("memory_bytes: expected at least " + std::to_string(needed) + ", found " +
                     std::to_string(options.memory_bytes));
  return options;
}

}  // namespace

struct reshard_rings {
  explicit reshard_rings(const reshard_rings_options& with)
      : waiting(with.waiting),
        context(with.context),
        ranks(with.ranks, with.ranks + with.rank_count),
        rings(with.place, with.rank_count, kBudget),
        doorbells(with.place, with.rank_count,
                  static_cast<std::byte*>(with.memory) + rings.bytes()) {
    rings.lie_at(static_cast<std::byte*>(with.memory));
    for (std::int32_t place = 0; place < with.rank_count; ++place)
      if (!place_of.emplace(with.ranks[place], place).second)
        throw InputError("ranks: expected each once, found " + std::to_string(with.ranks[place]) +
                         " again");
  }

  std::vector<HostMessage> messages(const Plan& plan, const std::vector<Messages::PeerMessage>& of,
                                    End end, const RankMemory& memory) const {
    std::vector<HostMessage> out;
    out.reserve(of.size());
    for (const Messages::PeerMessage& message : of) {
      out.push_back(message_of(message, end, std::cref(memory), rings.slot_bytes()));
      out.back().peer = place(to_int(plan.rank_of(message.peer)));
    }
    return out;
  }
  std::int32_t place(std::int32_t rank) const {
    auto found = place_of.find(rank);
    if (found == place_of.end())
      throw InputError("rings: expected a place for rank " + std::to_string(rank));
    return found->second;
  }
  bool waits_on(std::int32_t place, std::chrono::milliseconds waited) const {
    reshard_wait wait{context, waited.count(), ranks[to_index(place)]};
    return waiting == nullptr || waiting(&wait) == 0;
  }

  reshard_waiting waiting;
  void* context;
  std::vector<std::int32_t> ranks;  // by place
  Rings rings;
  Doorbells doorbells;
  std::map<std::int32_t, std::int32_t> place_of;
  bool broken = false;
};

extern "C" int32_t reshard_rings_get_bytes(int32_t rank_count, int64_t* bytes) {
  return guarded([&] { given(bytes, "bytes") = bytes_for(rank_count); });
}

extern "C" int32_t reshard_rings_create(const reshard_rings_options* options,
                                        reshard_rings** rings) {
  return guarded([&] {
    reshard_rings*& made = given(rings, "rings");  // checked before anything is allocated
    made = new reshard_rings(checked(options));
  });
}

extern "C" void reshard_rings_free(reshard_rings* rings) { delete rings; }

extern "C" int32_t reshard_execute_on_rings(const reshard_program* program, const reshard_run* run,
                                            reshard_rings* rings, int64_t number) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_run with = taken(run, "run");
    reshard_rings& over = given(rings, "rings");
    require_zero(with.reserved, "run.reserved");
    if (with.exchange != nullptr || with.context != nullptr)
      throw InputError("run.exchange, run.context: expected NULL with rings");
    for (Rank rank : handle.plan->ranks) over.place(to_int(rank));
    if (over.broken) throw BackendError("shared memory", "a run", "an earlier one failed", -1);
    RingTraffic traffic(over.rings, over.doorbells);
    auto waiting = [&](int place, std::chrono::milliseconds waited) {
      return over.waits_on(place, waited);
    };
    const Plan& plan = *handle.plan;
    run_program(
        handle, with, [&](const Messages& work, const RankMemory& memory, std::int32_t tag) {
          std::vector<HostMessage> sends = over.messages(plan, work.sends, End::Sends, memory);
          std::vector<HostMessage> receives =
              over.messages(plan, work.receives, End::Receives, memory);
          over.broken = true;  // until the whole run is done
          traffic.carry(sends, receives, number, tag, waiting);
        });
    over.broken = false;
  });
}
