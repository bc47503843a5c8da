// SPDX-License-Identifier: BSD-3-Clause
#include "core/fitting/waves.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/plan/series.h"

namespace reshard {
namespace {

// A message is cut into pieces of about this share of what its ranks send or receive in a wave.
constexpr std::int64_t kPiecesPerWave = 8;

// Moves of a step with their bytes; a range of it is a string of bytes.
class MoveString {
 public:
  MoveString(const Plan& plan, const MoveList& list, std::vector<std::uint32_t> moves)
      : plan_(plan), list_(list), moves_(std::move(moves)) {
    for (std::uint32_t i : moves_) ends_.push_back(ends_.back() + bytes_of(i));
  }
  std::int64_t bytes() const { return ends_.back(); }

  // Appends the moves of bytes [lo, hi) x bytes() / all to `out`. A move is cut along one dim, that
  // of a series into whole tensors and parts of one.
  // Consecutive ranges hold every element once.
  void cut(Int128 lo, Int128 hi, Int128 all, MoveList& out) const {
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      Int128 begin = Int128{ends_[i]} * all, end = Int128{ends_[i + 1]} * all;
      if (end <= lo * bytes()) continue;
      if (begin >= hi * bytes()) break;
      auto position = [&](Int128 at) { return std::clamp(at * bytes(), begin, end) - begin; };
      for_each_share(
          plan_.boxes_of(list_, moves_[i]), position(lo), position(hi), end - begin,
          [&](std::int64_t first, std::int64_t last, Int128 from, Int128 to, Int128 of) {
            Move move = list_[moves_[i]];
            if (std::optional<int> series = plan_.series_dim(move.source))
              narrow(move, *series, first, last);
            int dim = cut_dim(move.extents);
            auto index = [&](Int128 at) {
              return static_cast<std::int64_t>(at / all * move.extents[dim] / (of / all));
            };
            if (from > 0 || to < of) narrow(move, dim, index(from), index(to));
            if (move.extents[dim] > 0) out.push_back(move);
          });
    }
  }

 private:
  std::int64_t bytes_of(std::uint32_t i) const {
    return list_.elements(i) * plan_.element_bytes(list_.source(i));
  }
  static void narrow(Move& move, int dim, std::int64_t first, std::int64_t last) {
    move.source_lo[dim] += first;
    move.destination_lo[dim] += first;
    move.extents[dim] = last - first;
  }
  // The outermost dim with many indices, so that what was contiguous stays so; else the longest.
  static int cut_dim(const DimVector& extents) {
    constexpr std::int64_t kMany = 16;
    int longest = 0;
    for (int d = 0; d < extents.size(); ++d) {
      if (extents[d] >= kMany) return d;
      if (extents[d] > extents[longest]) longest = d;
    }
    return longest;
  }

  const Plan& plan_;
  const MoveList& list_;
  std::vector<std::uint32_t> moves_;
  std::vector<std::int64_t> ends_{0};
};

// The moves of a range, by tensor.
std::vector<std::vector<std::uint32_t>> by_tensor(const Plan& plan, const MoveList& list,
                                                  MoveRange range) {
  std::vector<std::uint32_t> moves(range.count);
  std::iota(moves.begin(), moves.end(), range.first);
  auto tensor = [&](std::uint32_t i) { return plan.buffer(list.source(i)).tensor(); };
  std::stable_sort(moves.begin(), moves.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return tensor(a) < tensor(b); });
  std::vector<std::vector<std::uint32_t>> out;
  for (std::uint32_t i : moves) {
    if (out.empty() || tensor(out.back().front()) != tensor(i)) out.emplace_back();
    out.back().push_back(i);
  }
  return out;
}

// Which part of what a rank sends and copies belongs to each tensor, in their order.
class Turns {
 public:
  explicit Turns(const Plan& plan)
      : tensors_(plan.tensors.size()), ends_(plan.slot_count() * (tensors_ + 1), 0) {
    for (const Step& step : plan.steps) {
      if (const auto* copy = copy_of(step))
        for (const CopyStep::SlotMoves& part : copy->parts)
          add(plan, part.slot, copy->moves, part.moves);
      if (const auto* exchange = exchange_of(step))
        for (const ExchangeStep::Message& message : exchange->messages)
          add(plan, message.source, exchange->moves, message.moves);
    }
    for (std::size_t slot = 0; slot < plan.slot_count(); ++slot)
      for (std::size_t t = 0; t < tensors_; ++t) ends_[at(slot, t + 1)] += ends_[at(slot, t)];
  }
  std::int64_t begin(Slot slot, TensorId tensor) const {
    return ends_[at(to_index(slot), to_index(tensor))];
  }
  std::int64_t end(Slot slot, TensorId tensor) const {
    return ends_[at(to_index(slot), to_index(tensor) + 1)];
  }
  std::int64_t all(Slot slot) const { return ends_[at(to_index(slot), tensors_)]; }

 private:
  std::size_t at(std::size_t slot, std::size_t tensor) const {
    return slot * (tensors_ + 1) + tensor;
  }
  void add(const Plan& plan, Slot slot, const MoveList& list, MoveRange range) {
    for (std::size_t i = range.first; i < std::size_t{range.first} + range.count; ++i)
      ends_[at(to_index(slot), to_index(plan.buffer(list.source(i)).tensor()) + 1)] +=
          list.elements(i) * plan.element_bytes(list.source(i));
  }

  std::size_t tensors_;
  std::vector<std::int64_t> ends_;
};

// Which waves the messages of a step go in. Large ones are cut into a piece for every wave; others
// into fewer, the largest first, and each piece goes where its sender and its receiver have least
// to do, on links between nodes or within them.
class Shares {
 public:
  Shares(const Plan& plan, const ExchangeStep& step, const std::vector<MoveString>& strings,
         std::int32_t waves, const NodeOf& node_of)
      : step_(step), strings_(strings), waves_(waves) {
    for (std::vector<std::int64_t>* totals : {&sent_, &received_})
      totals->assign(plan.slot_count(), 0);
    for (std::vector<std::int64_t>& loads : loads_)
      loads.assign(plan.slot_count() * to_index(waves), 0);
    for (std::size_t m = 0; m < strings.size(); ++m) {
      const ExchangeStep::Message& message = step.messages[m];
      sent_[to_index(message.source)] += strings[m].bytes();
      received_[to_index(message.destination)] += strings[m].bytes();
      between_nodes_.push_back(node_of && node_of(plan.rank_of(message.source)) !=
                                              node_of(plan.rank_of(message.destination)));
    }
  }

  // The waves of each message's pieces, ascending.
  std::vector<std::vector<std::int32_t>> placed() {
    std::vector<std::size_t> order(strings_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return strings_[a].bytes() > strings_[b].bytes();
    });
    std::vector<std::vector<std::int32_t>> out(strings_.size());
    for (std::size_t m : order) {
      std::int32_t pieces = pieces_of(m);
      for (std::int64_t piece = 0; piece < pieces; ++piece)
        out[m].push_back(place(m, static_cast<std::int32_t>(piece * waves_ / pieces),
                               static_cast<std::int32_t>((piece + 1) * waves_ / pieces),
                               strings_[m].bytes() / pieces));
    }
    return out;
  }

 private:
  std::int32_t pieces_of(std::size_t m) const {
    Int128 most = std::max(sent_[to_index(step_.messages[m].source)],
                           received_[to_index(step_.messages[m].destination)]);
    return static_cast<std::int32_t>(std::clamp<Int128>(
        ceil_div(Int128{strings_[m].bytes()} * waves_ * kPiecesPerWave, most), 1, waves_));
  }

  // The best of waves [first, last) for a piece.
  std::int32_t place(std::size_t m, std::int32_t first, std::int32_t last, std::int64_t bytes) {
    std::size_t kind = between_nodes_[m] ? 2 : 0;
    auto load = [&](std::size_t side, Slot slot, std::int32_t wave) -> std::int64_t& {
      return loads_[kind + side][to_index(slot) * to_index(waves_) + to_index(wave)];
    };
    const ExchangeStep::Message& message = step_.messages[m];
    std::int32_t best = first;
    std::int64_t least = kMaxBytes;
    for (std::int32_t wave = first; wave < last; ++wave) {
      std::int64_t most =
          std::max(load(0, message.source, wave), load(1, message.destination, wave));
      if (most < least) best = wave, least = most;
    }
    load(0, message.source, best) += bytes;
    load(1, message.destination, best) += bytes;
    return best;
  }

  const ExchangeStep& step_;
  const std::vector<MoveString>& strings_;
  std::int32_t waves_;
  std::vector<std::int64_t> sent_, received_;  // by slot
  std::vector<bool> between_nodes_;            // by message
  // Sent and received within nodes, then between nodes: [slot * waves + wave].
  std::array<std::vector<std::int64_t>, 4> loads_;
};

class Waver {
 public:
  Waver(const Plan& plan, const IndexVector<StepId, std::int32_t>& waves, const NodeOf& node_of)
      : plan_(plan), waves_(waves), node_of_(node_of), out_(plan.tensors, plan.planner) {
    out_.buffers = plan.buffers;
    out_.frees_sources = plan.frees_sources;
    out_.stages = plan.stages;
  }

  Plan run() {
    std::size_t exchanges = 0;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      if (exchange_of(plan_.steps[s]) != nullptr) {
        ++exchanges;
        all_waves_ += waves_[id_of<StepId>(s)];
      }
    if (plan_.frees_sources) spread_copies();
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      auto id = id_of<StepId>(s);
      const Step& step = plan_.steps[s];
      if (const auto* exchange = exchange_of(step)) {
        auto parts = plan_.frees_sources && exchanges == 1 ? in_tensor_order(*exchange, waves_[id])
                                                           : in_shares(*exchange, waves_[id]);
        for (ExchangeStep& part : parts) {
          add_copies();
          if (!part.messages.empty()) out_.add_step(std::move(part), {}, step.axes);
        }
      } else if (!spread_[s]) {
        out_.add_step(step.body, {}, step.axes);
      }
    }
    run_in_turn(out_);
    return std::move(out_);
  }

 private:
  // Copies that no step waits for are made wave by wave.
  void spread_copies() {
    spread_.assign(plan_.steps.size(), false);
    if (all_waves_ <= 1) return;
    copies_.resize(to_index(all_waves_));
    for (CopyStep& copy : copies_) copy.moves = MoveList(plan_.dims());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      const auto* copy = copy_of(step);
      bool awaited = std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& other) {
        return std::binary_search(other.after.begin(), other.after.end(), id_of<StepId>(s));
      });
      if (copy == nullptr || awaited || !step.after.empty() || copies_taken_) continue;
      spread_[s] = copies_taken_ = true;
      for (const CopyStep::SlotMoves& part : copy->parts)
        cut_by_tensor(
            copy->moves, part.moves, part.slot, all_waves_, [&](std::int32_t wave) -> MoveList& {
              CopyStep& to = copies_[to_index(wave)];
              if (to.parts.empty() || to.parts.back().slot != part.slot)
                to.parts.push_back({part.slot, {static_cast<std::uint32_t>(to.moves.size()), 0}});
              return to.moves;
            });
    }
    for (CopyStep& copy : copies_) count_moves(copy.parts, copy.moves);
  }

  void add_copies() {
    if (next_copy_ < copies_.size()) {
      CopyStep& copy = copies_[next_copy_++];
      if (!copy.parts.empty()) out_.add_step(std::move(copy), {});
    }
  }

  // Parts follow each other in the list of moves; those without moves are dropped.
  template <class Part>
  static void count_moves(std::vector<Part>& parts, const MoveList& moves) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto next = i + 1 < parts.size() ? parts[i + 1].moves.first
                                       : static_cast<std::uint32_t>(moves.size());
      parts[i].moves.count = next - parts[i].moves.first;
    }
    std::erase_if(parts, [](const Part& part) { return part.moves.count == 0; });
  }

  // Every tensor of the range goes to the waves of its turn; to(wave) is the list of moves.
  template <class To>
  void cut_by_tensor(const MoveList& list, MoveRange range, Slot sender, std::int32_t waves,
                     To&& to) {
    for (std::vector<std::uint32_t>& moves : by_tensor(plan_, list, range)) {
      TensorId tensor = plan_.buffer(list.source(moves.front())).tensor();
      // In units of a wave over what the rank sends: the turn is [begin, end).
      Int128 all = turns_.all(sender), begin = Int128{turns_.begin(sender, tensor)} * waves,
             end = Int128{turns_.end(sender, tensor)} * waves;
      MoveString string(plan_, list, std::move(moves));
      for (Int128 wave = begin / all; wave * all < end; ++wave)
        string.cut(std::max(wave * all, begin) - begin, std::min((wave + 1) * all, end) - begin,
                   end - begin, to(static_cast<std::int32_t>(wave)));
    }
  }

  std::vector<ExchangeStep> in_tensor_order(const ExchangeStep& step, std::int32_t waves) {
    std::vector<ExchangeStep> out = empty_waves(waves);
    for (const ExchangeStep::Message& message : step.messages)
      cut_by_tensor(step.moves, message.moves, message.source, waves,
                    [&](std::int32_t wave) -> MoveList& {
                      ExchangeStep& to = out[to_index(wave)];
                      if (to.messages.empty() || to.messages.back().source != message.source ||
                          to.messages.back().destination != message.destination)
                        begin_message(to, message);
                      return to.moves;
                    });
    for (ExchangeStep& wave : out) count_moves(wave.messages, wave.moves);
    return out;
  }

  std::vector<ExchangeStep> in_shares(const ExchangeStep& step, std::int32_t waves) {
    std::vector<MoveString> strings;
    for (const ExchangeStep::Message& message : step.messages) {
      std::vector<std::uint32_t> moves(message.moves.count);
      std::iota(moves.begin(), moves.end(), message.moves.first);
      strings.emplace_back(plan_, step.moves, std::move(moves));
    }
    std::vector<ExchangeStep> out = empty_waves(waves);
    std::vector<std::vector<std::int32_t>> placed =
        Shares(plan_, step, strings, waves, node_of_).placed();
    for (std::size_t m = 0; m < strings.size(); ++m)
      for (std::size_t piece = 0; piece < placed[m].size(); ++piece) {
        ExchangeStep& to = out[to_index(placed[m][piece])];
        begin_message(to, step.messages[m]);
        strings[m].cut(static_cast<std::int64_t>(piece), static_cast<std::int64_t>(piece) + 1,
                       static_cast<std::int64_t>(placed[m].size()), to.moves);
      }
    for (ExchangeStep& wave : out) count_moves(wave.messages, wave.moves);
    return out;
  }

  std::vector<ExchangeStep> empty_waves(std::int32_t waves) const {
    std::vector<ExchangeStep> out(to_index(waves));
    for (ExchangeStep& wave : out) wave.moves = MoveList(plan_.dims());
    return out;
  }
  static void begin_message(ExchangeStep& step, const ExchangeStep::Message& like) {
    step.messages.push_back(
        {like.source, like.destination, {static_cast<std::uint32_t>(step.moves.size()), 0}});
  }

  const Plan& plan_;
  const IndexVector<StepId, std::int32_t>& waves_;
  const NodeOf& node_of_;
  Plan out_;
  Turns turns_{plan_};
  std::int32_t all_waves_ = 0;
  std::vector<bool> spread_ = std::vector<bool>(plan_.steps.size(), false);  // by step
  bool copies_taken_ = false;
  std::vector<CopyStep> copies_;  // by wave
  std::size_t next_copy_ = 0;
};

}  // namespace

void run_in_turn(Plan& plan) {
  std::vector<std::int32_t> last(plan.slot_count(), -1);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    Step& step = plan.steps[s];
    for (Slot slot : slots_of(step)) {
      std::int32_t& before = last[to_index(slot)];
      if (before >= 0) step.after.push_back(StepId{before});
      before = static_cast<std::int32_t>(s);
    }
    std::sort(step.after.begin(), step.after.end());
    step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
  }
}

std::int32_t most_waves(const Plan& plan) {
  constexpr std::int64_t kMostPieces = 1 << 20, kFewest = 16, kMost = 1024;
  auto slots = static_cast<std::int64_t>(plan.slot_count());
  return static_cast<std::int32_t>(
      std::clamp(kMostPieces / (kPiecesPerWave * slots), kFewest, kMost));
}

Plan in_waves(const Plan& plan, const IndexVector<StepId, std::int32_t>& waves,
              const NodeOf& node_of) {
  return Waver(plan, waves, node_of).run();
}

}  // namespace reshard
