// SPDX-License-Identifier: BSD-3-Clause
// The transfers between ranks while a step runs: which of its parts send to which, how many bytes,
// and in which round. The engine times them; byte counts and traffic are their sums.
//
// A part is one rank's share of a step. An exchange has one round, a collective the rounds of its
// expansion (expansion.h); copies, fills and folds have none. Transfers are computed on demand;
// nothing is stored per transfer of a collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/plan/plan.h"
#include "core/traffic/bare_collective.h"
#include "core/traffic/expansion.h"

namespace reshard {

// What moves the bytes on a GPU: thread blocks of a kernel, or copy engines. `Links`: only links
// are modelled, so neither.
enum class Mover : std::uint8_t { Links, Kernels, Engines };

// A transfer's own latency and rate, where its route alone does not decide them.
struct Terms {
  std::int64_t latency_ps;       // before its first byte moves
  std::int64_t cap_bytes_per_s;  // at least 1
  Mover mover = Mover::Links;
  std::int32_t blocks = 0;  // of the kernel, at each end
};

// One transfer between two parts.
struct Flow {
  std::int32_t source, destination;  // parts
  std::int64_t bytes;
  Terms terms;
  std::int64_t ranges = 1;  // number of boxes that it carries
};

// A member's place in the rings of its group. Each ring has its own members at which it enters and
// leaves a node. Chunks follow positions; each chunk is split among all rings.
struct RingPlace {
  std::int32_t position;                // 0 .. members - 1
  std::int32_t rings;                   // in the group
  std::int32_t next, previous;          // parts within the node; -1: none
  std::int32_t next_out, previous_out;  // parts in other nodes, in one of the rings; -1: none
};

class Transfers {
 public:
  // A plan's step, by the default expansion.
  Transfers(const Plan& plan, const Step& step);
  // `parts` parts that send nothing.
  static Transfers none(std::int32_t parts);
  // One message from part 0 to part 1, on the given terms or else the route's own.
  static Transfers message(std::int64_t bytes, std::optional<Terms> terms = {});
  // A collective of parts 0 .. n-1, n >= 2; `bytes` is Expansion's `elements` in bytes.
  static Transfers collective(CollectiveKind kind, Algorithm algorithm, std::int32_t n,
                              std::int64_t bytes);
  // The same for any collective that jobs issue, with at least two ranks.
  static Transfers collective(const BareCollective& collective);

  // One round of flows, ascending by source, between parts with the given slots.
  static Transfers flows(std::span<const Slot> slots, std::span<const Flow> flows);

  // Whether this is a collective with one or more rings per group. group_size(): members per group;
  // 0 if this is not a collective.
  bool is_ring() const;
  std::int32_t group_size() const {
    return expansions_.empty() ? 0 : expansions_.front().members();
  }
  // One place per part. The default is a single ring in the order of the parts.
  void lay_rings(std::vector<RingPlace> places);
  // Rings only: the part's position in them.
  std::int32_t ring_position(std::int32_t part) const {
    return places_.empty() ? part % group_size() : places_[to_index(part)].position;
  }
  const Expansion& expansion(std::int32_t group) const { return expansions_[to_index(group)]; }

  // No transfer starts between the parts of a group of this size before all of them are ready, as
  // with kernels that wait for each other.
  void gather(std::int32_t group) { gathers_ = group; }
  std::int32_t gathers() const { return gathers_; }  // 0: each transfer waits for its two ends

  // The rank of each part: for a plan's step its slot, else 0, 1, 2 ...
  std::span<const Slot> slots() const { return index_->slots; }
  std::int32_t rounds() const {
    return !expansions_.empty()           ? expansions_.front().rounds()
           : index_->source_parts.empty() ? 0
                                          : 1;
  }
  // Collectives only: the number of transfers in total and in one round.
  std::int64_t count() const { return count_; }
  std::int64_t at_once() const { return at_once_; }

  // Whether every round is like the first: the same bytes between the same parts.
  bool equal_rounds() const;

  // Calls visit(source part, destination part, bytes, terms) for what `part` sends in a round, then
  // for what it receives. `terms` is null where the route's own apply.
  template <class Visit>
  void for_each(std::int32_t part, std::int32_t round, Visit&& visit) const {
    for_each_of_part(part, round, true, visit);
  }
  // The same, for what it sends only.
  template <class Visit>
  void for_each_sent(std::int32_t part, std::int32_t round, Visit&& visit) const {
    for_each_of_part(part, round, false, visit);
  }
  // The same for a step that is not a collective; visits nothing for one that is.
  template <class Visit>
  void for_each_message_sent(std::int32_t part, Visit&& visit) const {
    if (expansions_.empty() && rounds() > 0) for_each_message(part, false, visit);
  }

 private:
  // The ranks of the parts. For messages, which ascend by source part: their two ends, and what
  // each part sends and receives (first_*: one more entry at the end).
  struct Index {
    std::vector<Slot> slots;
    std::vector<std::int32_t> source_parts, destination_parts;
    std::vector<std::uint32_t> first_send, first_receive, receives;
    std::vector<std::int64_t> bytes;  // empty: `single_bytes_`
    std::vector<Terms> terms;         // of flows()
    void add_sends_and_receives();
  };

  explicit Transfers(std::shared_ptr<const Index> index) : index_(std::move(index)) {}
  void add_expansion(const Expansion& expansion);

  template <class Visit>
  void for_each_of_part(std::int32_t part, std::int32_t round, bool received, Visit&& visit) const {
    if (expansions_.empty())
      for_each_message(part, received, visit);
    else if (!places_.empty())
      for_each_of_rings(part, round, received, visit);
    else
      for_each_of_group(part, round, received, visit);
  }

  template <class Visit>
  void for_each_message(std::int32_t part, bool received, Visit&& visit) const {
    auto at = to_index(part);
    const Index& index = *index_;
    auto add = [&](std::uint32_t message) {
      visit(index.source_parts[message], index.destination_parts[message],
            index.bytes.empty() ? single_bytes_ : index.bytes[message],
            single_terms_         ? &*single_terms_
            : index.terms.empty() ? nullptr
                                  : &index.terms[message]);
    };
    for (std::uint32_t i = index.first_send[at]; i < index.first_send[at + 1]; ++i) add(i);
    if (!received) return;
    for (std::uint32_t i = index.first_receive[at]; i < index.first_receive[at + 1]; ++i)
      add(index.receives[i]);
  }

  template <class Visit>
  void for_each_of_group(std::int32_t part, std::int32_t round, bool received,
                         Visit&& visit) const {
    // One group is the common case, and a division costs as much as everything else here.
    std::int32_t n = expansions_.front().members(), group = part < n ? 0 : part / n;
    std::int32_t first = group * n, member = part - first;
    const Expansion& expansion = expansions_[to_index(group)];
    auto add = [&](const Transfer& transfer) {
      visit(first + transfer.source, first + transfer.destination,
            expansion.elements(transfer) * unit_bytes_, static_cast<const Terms*>(nullptr));
    };
    std::int32_t sends = expansion.sends(round, member),
                 receives = received ? expansion.receives(round, member) : 0;
    for (std::int32_t k = 0; k < sends; ++k) add(expansion.sent(round, member, k));
    for (std::int32_t k = 0; k < receives; ++k) add(expansion.arriving(round, member, k));
  }

  // The chunk that a single ring in the order of positions would carry is split among the rings. At
  // most one of them leaves the node at this member; the others stay inside it.
  template <class Visit>
  void for_each_of_rings(std::int32_t part, std::int32_t round, bool received,
                         Visit&& visit) const {
    const Expansion& expansion = expansions_[to_index(part / group_size())];
    auto send = [&](std::int32_t source, std::int32_t destination, bool out) {
      if (source < 0 || destination < 0) return;
      const RingPlace& place = places_[to_index(source)];
      std::int64_t all = expansion.elements(expansion.sent(round, place.position, 0)),
                   leaving = place.next_out < 0 ? 0 : ceil_div(all, std::int64_t{place.rings});
      visit(source, destination, (out ? leaving : all - leaving) * unit_bytes_,
            static_cast<const Terms*>(nullptr));
    };
    const RingPlace& here = places_[to_index(part)];
    send(part, here.next, false);
    send(part, here.next_out, true);
    if (!received) return;
    send(here.previous, part, false);
    send(here.previous_out, part, true);
  }

  // Shared by all single messages: a job can have a million.
  std::shared_ptr<const Index> index_;
  std::int64_t single_bytes_ = 0;
  std::optional<Terms> single_terms_;
  // Collectives: parts are members, group after group.
  std::vector<Expansion> expansions_;  // by group
  std::vector<RingPlace> places_;      // by part, where lay_rings was called
  std::int64_t unit_bytes_ = 1;        // bytes per element of the expansions
  std::int64_t count_ = 0, at_once_ = 0;
  std::int32_t gathers_ = 0;
};

// What a step sends, as transports see it: messages (`flows`, without terms), or one collective per
// group. A collective's members are the parts, group after group.
struct StepTraffic {
  std::vector<Slot> slots;  // by part
  std::vector<Flow> flows;
  std::optional<CollectiveKind> kind;  // none: messages
  std::int32_t group_size = 0;
  std::vector<std::int64_t> group_bytes;  // Expansion's `elements` in bytes
};
// nullopt where no bytes leave a rank.
std::optional<StepTraffic> step_traffic(const Plan& plan, const Step& step);

// The `elements` that Expansion takes for a group of a collective.
std::int64_t expansion_elements(const Plan& plan, const CollectiveStep& step, std::size_t group);

// Calls visit(slot, bytes) for what every rank receives in a step, in one call or several per rank.
void for_each_receipt(const Plan& plan, const Step& step,
                      const std::function<void(Slot, std::int64_t)>& visit);

// Calls visit(source, destination, bytes) for every pair of ranks that bytes go between in a step,
// for some pairs several times.
void for_each_pair(const Plan& plan, const Step& step,
                   const std::function<void(Slot, Slot, std::int64_t)>& visit);

}  // namespace reshard
