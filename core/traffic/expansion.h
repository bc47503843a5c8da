// SPDX-License-Identifier: BSD-3-Clause
// A collective's expansion: which contiguous parts go between which members, and in which order.
// The engine times the expansion and byte counts are taken from it; the result of the collective is
// defined by its meaning alone (plan.h).
//
// A buffer is `n` consecutive chunks. In all_gather, reduce_scatter and all_to_all they are n equal
// blocks; all_reduce cuts the count into n as evenly as possible (the first count mod n chunks are
// one element larger). Transfers of zero bytes are listed but move nothing.
//
//   ring      all_gather: n-1 rounds, member i sends to i+1 the chunk it received last.
//             reduce_scatter: the same with folding, member i ends with chunk i. all_reduce:
//             reduce_scatter, then all_gather. all_to_all: in round k member i sends to i+k+1
//             (pairwise).
//   direct    all pairs at once: all_gather, all_to_all, reduce_scatter. all_reduce:
//             reduce_scatter, then all_gather.
//   tree      all_reduce only: binomial reduction to member 0, then binomial broadcast, of the
//             whole buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

enum class Algorithm : std::uint8_t { Ring, Direct, Tree };

// Ring for all_gather, reduce_scatter and all_reduce; direct for all_to_all.
Algorithm default_algorithm(CollectiveKind kind);
bool has_algorithm(CollectiveKind kind, Algorithm algorithm);

struct Transfer {
  std::int32_t source, destination;  // members, 0 .. n-1
  // Consecutive chunks in the numbering of the *result* (all_to_all: the chunk that `destination`
  // gets from `source` is numbered `source`).
  std::int32_t first_chunk, chunks;
  bool fold;  // whether the receiver folds what arrives into what it has, or stores it
};

// Transfers are numbered round by round, so every transfer comes after those it waits for. They are
// computed in closed form: nothing is stored per transfer.
//
// A transfer belongs to one round, the same for both its members. A member takes part in a round
// once all its own transfers of earlier rounds are complete. In one round it sends and receives
// several times (direct), once each (ring), or at most once in total (tree).
class Expansion {
 public:
  // n >= 2. `elements` is the collective's count: the input per member of all_gather, the output of
  // reduce_scatter, the buffer of all_reduce, the block of all_to_all. Throws InputError where a
  // member would receive more than 2^62 elements.
  Expansion(CollectiveKind kind, Algorithm algorithm, std::int32_t n, std::int64_t elements);

  std::int32_t members() const { return n_; }
  // Whether every member sends one transfer per round, to the next member.
  bool is_ring() const {
    return algorithm_ == Algorithm::Ring && kind_ != CollectiveKind::AllToAll;
  }
  std::int64_t size() const { return size_; }
  // Whether every round is like the first: the same bytes between the same members.
  bool equal_rounds() const;
  // The number of chunks, the first ones, that are one element larger than the others.
  std::int32_t larger_chunks() const {
    return kind_ == CollectiveKind::AllReduce ? static_cast<std::int32_t>(larger_chunks_) : 0;
  }
  Transfer transfer(std::int64_t i) const;
  // Elements that transfer i carries.
  std::int64_t elements(std::int64_t i) const { return elements(transfer(i)); }
  std::int64_t elements(const Transfer& transfer) const {
    return tree() ? elements_ : chunk_elements(transfer.first_chunk);
  }
  // The transfers that must be complete before transfer i starts: those that bring what it sends,
  // and those of the sender's and the receiver's previous rounds. Appended to `out`, ascending,
  // each once.
  void waits_for(std::int64_t i, std::vector<std::int64_t>& out) const;
  // Elements that the member receives in total.
  std::int64_t received(std::int32_t member) const;

  // The rounds as one member sees them: how many transfers it has in a round, and the number of its
  // k-th transfer.
  std::int32_t rounds() const { return rounds_; }
  std::int32_t round_of(std::int64_t i) const;
  std::int32_t sends(std::int32_t round, std::int32_t member) const;
  std::int32_t receives(std::int32_t round, std::int32_t member) const;
  std::int64_t send(std::int32_t round, std::int32_t member, std::int32_t k) const;
  std::int64_t receive(std::int32_t round, std::int32_t member, std::int32_t k) const;
  // The same as Transfer values, not numbers.
  Transfer sent(std::int32_t round, std::int32_t member, std::int32_t k) const;
  Transfer arriving(std::int32_t round, std::int32_t member, std::int32_t k) const;

 private:
  bool tree() const { return algorithm_ == Algorithm::Tree; }
  bool direct() const { return algorithm_ == Algorithm::Direct; }
  // The number of rounds that fold (reduce_scatter, and the first half of all_reduce).
  std::int32_t folding_rounds() const;
  // Tree: the distance between the two members of the round's transfers, and the number of the
  // round's first transfer.
  std::int32_t reach(std::int32_t round) const;
  std::int64_t tree_first(std::int32_t round) const;
  Transfer tree_transfer(std::int64_t i) const;
  std::int32_t sender_to(std::int32_t round, std::int32_t member, std::int32_t k) const;
  std::int64_t chunk_elements(std::int32_t chunk) const;
  // (value mod n) for value in (-2n, 2n).
  static std::int32_t wrapped(std::int64_t value, std::int32_t n);
  void add_round(std::int32_t before, std::int32_t member, std::vector<std::int64_t>& out) const;

  CollectiveKind kind_;
  Algorithm algorithm_;
  std::int32_t n_, rounds_;
  std::int64_t elements_, size_;
  std::int64_t chunk_, larger_chunks_;  // all_reduce: smaller chunk, number that are one larger
};

// ---- what the engine calls for every transfer

inline std::int32_t Expansion::wrapped(std::int64_t value, std::int32_t n) {
  if (value < 0) value += n;
  if (value < 0) value += n;
  if (value >= n) value -= n;
  return static_cast<std::int32_t>(value);
}

inline std::int32_t Expansion::folding_rounds() const {
  if (kind_ == CollectiveKind::ReduceScatter) return rounds_;
  return kind_ == CollectiveKind::AllReduce ? rounds_ / 2 : 0;
}

inline Transfer Expansion::sent(std::int32_t round, std::int32_t source, std::int32_t k) const {
  if (tree()) return tree_transfer(send(round, source, k));
  bool ring = is_ring();
  std::int32_t distance = ring ? 1 : (direct() ? k : round) + 1;
  std::int32_t destination = wrapped(std::int64_t{source} + distance, n_);
  bool fold = round < folding_rounds();
  std::int32_t chunk = source;  // all_to_all, and the gathering half of direct: the sender's own
  if (ring)
    chunk = fold ? wrapped(std::int64_t{source} - round - 1, n_)
                 : wrapped(std::int64_t{source} - (round - folding_rounds()), n_);
  else if (fold)
    chunk = destination;
  return {source, destination, chunk, 1, fold};
}

inline std::int64_t Expansion::chunk_elements(std::int32_t chunk) const {
  if (kind_ != CollectiveKind::AllReduce) return elements_;
  return chunk_ + (chunk < larger_chunks_ ? 1 : 0);
}

inline std::int32_t Expansion::sends(std::int32_t round, std::int32_t member) const {
  if (!tree()) return direct() ? n_ - 1 : 1;
  std::int32_t distance = reach(round);
  bool child = (member & (2 * distance - 1)) == distance;
  bool parent = (member & (2 * distance - 1)) == 0 && member < n_ - distance;
  return (round < rounds_ / 2 ? child : parent) ? 1 : 0;
}

inline std::int32_t Expansion::receives(std::int32_t round, std::int32_t member) const {
  // A tree's mirrored round has the same pairs in the other direction.
  return tree() ? sends(rounds_ - 1 - round, member) : sends(round, member);
}

// Ring and direct: the member that sends `member` its k-th transfer of the round.
inline std::int32_t Expansion::sender_to(std::int32_t round, std::int32_t member,
                                         std::int32_t k) const {
  bool pairwise = !direct() && kind_ == CollectiveKind::AllToAll;
  return wrapped(std::int64_t{member} - (pairwise ? round : k) - 1, n_);
}

inline Transfer Expansion::arriving(std::int32_t round, std::int32_t member, std::int32_t k) const {
  if (tree()) return tree_transfer(receive(round, member, k));
  return sent(round, sender_to(round, member, k), k);
}

}  // namespace reshard
