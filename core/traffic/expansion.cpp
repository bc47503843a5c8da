// SPDX-License-Identifier: BSD-3-Clause
// Expansions in closed form.
//
// Ring and direct. A round has n transfers per "distance": number = round * n * distances + k * n +
// sender, where the sender's k-th transfer of the round goes to sender + distance. Ring has one
// transfer per member and round, to the next member (all_to_all: to sender + round + 1); direct has
// n-1, to sender + k + 1.
//
//   ring all_gather      round r: member i sends chunk i - r (first its own, then the one it
//                        received last)
//   ring reduce_scatter  round r: member i sends chunk i - r - 1 (so that the last fold of chunk c
//                        happens at member c, in round n-2)
//   ring all_reduce      the n-1 rounds of reduce_scatter, then those of all_gather
//
// Tree (binomial), D = 2^round:
//
//   reduction, D = 1, 2, 4, ..          odd multiples of D send to the multiple of 2D below them
//   broadcast, the rounds in reverse    that multiple of 2D sends back to the odd multiple of D
//
// A tree round has as many transfers as there are odd multiples of D below n: n-1 in all per
// direction.
#include "core/traffic/expansion.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {

namespace {

// Odd multiples of `reach` below n.
std::int64_t odd_multiples(std::int32_t n, std::int32_t reach) {
  return (std::int64_t{n} - reach + 2 * std::int64_t{reach} - 1) / (2 * std::int64_t{reach});
}

std::int32_t log2_ceil(std::int32_t n) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(n - 1)));
}

// The most that a member receives, as a multiple of `elements`.
std::int64_t receive_factor(CollectiveKind kind, Algorithm algorithm, std::int32_t n) {
  if (kind != CollectiveKind::AllReduce) return n;
  return algorithm == Algorithm::Tree ? log2_ceil(n) + 1 : 2;
}

}  // namespace

Algorithm default_algorithm(CollectiveKind kind) {
  return kind == CollectiveKind::AllToAll ? Algorithm::Direct : Algorithm::Ring;
}

bool has_algorithm(CollectiveKind kind, Algorithm algorithm) {
  return algorithm != Algorithm::Tree || kind == CollectiveKind::AllReduce;
}

Expansion::Expansion(CollectiveKind kind, Algorithm algorithm, std::int32_t n,
                     std::int64_t elements)
    : kind_(kind), algorithm_(algorithm), n_(n), rounds_(0), elements_(elements), size_(0) {
  RESHARD_CHECK(n >= 2 && n <= kMaxRanks, fmt::format("a group of {}", n));
  chunk_ = elements / n;
  larger_chunks_ = elements % n;
  RESHARD_CHECK(elements >= 0, fmt::format("{} elements", elements));
  RESHARD_CHECK(has_algorithm(kind, algorithm), fmt::format("no tree for {}", text(kind)));
  // n chunks of all_reduce, rounded up, hold less than `elements` + n.
  if (!checked_product(elements + (kind == CollectiveKind::AllReduce ? n : 0),
                       receive_factor(kind, algorithm, n)))
    throw InputError(std::string(text(kind)) + " of " + std::to_string(elements) +
                     " elements over " + std::to_string(n) +
                     " ranks: expected at most 2^62 received");
  std::int32_t halves = kind == CollectiveKind::AllReduce ? 2 : 1;
  if (tree()) {
    rounds_ = 2 * log2_ceil(n);
    size_ = 2 * (std::int64_t{n} - 1);
  } else {
    rounds_ = direct() ? halves : halves * (n - 1);
    size_ = std::int64_t{halves} * n * (n - 1);
  }
}

bool Expansion::equal_rounds() const {
  if (rounds_ == 1) return true;
  return is_ring() && (kind_ != CollectiveKind::AllReduce || larger_chunks_ == 0);
}

std::int32_t Expansion::reach(std::int32_t round) const {
  std::int32_t half = rounds_ / 2;
  return std::int32_t{1} << (round < half ? round : rounds_ - 1 - round);
}

std::int64_t Expansion::tree_first(std::int32_t round) const {
  std::int64_t first = 0;
  for (std::int32_t r = 0; r < round; ++r) first += odd_multiples(n_, reach(r));
  return first;
}

std::int32_t Expansion::round_of(std::int64_t i) const {
  if (!tree()) return static_cast<std::int32_t>(i / (direct() ? std::int64_t{n_} * (n_ - 1) : n_));
  std::int32_t round = 0;
  for (std::int64_t count = odd_multiples(n_, reach(0)); i >= count;
       count = odd_multiples(n_, reach(round))) {
    i -= count;
    ++round;
  }
  return round;
}

Transfer Expansion::tree_transfer(std::int64_t i) const {
  std::int32_t round = round_of(i), distance = reach(round);
  auto child = static_cast<std::int32_t>((2 * (i - tree_first(round)) + 1) * distance);
  bool folds = round < rounds_ / 2;
  return folds ? Transfer{child, child - distance, 0, n_, true}
               : Transfer{child - distance, child, 0, n_, false};
}

Transfer Expansion::transfer(std::int64_t i) const {
  if (tree()) return tree_transfer(i);
  auto line = static_cast<std::int32_t>(i / n_);  // round, and for direct its k
  auto source = static_cast<std::int32_t>(i - std::int64_t{line} * n_);
  return direct() ? sent(line / (n_ - 1), source, line % (n_ - 1)) : sent(line, source, 0);
}

std::int64_t Expansion::send(std::int32_t round, std::int32_t member, std::int32_t k) const {
  if (tree()) return tree_first(round) + member / (2 * reach(round));
  return (std::int64_t{round} * (direct() ? n_ - 1 : 1) + k) * n_ + member;
}

std::int64_t Expansion::receive(std::int32_t round, std::int32_t member, std::int32_t k) const {
  if (tree()) return tree_first(round) + member / (2 * reach(round));
  return send(round, sender_to(round, member, k), k);
}

void Expansion::add_round(std::int32_t before, std::int32_t member,
                          std::vector<std::int64_t>& out) const {
  for (std::int32_t round = before - 1; round >= 0; --round) {
    std::int32_t sent = sends(round, member), got = receives(round, member);
    for (std::int32_t k = 0; k < sent; ++k) out.push_back(send(round, member, k));
    for (std::int32_t k = 0; k < got; ++k) out.push_back(receive(round, member, k));
    if (sent + got > 0) return;
  }
}

void Expansion::waits_for(std::int64_t i, std::vector<std::int64_t>& out) const {
  auto first = static_cast<std::ptrdiff_t>(out.size());
  Transfer at = transfer(i);
  std::int32_t round = round_of(i);
  add_round(round, at.source, out);
  add_round(round, at.destination, out);
  std::sort(out.begin() + first, out.end());
  out.erase(std::unique(out.begin() + first, out.end()), out.end());
}

std::int64_t Expansion::received(std::int32_t member) const {
  if (kind_ != CollectiveKind::AllReduce) return elements_ * (n_ - 1);
  if (tree()) {
    std::int64_t count = 0;
    for (std::int32_t round = 0; round < rounds_; ++round) count += receives(round, member);
    return elements_ * count;
  }
  std::int64_t own = chunk_elements(member);
  std::int64_t gathered = elements_ - own;
  // The ring's folding half brings every chunk but the one that the member's predecessor ends with.
  std::int64_t folded =
      direct() ? own * (n_ - 1) : elements_ - chunk_elements(wrapped(std::int64_t{member} - 1, n_));
  return gathered + folded;
}

}  // namespace reshard
