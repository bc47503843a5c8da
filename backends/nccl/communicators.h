// SPDX-License-Identifier: BSD-3-Clause
// The registry of a job's communicators: which ones exist, how new ones are made, which stream each
// uses, and what happens when one fails.
//
// Communicators cost seconds and gigabytes, are made by all their ranks together, and on one GPU
// must be used in the same order on all ranks. These policies follow from that, and from known
// failures of other registries:
//
//   parent      one communicator over all ranks, made at once (eager), so that nothing is made in
//               the middle of a job, where ranks may disagree about the order. Exchanges use it.
//   lent        the parent may be the caller's, with the caller's stream. It is used like our own,
//               but never closed, and aborted only if the caller allows it.
//   lookups     return what exists and never make anything. Only groups() and connect() make
//               communicators, in the same order on all processes.
//   groups      groups of collectives are split from the parent, without shared resources, all
//               disjoint ones of a step in one split; without a parent, or with an NCCL older than
//               split, each gets its own unique id.
//   pairs       without a parent, exchanges fall back to communicators of two ranks, made in
//               ascending order of (low, high) on all ranks, so that no two ranks wait for each
//               other crosswise. One warning in total.
//   streams     have their own keys: communicators with the same stream key share a stream, and
//               thus one launch order. A plan on one stream uses only the main one. Each further
//               stream of a plan has a communicator over all ranks, for its exchanges, and groups
//               of its own, whatever the policy: steps that may overlap never share one.
//   names       `--communicators` (core/traffic/communicator_policy.h) chooses among these
//               policies; it decides whether exchanges use the parent, and whether a group of all
//               ranks becomes the parent.
//   failure     an asynchronous error, a time limit or a lost process aborts all communicators,
//               because any of them may have kernels that wait for the lost process. After that,
//               every use throws the first reason.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/launch/meeting.h"
#include "backends/nccl/caller.h"
#include "backends/nccl/nccl_api.h"
#include "core/traffic/communicator_policy.h"

namespace reshard::backends::nccl {

using launch::Meeting;

struct CommunicatorPolicies {
  bool eager_parent = true;
  bool split_from_parent = true;
  bool stream_per_pair = false;     // each pair gets its own stream; events order what is issued
                                    // there with the main stream
  bool parent_for_messages = true;  // exchanges use the parent if it exists
  bool parent_on_use = false;       // a group of all ranks, once made, becomes the parent
};
// The policies that the name means; pairs get their own streams if exchanges use pairs.
CommunicatorPolicies policies_of(CommunicatorPolicy policy);

struct LocalRank {
  std::int32_t rank;  // global
  Device* device;
};

inline const std::string kParentKey = "all";
inline const std::string kMainStream = "main";
// Of a plan's streams (core/plan/plan.h): 0 is the main one.
std::string stream_key(std::int32_t stream);
bool is_further_stream(std::string_view stream_key);

struct NcclCommunicator {
  std::string key;  // "all", the members of a group ("0-3", "0,2"), or a pair ("1:4"); of a plan's
                    // further streams followed by its key ("all of stream 1")
  std::string stream_key;             // "main", "stream 1", or the pair's key
  std::vector<std::int32_t> members;  // global ranks, in the communicator's order
  std::vector<NcclComm> comms;        // per local rank; null if not a member
  std::int32_t place_of(std::int32_t rank) const;
};

// How a local rank reaches a peer.
struct PeerRoute {
  const NcclCommunicator* communicator;
  NcclComm comm;
  int peer;  // its place in the communicator
  Stream stream;
};

class Communicators {
 public:
  // `locals` ascend by rank; all processes together hold ranks 0 .. world-1. Collective, like all
  // functions that make communicators.
  Communicators(NcclApi& api, Meeting& meeting, std::int32_t world, std::vector<LocalRank> locals,
                CommunicatorPolicies policies, std::chrono::milliseconds limit,
                std::function<void(const std::string&)> warn,
                std::optional<CallerCommunicator> caller = std::nullopt);
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators();

  std::size_t local_count() const { return locals_.size(); }
  const LocalRank& local(std::size_t i) const { return locals_[i]; }
  std::int32_t world() const { return world_; }
  NcclApi& api() { return api_; }
  std::chrono::milliseconds limit() const { return limit_; }

  // Null if it has not been made.
  const NcclCommunicator* find(const std::string& key) const;
  std::size_t size() const { return communicators_.size(); }
  static std::string group_key(std::span<const std::int32_t> members);
  static std::string pair_key(std::int32_t a, std::int32_t b);
  // A communicator's key for a stream of a plan.
  static std::string key_on(const std::string& key, std::int32_t stream);

  // The communicators of disjoint groups for a stream of a plan; makes those that do not exist yet.
  std::vector<const NcclCommunicator*> groups(const std::vector<std::vector<std::int32_t>>& groups,
                                              std::int32_t stream = 0);
  // The communicator of all ranks for a stream of a plan other than the main one; made if it does
  // not exist.
  const NcclCommunicator& all(std::int32_t stream);
  // Makes sure that all pairs (low, high), ascending, can exchange; does nothing if the parent
  // serves exchanges.
  void connect(const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs);
  // Never makes anything: the pair must already be connected.
  PeerRoute route(std::size_t local, std::int32_t peer);
  // Over this communicator; both ranks must be members.
  PeerRoute route(std::size_t local, std::int32_t peer, const NcclCommunicator& communicator);
  const NcclCommunicator& cached_group(const std::vector<std::int32_t>& members,
                                       std::int32_t stream = 0) const;
  const NcclCommunicator& cached_all(std::int32_t stream) const;
  Stream stream(std::size_t local, const std::string& stream_key);

  // Runs `calls` between group start and group end, then waits until no communicator is in
  // progress. `what` names the group in errors.
  void group(const std::string& what, const std::function<void()>& calls);
  // Throws unless the call succeeded or is in progress.
  void checked(NcclResult result, const char* call, std::int32_t rank, NcclComm comm);

  // Waits until done() holds, watching all communicators and processes. `what` names what is waited
  // for; it is called only if the wait fails.
  void wait(const std::function<bool()>& done, const std::function<std::string()>& what);
  // Throws any failure that communicators or processes report by now. `what` names the current
  // work.
  void check(const std::string& what);
  // Runs `body`, which talks to other processes; if it fails, nothing can be used any more.
  void together(const std::function<void()>& body);
  // Aborts all communicators, unless that has already happened.
  void give_up(const std::string& why) noexcept { abort_all(why); }
  // Throws the reason if the communicators have been aborted.
  void ensure_usable() const;
  bool aborted() const { return !why_aborted_.empty(); }

 private:
  NcclCommunicator& add(std::string key, std::string stream_key, std::vector<std::int32_t> members);
  std::vector<std::int32_t> all_ranks() const;
  void make_parent();
  void make(const std::vector<NcclCommunicator*>& fresh);
  bool is_lent(const NcclCommunicator& communicator) const {
    return caller_ && communicator.key == kParentKey;
  }
  bool can_split(const std::vector<NcclCommunicator*>& fresh) const;
  void split(const std::vector<NcclCommunicator*>& children);
  // One after the other, each with its own unique id.
  void make_each(const std::vector<NcclCommunicator*>& fresh);
  std::vector<NcclUniqueId> share_ids(const std::vector<NcclCommunicator*>& fresh);
  void init(NcclCommunicator& communicator, const NcclUniqueId& id);
  void settle(const std::string& what);
  void watch(const std::function<std::string()>& what);
  [[noreturn]] void fail(const std::string& call, const std::string& code);
  void abort_all(const std::string& why) noexcept;
  void close_all();
  bool is_local(std::int32_t rank) const;
  const NcclCommunicator* parent_for_messages() const {
    return policies_.parent_for_messages ? find(kParentKey) : nullptr;
  }
  // The parent if these are its members in its order, else the group's own communicator; null if
  // neither exists.
  const NcclCommunicator* find_group(const std::vector<std::int32_t>& members,
                                     std::int32_t stream) const;
  std::int32_t any_rank() const { return locals_.front().rank; }

  NcclApi& api_;
  Meeting& meeting_;
  std::int32_t world_;
  std::vector<LocalRank> locals_;
  CommunicatorPolicies policies_;
  std::chrono::milliseconds limit_;
  std::function<void(const std::string&)> warn_;
  std::optional<CallerCommunicator> caller_;
  // In the order in which they were made; a list, so that handles stay valid.
  std::list<NcclCommunicator> communicators_;
  std::map<std::string, NcclCommunicator*> by_key_;
  std::vector<std::map<std::string, Stream>> streams_;  // per local rank
  bool warned_ = false;
  std::string why_aborted_;
  NcclComm no_child_ = nullptr;  // where a split stores the communicator of ranks in no group
};

}  // namespace reshard::backends::nccl
