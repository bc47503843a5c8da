// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/communicators.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/job/patience.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {

std::string version_text(int version) {
  return version >= 10000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
}

std::int32_t Communicator::place_of(std::int32_t rank) const {
  auto index = to_index(rank);
  if (index < members.size() && members[index] == rank)
    return rank;  // the parent, on whose routes most messages go
  return static_cast<std::int32_t>(std::find(members.begin(), members.end(), rank) -
                                   members.begin());
}

Communicators::Communicators(NcclApi& api, Meeting& meeting, std::int32_t world,
                             std::vector<LocalRank> locals, CommunicatorPolicies policies,
                             std::chrono::milliseconds limit,
                             std::function<void(const std::string&)> warn,
                             std::optional<CallerCommunicator> caller)
    : api_(api),
      meeting_(meeting),
      world_(world),
      locals_(std::move(locals)),
      policies_(policies),
      limit_(limit),
      warn_(std::move(warn)),
      caller_(caller),
      streams_(locals_.size()) {
  RESHARD_CHECK(!locals_.empty(), "a process without a rank");
  try {
    if (caller_ || policies_.eager_parent) make_parent();
  } catch (...) {
    abort_all("the communicator over all ranks could not be made");
    throw;
  }
}

Communicators::~Communicators() {
  if (std::uncaught_exceptions() > 0) abort_all("the process failed");
  try {
    if (!aborted()) close_all();
  } catch (const std::exception& error) {
    abort_all(error.what());
  }
  for (std::size_t i = 0; i < locals_.size(); ++i)
    for (auto& [key, stream] : streams_[i])
      if (!caller_ || key != kMainStream) locals_[i].device->destroy(stream);
}

// ---- look-up ----

const Communicator* Communicators::find(const std::string& key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

std::string Communicators::group_key(std::span<const std::int32_t> members) {
  bool run = members.size() > 1;
  for (std::size_t i = 1; i < members.size(); ++i) run = run && members[i] == members[i - 1] + 1;
  return run ? fmt::format("{}-{}", members.front(), members.back())
             : fmt::format("{}", fmt::join(members, ","));
}

std::string Communicators::pair_key(std::int32_t a, std::int32_t b) {
  return fmt::format("{}:{}", std::min(a, b), std::max(a, b));
}

bool Communicators::is_local(std::int32_t rank) const {
  return std::any_of(locals_.begin(), locals_.end(),
                     [&](const LocalRank& local) { return local.rank == rank; });
}

Route Communicators::route(std::size_t local, std::int32_t peer) {
  ensure_usable();
  const Communicator* found = find(kParentKey);
  if (found == nullptr) found = find(pair_key(locals_[local].rank, peer));
  RESHARD_CHECK(found != nullptr,
                fmt::format("ranks {} and {} are not connected", locals_[local].rank, peer));
  return route(local, peer, *found);
}

Route Communicators::route(std::size_t local, std::int32_t peer, const Communicator& communicator) {
  return {&communicator, communicator.comms[local], communicator.place_of(peer),
          stream(local, communicator.stream_key)};
}

const Communicator* Communicators::find_group(const std::vector<std::int32_t>& members) const {
  const Communicator* parent = find(kParentKey);
  return parent != nullptr && parent->members == members ? parent : find(group_key(members));
}

const Communicator& Communicators::cached_group(const std::vector<std::int32_t>& members) const {
  const Communicator* found = find_group(members);
  RESHARD_CHECK(found != nullptr, fmt::format("group {} has no communicator", group_key(members)));
  return *found;
}

Stream Communicators::stream(std::size_t local, const std::string& stream_key) {
  auto [entry, is_new] = streams_[local].try_emplace(stream_key, nullptr);
  if (is_new) entry->second = locals_[local].device->create_stream();
  return entry->second;
}

// ---- making communicators ----

Communicator& Communicators::add(std::string key, std::string stream_key,
                                 std::vector<std::int32_t> members) {
  Communicator& out = communicators_.emplace_back();
  out.key = std::move(key);
  out.stream_key = std::move(stream_key);
  out.members = std::move(members);
  out.comms.assign(locals_.size(), nullptr);
  by_key_[out.key] = &out;
  return out;
}

void Communicators::make_parent() {
  std::vector<std::int32_t> all(to_index(world_));
  for (std::int32_t r = 0; r < world_; ++r) all[to_index(r)] = r;
  Communicator& parent = add(kParentKey, kMainStream, std::move(all));
  if (!caller_) return make_each({&parent});
  RESHARD_CHECK(locals_.size() == 1, "a lent communicator is of one rank");
  parent.comms[0] = caller_->comm;
  streams_[0][kMainStream] = caller_->stream;
}

std::vector<const Communicator*> Communicators::groups(
    const std::vector<std::vector<std::int32_t>>& groups) {
  ensure_usable();
  std::vector<const Communicator*> out;
  std::vector<Communicator*> missing;
  for (const std::vector<std::int32_t>& members : groups) {
    const Communicator* found = find_group(members);
    if (found == nullptr)
      found = missing.emplace_back(&add(group_key(members), kMainStream, members));
    out.push_back(found);
  }
  if (missing.empty()) return out;
  if (find(kParentKey) != nullptr && policies_.split_from_parent && api_.version() >= kNcclSplit)
    split(missing);
  else
    make_each(missing);
  return out;
}

void Communicators::connect(const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
  ensure_usable();
  if (find(kParentKey) != nullptr) return;
  std::vector<Communicator*> missing;
  for (auto [low, high] : pairs) {
    std::string key = pair_key(low, high);
    if (find(key) == nullptr)
      missing.push_back(&add(key, policies_.stream_per_pair ? key : kMainStream, {low, high}));
  }
  if (missing.empty()) return;
  if (!warned_ && warn_)
    warn_(
        "NCCL: there is no communicator over all ranks, so exchanges use communicators of two "
        "ranks; each costs time and memory when it is made");
  warned_ = true;
  make_each(missing);
}

void Communicators::split(const std::vector<Communicator*>& children) {
  const Communicator& parent = *find(kParentKey);
  group("ncclCommSplit of the communicator over all ranks", [&] {
    for (std::size_t i = 0; i < locals_.size(); ++i) {
      int color = kNcclNoColor, key = 0;
      NcclComm* child = &no_child_;
      for (std::size_t c = 0; c < children.size(); ++c) {
        std::int32_t place = children[c]->place_of(locals_[i].rank);
        if (place == static_cast<std::int32_t>(children[c]->members.size())) continue;
        color = static_cast<int>(c);
        key = place;
        child = &children[c]->comms[i];
      }
      locals_[i].device->select();
      checked(api_.split(parent.comms[i], color, key, child), "ncclCommSplit", locals_[i].rank,
              parent.comms[i]);
    }
  });
  for (const Communicator* child : children)
    for (std::size_t i = 0; i < locals_.size(); ++i)
      if ((child->comms[i] != nullptr) !=
          (child->place_of(locals_[i].rank) < static_cast<std::int32_t>(child->members.size())))
        fail("ncclCommSplit",
             fmt::format("no communicator for rank {} in group {}", locals_[i].rank, child->key));
}

void Communicators::make_each(const std::vector<Communicator*>& fresh) {
  std::vector<NcclUniqueId> ids = share_ids(fresh);
  for (std::size_t c = 0; c < fresh.size(); ++c) init(*fresh[c], ids[c]);
}

// The process that holds a communicator's first member makes its id; every process gets all of
// them.
std::vector<NcclUniqueId> Communicators::share_ids(const std::vector<Communicator*>& fresh) {
  std::vector<NcclUniqueId> ids(fresh.size());
  for (std::size_t c = 0; c < fresh.size(); ++c)
    if (is_local(fresh[c]->members.front()))
      checked(api_.get_unique_id(&ids[c]), "ncclGetUniqueId", fresh[c]->members.front(), nullptr);
  auto mine = std::as_writable_bytes(std::span(ids));
  std::vector<std::vector<std::byte>> all = meeting_.gather(mine);
  // An id that a process did not make is zero there.
  for (const std::vector<std::byte>& part : all) {
    RESHARD_CHECK(part.size() == mine.size(), "processes make different communicators");
    for (std::size_t b = 0; b < part.size(); ++b) mine[b] |= part[b];
  }
  std::vector<std::byte> joined = meeting_.broadcast(mine);
  RESHARD_CHECK(joined.size() == mine.size(), "processes make different communicators");
  std::memcpy(mine.data(), joined.data(), joined.size());
  return ids;
}

void Communicators::init(Communicator& communicator, const NcclUniqueId& id) {
  bool any = false;
  for (const LocalRank& local : locals_)
    any = any || communicator.place_of(local.rank) <
                     static_cast<std::int32_t>(communicator.members.size());
  if (!any) return;
  group(fmt::format("ncclCommInitRankConfig of communicator {}", communicator.key), [&] {
    for (std::size_t i = 0; i < locals_.size(); ++i) {
      std::int32_t place = communicator.place_of(locals_[i].rank),
                   size = static_cast<std::int32_t>(communicator.members.size());
      if (place == size) continue;
      locals_[i].device->select();
      checked(api_.init_rank(&communicator.comms[i], size, id, place), "ncclCommInitRankConfig",
              locals_[i].rank, nullptr);
    }
  });
}

// ---- calls and waits ----

void Communicators::checked(NcclResult result, const char* call, std::int32_t rank, NcclComm comm) {
  if (result == NcclResult::Success || result == NcclResult::InProgress) return;
  std::string last = api_.last_error(comm);
  throw BackendError("NCCL", call,
                     api_.error_text(result) + (last.empty() ? "" : " (" + last + ")"), rank);
}

void Communicators::group(const std::string& what, const std::function<void()>& calls) {
  ensure_usable();
  checked(api_.group_start(), "ncclGroupStart", any_rank(), nullptr);
  try {
    calls();
  } catch (const std::exception& error) {
    std::string why = error.what();
    api_.group_end();
    abort_all(why);
    meeting_.give_up(fmt::format("rank {}: {}", any_rank(), why));
    throw;
  }
  NcclResult ended = api_.group_end();
  if (ended != NcclResult::Success && ended != NcclResult::InProgress) {
    std::string last = api_.last_error(nullptr);
    fail("ncclGroupEnd for " + what,
         api_.error_text(ended) + (last.empty() ? "" : " (" + last + ")"));
  }
  if (ended == NcclResult::InProgress) settle(what);
}

void Communicators::settle(const std::string& what) {
  wait(
      [&] {
        for (const Communicator& communicator : communicators_)
          for (NcclComm comm : communicator.comms) {
            NcclResult state = NcclResult::Success;
            if (comm != nullptr && api_.async_error(comm, &state) == NcclResult::Success &&
                state == NcclResult::InProgress)
              return false;
          }
        watch([&] { return what; });
        return true;
      },
      [&] { return what; });
}

void Communicators::wait(const std::function<bool()>& done,
                         const std::function<std::string()>& what) {
  ensure_usable();
  try {
    job::Patience patience(limit_);
    while (!done()) {
      bool in_time = patience.idle();
      if (patience.time_to_look()) watch(what);
      if (!in_time) fail(what(), fmt::format("not done within {}", limit_));
    }
  } catch (const std::exception& error) {
    std::string why = error.what();
    if (!aborted()) {
      abort_all(why);
      meeting_.give_up(fmt::format("rank {}: {}", any_rank(), why));
    }
    throw;
  }
}

void Communicators::together(const std::function<void()>& body) {
  try {
    body();
  } catch (const BackendError& error) {
    abort_all(error.what());
    throw;
  }
}

void Communicators::check(const std::string& what) {
  ensure_usable();
  watch([&] { return what; });
}

void Communicators::watch(const std::function<std::string()>& what) {
  for (const Communicator& communicator : communicators_)
    for (std::size_t i = 0; i < locals_.size(); ++i) {
      NcclComm comm = communicator.comms[i];
      if (comm == nullptr) continue;
      NcclResult state = NcclResult::Success;
      NcclResult asked = api_.async_error(comm, &state);
      if (asked == NcclResult::Success &&
          (state == NcclResult::Success || state == NcclResult::InProgress))
        continue;
      std::string last = api_.last_error(comm);
      fail(what(), fmt::format("communicator {} of rank {} reports: {}{}", communicator.key,
                               locals_[i].rank,
                               api_.error_text(asked == NcclResult::Success ? state : asked),
                               last.empty() ? "" : " (" + last + ")"));
    }
  meeting_.check();
}

// ---- the end ----

void Communicators::fail(const std::string& call, const std::string& code) {
  BackendError error("NCCL", call, code, any_rank());
  abort_all(error.what());
  meeting_.give_up(error.what());
  throw error;
}

void Communicators::abort_all(const std::string& why) noexcept {
  if (aborted()) return;
  why_aborted_ = why.empty() ? "no reason given" : why;
  for (auto communicator = communicators_.rbegin(); communicator != communicators_.rend();
       ++communicator) {
    if (is_lent(*communicator) && !caller_->may_abort) continue;
    for (NcclComm& comm : communicator->comms)
      if (comm != nullptr) api_.abort(std::exchange(comm, nullptr));
  }
}

void Communicators::ensure_usable() const {
  if (aborted())
    throw BackendError("NCCL", "use of communicators that were aborted",
                       "the first error was: " + why_aborted_, any_rank());
}

// Together with all other members: children first. Finalizing is what waits for the others, so it
// is what the limit watches.
void Communicators::close_all() {
  for (auto communicator = communicators_.rbegin(); communicator != communicators_.rend();
       ++communicator) {
    if (is_lent(*communicator)) continue;
    group("ncclCommFinalize of communicator " + communicator->key, [&] {
      for (std::size_t i = 0; i < locals_.size(); ++i)
        if (communicator->comms[i] != nullptr)
          checked(api_.finalize(communicator->comms[i]), "ncclCommFinalize", locals_[i].rank,
                  communicator->comms[i]);
    });
    for (std::size_t i = 0; i < locals_.size(); ++i)
      if (communicator->comms[i] != nullptr)
        checked(api_.destroy(std::exchange(communicator->comms[i], nullptr)), "ncclCommDestroy",
                locals_[i].rank, nullptr);
  }
}

}  // namespace reshard::backends::nccl
