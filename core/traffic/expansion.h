// SPDX-License-Identifier: BSD-3-Clause
// A collective's expansion: which contiguous parts go between which members, and what waits for
// what. The engine times it and byte counts come from it; the meaning (plan.h) alone says what the
// result is.
//
// Buffers are seen as `n` consecutive chunks. Chunk sizes: all_gather, reduce_scatter, all_to_all n
// equal blocks; all_reduce the count cut into n by floor and ceiling (the first count mod n chunks
// are one element larger). Transfers of zero bytes are listed but move nothing.
//
//   ring      all_gather: n-1 rounds, member i sends to i+1 the chunk it got last. reduce_scatter:
//             the same with folding, member i ends with chunk i. all_reduce: reduce_scatter, then
//             all_gather. all_to_all: round k, member i sends to i+k+1 (pairwise).
//   direct    every pair at once: all_gather, all_to_all, reduce_scatter. all_reduce:
//             reduce_scatter, then all_gather.
//   tree      all_reduce only: binomial reduction to member 0, then binomial broadcast, whole
//             buffer.
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
  // Consecutive chunks of the *result's* numbering (all_to_all: the chunk that `destination` gets
  // from `source` is numbered `source`).
  std::int32_t first_chunk, chunks;
  bool fold;  // the receiver folds what arrives into what it has; else it stores it
};

// Transfers are numbered round by round, so that every one comes after those it waits for. Closed
// form: nothing is stored per transfer.
//
// A transfer belongs to one round, the same for both its members. A member takes part in a round
// when all its own transfers of earlier rounds are complete; in a round it may send and receive
// several (direct), one each (ring) or one or none in all (tree).
class Expansion {
 public:
  // n >= 2; `elements` is the collective's count: per-member input of all_gather, output of
  // reduce_scatter, buffer of all_reduce, block of all_to_all. Throws InputError when a member
  // would receive more than 2^62 elements.
  Expansion(CollectiveKind kind, Algorithm algorithm, std::int32_t n, std::int64_t elements);

  std::int32_t members() const { return n_; }
  // One transfer a round from every member to the one behind it.
  bool is_ring() const {
    return algorithm_ == Algorithm::Ring && kind_ != CollectiveKind::AllToAll;
  }
  std::int64_t size() const { return size_; }
  // Every round is like the first: the same bytes between the same members.
  bool rounds_alike() const;
  // Chunks 0 .. this - 1 are one element larger than the others.
  std::int32_t larger_chunks() const {
    return kind_ == CollectiveKind::AllReduce ? static_cast<std::int32_t>(larger_chunks_) : 0;
  }
  Transfer transfer(std::int64_t i) const;
  // Carried by transfer i.
  std::int64_t elements(std::int64_t i) const { return elements(transfer(i)); }
  std::int64_t elements(const Transfer& transfer) const {
    return tree() ? elements_ : chunk_elements(transfer.first_chunk);
  }
  // Transfers that must be complete before transfer i starts: those that bring what it sends, and
  // the sender's and receiver's previous round. Appended to `out`, ascending, each once.
  void waits_for(std::int64_t i, std::vector<std::int64_t>& out) const;
  // Elements that member m receives in all.
  std::int64_t received(std::int32_t member) const;

  // The rounds, seen from one member: how many transfers it has in a round, and which the k-th is.
  std::int32_t rounds() const { return rounds_; }
  std::int32_t round_of(std::int64_t i) const;
  std::int32_t sends(std::int32_t round, std::int32_t member) const;
  std::int32_t receives(std::int32_t round, std::int32_t member) const;
  std::int64_t send(std::int32_t round, std::int32_t member, std::int32_t k) const;
  std::int64_t receive(std::int32_t round, std::int32_t member, std::int32_t k) const;
  // The same as transfers, without their numbers.
  Transfer sent(std::int32_t round, std::int32_t member, std::int32_t k) const;
  Transfer arriving(std::int32_t round, std::int32_t member, std::int32_t k) const;

 private:
  bool tree() const { return algorithm_ == Algorithm::Tree; }
  bool direct() const { return algorithm_ == Algorithm::Direct; }
  // How many rounds reduce (reduce_scatter, and the first half of all_reduce).
  std::int32_t folding_rounds() const;
  // Tree: the distance that the round's transfers span, and the number of the round's first
  // transfer.
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
  std::int64_t chunk_, larger_chunks_;  // of all_reduce, worked out once
};

// ---- what the engine asks per transfer

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
  // The mirrored round of a tree has the same pairs the other way round.
  return tree() ? sends(rounds_ - 1 - round, member) : sends(round, member);
}

// Ring and direct: who sends the member its k-th transfer of the round.
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
