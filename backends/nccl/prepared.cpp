// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/prepared.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/bytes/block.h"
#include "core/proof/proof.h"

namespace reshard::backends::nccl {

Prepared::Prepared(const Plan& plan, Communicators& communicators, Meeting& meeting,
                   const ActionOptions& options, std::span<const CallerShards> shards)
    : plan_(plan), communicators_(communicators), meeting_(meeting), options_(options) {
  std::vector<Slot> slots;
  std::vector<std::size_t> locals;
  for (std::size_t i = 0; i < communicators.local_count(); ++i) {
    Rank rank{communicators.local(i).rank};
    if (!std::binary_search(plan.ranks.begin(), plan.ranks.end(), rank)) continue;
    slots.push_back(plan.slot_of(rank));
    locals.push_back(i);
  }
  schedules_ = checked_schedules(plan, slots, schedule_policy(options));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    RankRun& rank =
        ranks_.emplace_back(RankRun{locals[i], schedules_[i], RankMemory(schedules_[i], shards)});
    for (const Launch& launch : rank.schedule.launches)
      rank.memory.need_staging(stream_of(launch), staging_bytes(rank.memory, launch));
    rank.waits = waits_of(rank);
    derive(rank);  // on placeholder addresses, for the size of the tables
  }
}

Prepared::~Prepared() {
  try {
    // Until then the run uses memory and communicators. A wait that fails aborts the communicators.
    if (under_way_ && !communicators_.aborted()) wait();
  } catch (const std::exception& error) {
    communicators_.give_up(error.what());
  }
  if (!communicators_.aborted()) return;
  // The GPUs may not respond; freeing memory would wait for them.
  for (RankRun& rank : ranks_) {
    rank.memory.abandon();
    rank.tables.abandon();
  }
}

void Prepared::derive(RankRun& rank) {
  rank.tables = LaunchTables();
  rank.actions.clear();
  for (const Launch& launch : rank.schedule.launches)
    rank.actions.push_back(
        make_actions(plan_, rank.memory, launch, stream_of(launch), rank.tables));
}

std::int64_t Prepared::needed_bytes(std::size_t local) const {
  for (const RankRun& rank : ranks_)
    if (rank.local == local) return rank.memory.needed_bytes() + rank.tables.bytes();
  return 0;
}

void Prepared::make_ready() {
  for (RankRun& rank : ranks_) {
    rank.memory.allocate(device(rank));
    derive(rank);
    rank.tables.upload(device(rank), main(rank));
    for (const Launch& launch : rank.schedule.launches)
      rank.communicator.push_back(communicator_of(launch));
    for (std::size_t i = 0; i < rank.schedule.launches.size() + 2; ++i)
      rank.events.emplace_back(device(rank));
    finish(rank, "uploading tables");
  }
}

const NcclCommunicator* Prepared::communicator_of(const Launch& launch) const {
  if (options_.over_parent) return nullptr;
  std::vector<std::int32_t> members;
  for (Slot slot : launch.group) members.push_back(to_int(plan_.rank_of(slot)));
  std::int32_t stream = stream_of(launch);
  if (!members.empty()) return &communicators_.cached_group(members, stream);
  bool apart = stream != 0 && std::holds_alternative<Messages>(launch.work);
  return apart ? &communicators_.cached_all(stream) : nullptr;
}

// Of the launches on another stream, waiting for the last is enough, and only once.
std::vector<std::vector<std::int32_t>> Prepared::waits_of(const RankRun& rank) const {
  const std::vector<Launch>& launches = rank.schedule.launches;
  std::vector<std::vector<std::int32_t>> out(launches.size());
  Before before = rank.memory.before();
  using ByStream = std::array<std::int32_t, kMaxStreams>;
  std::array<ByStream, kMaxStreams> waited_for;
  for (ByStream& known : waited_for) known.fill(-1);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    std::int32_t own = stream_of(launches[i]);
    ByStream& known = waited_for[to_index(own)];
    ByStream wanted = known;
    for (std::int32_t other : before[i]) {
      std::int32_t& last = wanted[to_index(stream_of(launches[to_index(other)]))];
      last = std::max(last, other);
    }
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (k != to_index(own) && wanted[k] > known[k]) out[i].push_back(wanted[k]);
    known = wanted;
  }
  return out;
}

// Waits for the work given to the rank's main stream so far.
void Prepared::finish(RankRun& rank, const std::string& what) {
  Event event = rank.events.front().get();
  device(rank).record(event, main(rank));
  communicators_.wait([&] { return device(rank).done(event); }, [&] { return what; });
}

void Prepared::fill(const FillSource& fill, TensorId tensor) {
  communicators_.ensure_usable();
  BufferId source = source_of(tensor);
  for (RankRun& rank : ranks_) {
    if (!rank.memory.buffer(source).exists) continue;
    Block host(rank.memory.buffer(source).bytes());
    std::span<std::byte> bytes(host.data(), to_index(host.size()));
    fill(plan_.rank_of(rank.memory.slot()), bytes);
    if (bytes.empty()) continue;
    device(rank).upload(rank.memory.at(source), bytes, main(rank));
    finish(rank, "uploading a source shard");
  }
}

void Prepared::take(const TakeDestination& take, TensorId tensor) {
  communicators_.ensure_usable();
  BufferId destination = destination_of(tensor);
  for (RankRun& rank : ranks_) {
    if (!rank.memory.buffer(destination).exists) continue;
    Block host(rank.memory.buffer(destination).bytes());
    std::span<std::byte> bytes(host.data(), to_index(host.size()));
    if (!bytes.empty()) {
      device(rank).download(bytes, rank.memory.at(destination), main(rank));
      finish(rank, "downloading a destination shard");
    }
    take(plan_.rank_of(rank.memory.slot()), bytes);
  }
}

void Prepared::barrier() {
  meeting_.gather({});
  meeting_.broadcast({});
}

Timeline Prepared::run() {
  communicators_.ensure_usable();
  barrier();
  enqueue();
  wait();
  return timeline();
}

void Prepared::enqueue() {
  communicators_.check("an earlier run");
  under_way_ = true;
  for (RankRun& rank : ranks_) {
    rank.next = 0;
    device(rank).record(rank.events[0].get(), main(rank));
  }
  std::vector<RankRun*> taking_part;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) do {
      taking_part.clear();
      for (RankRun& rank : ranks_)
        if (rank.next < rank.schedule.launches.size() &&
            to_index(rank.schedule.launches[rank.next].step) == s)
          taking_part.push_back(&rank);
      if (!taking_part.empty()) issue(StepId{static_cast<std::int32_t>(s)}, taking_part);
    } while (!taking_part.empty());
  for (RankRun& rank : ranks_) join_streams(rank);
}

void Prepared::wait_for_others(RankRun& rank) {
  std::size_t next = rank.next;
  Stream own = stream(rank, next);
  if (own == main(rank) && rank.waits[next].empty()) return;
  if (rank.started.insert(own).second && own != main(rank))
    device(rank).wait(own, rank.events[0].get());
  for (std::int32_t launch : rank.waits[next])
    device(rank).wait(own, rank.events[to_index(launch) + 1].get());
}

void Prepared::join_streams(RankRun& rank) {
  for (Stream other : rank.started)
    if (other != main(rank)) order(rank, other, main(rank));
  rank.started.clear();
  device(rank).record(rank.events.back().get(), main(rank));
}

void Prepared::wait() {
  communicators_.wait([this] { return all_done(); }, [this] { return unfinished(); });
  under_way_ = false;
}

Timeline Prepared::timeline() const {
  Timeline timeline;
  for (const RankRun& rank : ranks_) {
    std::array<std::int64_t, kMaxStreams> done_ps{};  // by stream
    std::vector<std::int64_t> ends_ps;
    Rank global = plan_.rank_of(rank.memory.slot());
    for (std::size_t i = 0; i < rank.schedule.launches.size(); ++i) {
      std::int64_t end_ps = device(rank).elapsed_ps(rank.events[0].get(), rank.events[i + 1].get());
      std::int64_t& begin_ps = done_ps[to_index(stream_of(rank.schedule.launches[i]))];
      for (std::int32_t launch : rank.waits[i])
        begin_ps = std::max(begin_ps, ends_ps[to_index(launch)]);
      auto step = static_cast<std::int32_t>(rank.schedule.launches[i].step);
      // All launches of a step form one span.
      if (i == 0 || timeline.spans.back().step != step)
        timeline.spans.push_back({OpId{0}, step, global, begin_ps, end_ps});
      timeline.spans.back().end_ps = end_ps;
      timeline.end_ps = std::max(timeline.end_ps, end_ps);
      begin_ps = end_ps;
      ends_ps.push_back(end_ps);
    }
  }
  std::sort(timeline.spans.begin(), timeline.spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.step, a.rank) < std::pair(b.step, b.rank);
  });
  return timeline;
}

// ---- issuing ----

void Prepared::issue(StepId step, const std::vector<RankRun*>& ranks) {
  for (RankRun* rank : ranks) wait_for_others(*rank);
  std::size_t actions = ranks[0]->actions[ranks[0]->next].size();
  for (std::size_t a = 0; a < actions; ++a) {
    const Action& first = ranks[0]->actions[ranks[0]->next][a];
    if (std::holds_alternative<Round>(first)) {
      issue_round(step, a, ranks);
      continue;
    }
    for (RankRun* rank : ranks)
      for (LaunchTables::Id table : std::get<Kernels>(rank->actions[rank->next][a]).tables)
        rank->tables.launch(table, device(*rank), stream(*rank, rank->next));
  }
  for (RankRun* rank : ranks) {
    Stream own = stream(*rank, rank->next);
    device(*rank).record(rank->events[++rank->next].get(), own);
  }
}

// One group for everything. But pairs with their own streams take one group each, in ascending
// order, each after the one before: otherwise kernels of different communicators could wait for one
// another for ever on GPUs that cannot hold all of them at once.
void Prepared::issue_round(StepId step, std::size_t action, const std::vector<RankRun*>& ranks) {
  std::set<Pair> apart;
  for (RankRun* rank : ranks)
    if (rank->communicator[rank->next] == nullptr)
      apart.merge(pairs_apart(std::get<Round>(rank->actions[rank->next][action]), *rank));
  if (apart.empty()) issue_group(step, action, ranks, std::nullopt);
  for (const Pair& pair : apart) issue_group(step, action, ranks, pair);
}

std::set<Prepared::Pair> Prepared::pairs_apart(const Round& round, const RankRun& rank) {
  std::set<Pair> out;
  std::int32_t me = communicators_.local(rank.local).rank;
  for (const std::vector<Transfer>* list : {&round.sends, &round.receives})
    for (const Transfer& transfer : *list)
      if (communicators_.route(rank.local, transfer.peer).stream != main(rank))
        out.insert(std::minmax(me, transfer.peer));
  return out;
}

void Prepared::issue_group(StepId step, std::size_t action, const std::vector<RankRun*>& ranks,
                           const std::optional<Pair>& pair) {
  auto for_each_stream_apart = [&](auto&& visit) {
    for (RankRun* rank : ranks) {
      std::int32_t me = communicators_.local(rank->local).rank;
      if (pair && (me == pair->first || me == pair->second))
        visit(*rank,
              communicators_.route(rank->local, me == pair->first ? pair->second : pair->first)
                  .stream);
    }
  };
  for_each_stream_apart(
      [&](const RankRun& rank, Stream stream) { order(rank, main(rank), stream); });
  communicators_.group(fmt::format("step {} ({})", to_index(step), kind_text(plan_.steps[step])),
                       [&] {
                         for (RankRun* rank : ranks)
                           issue_transfers(std::get<Round>(rank->actions[rank->next][action]),
                                           *rank, rank->communicator[rank->next], pair);
                       });
  for_each_stream_apart(
      [&](const RankRun& rank, Stream stream) { order(rank, stream, main(rank)); });
}

void Prepared::order(const RankRun& rank, Stream earlier, Stream later) {
  Event reached = event_of(rank, earlier);
  device(rank).record(reached, earlier);
  device(rank).wait(later, reached);
}

// Interleaves sends and receives in ascending order of peer.
void Prepared::issue_transfers(const Round& round, const RankRun& rank,
                               const NcclCommunicator* communicator,
                               const std::optional<Pair>& pair) {
  NcclApi& api = communicators_.api();
  std::int32_t me = communicators_.local(rank.local).rank;
  device(rank).select();
  if (round.native)
    return issue_native(*round.native, me, communicator->comms[rank.local],
                        communicators_.stream(rank.local, communicator->stream_key));
  auto send = round.sends.begin();
  auto receive = round.receives.begin();
  while (send != round.sends.end() || receive != round.receives.end()) {
    bool sends = receive == round.receives.end() ||
                 (send != round.sends.end() && send->peer <= receive->peer);
    const Transfer& transfer = sends ? *send++ : *receive++;
    if (pair && *pair != Pair(std::minmax(me, transfer.peer))) continue;
    PeerRoute route = communicator == nullptr
                          ? communicators_.route(rank.local, transfer.peer)
                          : communicators_.route(rank.local, transfer.peer, *communicator);
    if (sends)
      communicators_.checked(api.send(transfer.at, transfer.bytes, NcclType::Uint8, route.peer,
                                      route.comm, route.stream),
                             "ncclSend", me, route.comm);
    else
      communicators_.checked(api.receive(transfer.at, transfer.bytes, NcclType::Uint8, route.peer,
                                         route.comm, route.stream),
                             "ncclRecv", me, route.comm);
  }
}

void Prepared::issue_native(const Native& native, std::int32_t rank, NcclComm comm, Stream stream) {
  NcclApi& api = communicators_.api();
  switch (native.kind) {
    case CollectiveKind::AllGather:
      return communicators_.checked(
          api.all_gather(native.from, native.to, native.count, native.type, comm, stream),
          "ncclAllGather", rank, comm);
    case CollectiveKind::AllToAll:
      return communicators_.checked(
          api.all_to_all(native.from, native.to, native.count, native.type, comm, stream),
          "ncclAlltoAll", rank, comm);
    case CollectiveKind::ReduceScatter:
      return communicators_.checked(api.reduce_scatter(native.from, native.to, native.count,
                                                       native.type, native.op, comm, stream),
                                    "ncclReduceScatter", rank, comm);
    case CollectiveKind::AllReduce:
      return communicators_.checked(api.all_reduce(native.from, native.to, native.count,
                                                   native.type, native.op, comm, stream),
                                    "ncclAllReduce", rank, comm);
  }
}

Event Prepared::event_of(const RankRun& rank, Stream stream) {
  return stream_events_.try_emplace({rank.local, stream}, device(rank)).first->second.get();
}

// ---- waiting ----

bool Prepared::all_done() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const RankRun& rank) {
    return device(rank).done(rank.events.back().get());
  });
}

std::string Prepared::unfinished() const {
  for (const RankRun& rank : ranks_)
    for (std::size_t i = 0; i < rank.schedule.launches.size(); ++i) {
      if (device(rank).done(rank.events[i + 1].get())) continue;
      StepId step = rank.schedule.launches[i].step;
      return fmt::format("step {} ({}) of rank {}{}", to_index(step), kind_text(plan_.steps[step]),
                         communicators_.local(rank.local).rank, partners(rank, i));
    }
  return "the last step";
}

std::string Prepared::partners(const RankRun& rank, std::size_t launch) const {
  const NcclCommunicator* communicator = rank.communicator[launch];
  if (communicator != nullptr)
    return fmt::format(" over communicator {} with ranks {}", communicator->key,
                       fmt::join(communicator->members, ","));
  std::set<std::int32_t> peers;
  for (const Action& action : rank.actions[launch])
    if (const auto* round = std::get_if<Round>(&action))
      for (const std::vector<Transfer>* list : {&round->sends, &round->receives})
        for (const Transfer& transfer : *list) peers.insert(transfer.peer);
  if (peers.empty()) return "";
  bool parent = communicators_.find(kParentKey) != nullptr;
  return fmt::format(" over communicator {} with ranks {}", parent ? kParentKey : "of each pair",
                     fmt::join(peers, ","));
}

}  // namespace reshard::backends::nccl
