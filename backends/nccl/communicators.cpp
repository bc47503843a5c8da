// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/communicators.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/launch/patience.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {

std::string version_text(int version) {
  return version >= 10000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
}

CommunicatorPolicies policies_of(CommunicatorPolicy policy) {
  CommunicatorPolicies out;
  out.eager_parent = makes_parent_at_start(policy);
  out.parent_on_use = policy == CommunicatorPolicy::Cached;
  out.parent_for_messages =
      policy != CommunicatorPolicy::Pairwise && policy != CommunicatorPolicy::Split;
  out.stream_per_pair = policy != CommunicatorPolicy::Eager;
  return out;
}

std::int32_t NcclCommunicator::place_of(std::int32_t rank) const {
  auto index = to_index(rank);
  if (index < members.size() && members[index] == rank)
    return rank;  // a shortcut for the parent, which carries most messages
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

const NcclCommunicator* Communicators::find(const std::string& key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

std::string Communicators::group_key(std::span<const std::int32_t> members) {
  bool run = members.size() > 1;
  for (std::size_t i = 1; i < members.size(); ++i) run = run && members[i] == members[i - 1] + 1;
  return run ? fmt::format("{}-{}", members.front(), members.back())
             : fmt::format("{}", fmt::join(members, ","));
}

std::string stream_key(std::int32_t stream) {
  return stream == 0 ? kMainStream : fmt::format("stream {}", stream);
}

bool is_further_stream(std::string_view stream_key) { return stream_key.starts_with("stream "); }

std::string Communicators::key_on(const std::string& key, std::int32_t stream) {
  return stream == 0 ? key : fmt::format("{} of {}", key, stream_key(stream));
}

std::string Communicators::pair_key(std::int32_t a, std::int32_t b) {
  return fmt::format("{}:{}", std::min(a, b), std::max(a, b));
}

bool Communicators::is_local(std::int32_t rank) const {
  return std::any_of(locals_.begin(), locals_.end(),
                     [&](const LocalRank& local) { return local.rank == rank; });
}

PeerRoute Communicators::route(std::size_t local, std::int32_t peer) {
  ensure_usable();
  const NcclCommunicator* found = parent_for_messages();
  std::string pair = pair_key(locals_[local].rank, peer);
  // Even on separate streams NCCL runs the parent's messages one after another.
  if (found != nullptr && policies_.stream_per_pair && policies_.eager_parent)
    return {found, found->comms[local], found->place_of(peer), stream(local, pair)};
  if (found == nullptr) found = find(pair);
  RESHARD_CHECK(found != nullptr,
                fmt::format("ranks {} and {} are not connected", locals_[local].rank, peer));
  return route(local, peer, *found);
}

PeerRoute Communicators::route(std::size_t local, std::int32_t peer,
                               const NcclCommunicator& communicator) {
  return {&communicator, communicator.comms[local], communicator.place_of(peer),
          stream(local, communicator.stream_key)};
}

const NcclCommunicator* Communicators::find_group(const std::vector<std::int32_t>& members,
                                                  std::int32_t stream) const {
  const NcclCommunicator* all = find(key_on(kParentKey, stream));
  return all != nullptr && all->members == members ? all : find(key_on(group_key(members), stream));
}

const NcclCommunicator& Communicators::cached_group(const std::vector<std::int32_t>& members,
                                                    std::int32_t stream) const {
  const NcclCommunicator* found = find_group(members, stream);
  RESHARD_CHECK(found != nullptr,
                fmt::format("group {} has no communicator", key_on(group_key(members), stream)));
  return *found;
}

const NcclCommunicator& Communicators::cached_all(std::int32_t stream) const {
  const NcclCommunicator* found = find(key_on(kParentKey, stream));
  RESHARD_CHECK(found != nullptr, stream_key(stream) + " has no communicator");
  return *found;
}

Stream Communicators::stream(std::size_t local, const std::string& stream_key) {
  auto [entry, is_new] = streams_[local].try_emplace(stream_key, nullptr);
  if (is_new) entry->second = locals_[local].device->create_stream();
  return entry->second;
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
        for (const NcclCommunicator& communicator : communicators_)
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
    launch::Patience patience(limit_);
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
  for (const NcclCommunicator& communicator : communicators_)
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

// Collective over each communicator's members; children come first. Finalizing is the part that
// waits for the other members, so the time limit applies to it.
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
