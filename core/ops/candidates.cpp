// SPDX-License-Identifier: BSD-3-Clause
// Examines every choice of one row per axis.
#include "core/ops/candidates.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/torch/cost_model.h"

namespace reshard {
namespace {

// Limit on a call's candidates: searching this many takes about ten seconds.
constexpr std::int64_t kMaxCandidates = std::int64_t{1} << 26;

// A bit per kind of partial. One tensor can have only one kind, or sum and avg, which commute.
std::uint32_t partial_bit(const OpPlacement& placement) {
  switch (placement.kind) {
    case OpPlacement::Kind::Partial:
      return 1U << static_cast<int>(placement.op);
    case OpPlacement::Kind::NormPartial:
      return 1U << kReduceOpCount;
    case OpPlacement::Kind::MaskPartial:
      return 2U << kReduceOpCount;
    default:
      return 0;
  }
}

bool is_mixed(std::uint32_t bits) {
  constexpr std::uint32_t kSumAndAvg =
      1U << static_cast<int>(ReduceOp::Sum) | 1U << static_cast<int>(ReduceOp::Avg);
  return (bits & (bits - 1)) != 0 && bits != kSumAndAvg;
}

// ---- rows with a placement for every mark

// The order is ours: PyTorch keeps the ways of cutting in a set.
std::vector<OpPlacement> shard_kinds(const std::vector<const TensorSpec*>& inputs,
                                     bool cuts_plainly) {
  std::vector<OpPlacement> out;
  if (cuts_plainly) out.push_back(OpPlacement::shard(0));
  for (const TensorSpec* input : inputs)
    for (OpPlacement placement : input->placements) {
      if (!placement.is_shard_like()) continue;
      placement.dim = 0;
      if (std::find(out.begin(), out.end(), placement) == out.end()) out.push_back(placement);
    }
  std::stable_sort(out.begin(), out.end(), [](const OpPlacement& a, const OpPlacement& b) {
    return a.kind < b.kind || (a.kind == b.kind && a.split_factor < b.split_factor);
  });
  return out;
}

using PlacedRow = std::vector<std::optional<OpPlacement>>;

std::optional<OpPlacement> placed(const Mark& mark, const OpPlacement* kind, const OpSite& site) {
  switch (mark.kind) {
    case Mark::Kind::Absent:
      return std::nullopt;
    case Mark::Kind::Replicate:
      return OpPlacement::replicate();
    case Mark::Kind::Shard: {
      OpPlacement out = *kind;
      out.dim = mark.dim;
      return out;
    }
    case Mark::Kind::PlainShard:
      return OpPlacement::shard(mark.dim);
    case Mark::Kind::Partial:
      return OpPlacement::partial(mark.op);
    case Mark::Kind::Norm:
      return OpPlacement::norm_partial(mark.norm, mark.norm_is_number);
    case Mark::Kind::Mask:
      break;
  }
  return OpPlacement::mask_partial(site.shape(0), mark.dim, site.shape(1).size());
}

// A row that cuts becomes one row for every way in which inputs are cut.
std::vector<PlacedRow> place_rows(const OpSite& site, const Rows& rows,
                                  const std::vector<const TensorSpec*>& inputs, bool cuts_plainly) {
  std::vector<OpPlacement> kinds = shard_kinds(inputs, cuts_plainly);
  std::vector<PlacedRow> out;
  auto place = [&](const Row& row, const OpPlacement* kind) {
    PlacedRow& placed_row = out.emplace_back();
    placed_row.reserve(row.size());
    for (const Mark& mark : row) placed_row.push_back(placed(mark, kind, site));
  };
  for (const Row& row : rows) {
    bool cuts = std::any_of(row.begin(), row.end(),
                            [](const Mark& mark) { return mark.kind == Mark::Kind::Shard; });
    if (!cuts) place(row, nullptr);
    for (const OpPlacement& kind : kinds)
      if (cuts) place(row, &kind);
  }
  return out;
}

// ---- the search

// A tensor under all candidates. It has few different placements per axis, so few in all, and each
// is examined once.
class Tensor {
 public:
  Tensor(const std::vector<PlacedRow>& rows, std::size_t at, std::size_t axes) {
    for (const PlacedRow& row : rows) {
      OpPlacement placement = row[at].value_or(OpPlacement::replicate());
      auto found = std::find(different_.begin(), different_.end(), placement);
      by_row_.push_back(to_index(found - different_.begin()));
      if (found == different_.end()) different_.push_back(placement);
    }
    std::size_t count = 1;
    for (std::size_t axis = 0; axis < axes; ++axis) count *= different_.size();
    seen_.resize(count);
  }

  std::size_t number(const std::vector<std::size_t>& rows) const {
    std::size_t out = 0;
    for (std::size_t row : rows) out = out * different_.size() + by_row_[row];
    return out;
  }
  OpPlacements placements(const std::vector<std::size_t>& rows) const {
    OpPlacements out;
    out.reserve(rows.size());
    for (std::size_t row : rows) out.push_back(different_[by_row_[row]]);
    return out;
  }

  struct Seen {
    bool known = false, can = false, same = false;
    double cost_us = 0;
  };
  Seen& at(std::size_t number) { return seen_[number]; }

 private:
  std::vector<OpPlacement> different_;
  std::vector<std::size_t> by_row_;
  std::vector<Seen> seen_;
};

class Search {
 public:
  Search(const OpSite& site, const std::vector<const TensorSpec*>& inputs,
         std::vector<PlacedRow> rows, std::span<const std::int32_t> sizes, const MoveCost& cost)
      : site_(site), inputs_(inputs), rows_(std::move(rows)), sizes_(sizes), cost_(cost) {
    outputs_ = site.outputs.size();
    for (std::size_t at = 0; at < outputs_ + inputs_.size(); ++at)
      tensors_.emplace_back(rows_, at, sizes_.size());
    double count = 1;
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis)
      count *= static_cast<double>(rows_.size());
    if (count > static_cast<double>(kMaxCandidates))
      throw NotCovered(fmt::format("{}: more than {} candidates on {} axes", site.op.name,
                                   kMaxCandidates, sizes_.size()));
  }

  Decision run(const Choosing& choosing) {
    std::vector<std::size_t> candidate(sizes_.size(), 0);
    do {
      look_at(candidate, choosing);
    } while (next(candidate));
    if (count_ == 0) refuse();
    return result();
  }

 private:
  struct Best {
    std::vector<std::size_t> rows;
    double cost_us = kInfiniteCost;
    std::size_t moved = 0;
    bool set() const { return !rows.empty(); }
  };

  // The last axis varies fastest.
  bool next(std::vector<std::size_t>& candidate) const {
    for (std::size_t axis = candidate.size(); axis-- > 0;) {
      if (++candidate[axis] < rows_.size()) return true;
      candidate[axis] = 0;
    }
    return false;
  }

  Tensor& input(std::size_t i) { return tensors_[outputs_ + i]; }

  const Tensor::Seen& seen(std::size_t i, const std::vector<std::size_t>& candidate) {
    Tensor& tensor = input(i);
    Tensor::Seen& out = tensor.at(tensor.number(candidate));
    if (out.known) return out;
    const TensorSpec& from = *inputs_[i];
    OpPlacements to = tensor.placements(candidate);
    out.known = true;
    out.same = to == from.placements;
    std::uint32_t bits = 0;
    for (const OpPlacement& placement : to) bits |= partial_bit(placement);
    out.can = !is_mixed(bits) &&
              ((site_.op.rule->keeps_uneven && out.same) || can_lie(from.meta.shape, to, sizes_));
    if (out.can) out.cost_us = cost_(from, to);
    return out;
  }

  bool mixes_outputs(const std::vector<std::size_t>& candidate) const {
    for (std::size_t at = 0; at < outputs_; ++at) {
      std::uint32_t bits = 0;
      for (std::size_t row : candidate)
        if (rows_[row][at]) bits |= partial_bit(*rows_[row][at]);
      if (is_mixed(bits)) return true;
    }
    return false;
  }

  // An in-place operator's tensor must stay and be the output; so must tensors given as out=.
  bool is_written_as_it_lies(const std::vector<std::size_t>& candidate) {
    auto lies = [&](std::size_t output, const TensorSpec& as) {
      for (std::size_t axis = 0; axis < candidate.size(); ++axis)
        if (rows_[candidate[axis]][output] != as.placements[axis]) return false;
      return true;
    };
    if (site_.op.keeps_first && !inputs_.empty()) {
      if (!seen(0, candidate).same) return false;
      if (outputs_ > 0 && !lies(0, *inputs_[0])) return false;
    }
    if (!site_.op.writes_out) return true;
    for (std::size_t at = 0; at < outputs_; ++at)
      if (!lies(at, *inputs_[inputs_.size() - outputs_ + at])) return false;
    return true;
  }

  bool is_allowed(const std::vector<std::size_t>& candidate, const Choosing& choosing) {
    const Rule& rule = *site_.op.rule;
    bool must_be_right = rule.is_right && !choosing.as_torch;
    if (!rule.allows && !must_be_right) return true;
    std::vector<OpPlacements> to;
    std::vector<const OpPlacements*> pointers;
    for (std::size_t i = 0; i < inputs_.size(); ++i) to.push_back(input(i).placements(candidate));
    for (const OpPlacements& placements : to) pointers.push_back(&placements);
    Placing placing{site_, sizes_, inputs_, pointers};
    return (!rule.allows || rule.allows(placing)) && (!must_be_right || rule.is_right(placing));
  }

  bool is_better(double cost, std::size_t moved, Ties ties) const {
    if (!best_.set() || cost < best_.cost_us) return true;
    if (cost > best_.cost_us) return false;
    if (ties == Ties::Fewest) return moved < best_.moved;
    return ties == Ties::Torch && cost == 0 && moved == 0;
  }

  void look_at(const std::vector<std::size_t>& candidate, const Choosing& choosing) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (!seen(i, candidate).can) return;
    for (std::size_t i = 0; i < choosing.held.size(); ++i)
      if (choosing.held[i] && input(i).placements(candidate) != *choosing.held[i]) return;
    if (mixes_outputs(candidate)) return;
    if (!is_written_as_it_lies(candidate)) {
      blocked_ = true;
      return;
    }
    if (!is_allowed(candidate, choosing)) return;
    ++count_;
    double cost = 0;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor::Seen& tensor = seen(i, candidate);
      cost += tensor.cost_us;
      moved += tensor.same ? 0 : 1;
    }
    costs_.push_back(cost);
    if (choosing.list_all) all_.push_back({inputs_of(candidate), outputs_of(candidate), cost});
    if (is_better(cost, moved, choosing.ties)) {
      if (best_.set()) second_ = std::move(best_);
      best_ = {candidate, cost, moved};
    } else if (!second_.set() || cost < second_.cost_us) {
      second_ = {candidate, cost, moved};
    }
  }

  using Placed = std::vector<std::optional<OpPlacements>>;

  Placed inputs_of(const std::vector<std::size_t>& candidate) {
    Placed out;
    for (std::size_t i = 0; i < inputs_.size(); ++i) out.push_back(input(i).placements(candidate));
    return out;
  }

  Placed outputs_of(const std::vector<std::size_t>& candidate) const {
    Placed out;
    for (std::size_t at = 0; at < outputs_; ++at)
      out.push_back(site_.outputs[at] ? std::optional(tensors_[at].placements(candidate))
                                      : std::nullopt);
    return out;
  }

  Decision result() {
    Decision out;
    out.wanted = inputs_of(best_.rows);
    out.cost_us = best_.cost_us;
    out.candidates = count_;
    out.ties = std::count(costs_.begin(), costs_.end(), best_.cost_us);
    if (second_.set()) {
      out.runner_up = inputs_of(second_.rows);
      out.runner_up_us = second_.cost_us;
    }
    Placed outputs = outputs_of(best_.rows);
    for (std::size_t at = 0; at < outputs_; ++at)
      out.outputs.push_back(
          outputs[at] ? std::optional(TensorSpec{*site_.outputs[at], *outputs[at]}) : std::nullopt);
    out.all = std::move(all_);
    return out;
  }

  [[noreturn]] void refuse() const {
    if (blocked_ && site_.op.keeps_first)
      throw InputError(
          fmt::format("{}: in-place operations that require placement changes are not supported: "
                      "no row keeps the input's {}; the out-of-place form redistributes it",
                      site_.op.name, text(inputs_[0]->placements)));
    std::string specs;
    for (const TensorSpec* input : inputs_)
      specs += fmt::format("{}{}", specs.empty() ? "" : ", ", text(*input));
    throw InputError(fmt::format("{}: no valid sharding strategy for {}", site_.op.name, specs));
  }

  const OpSite& site_;
  const std::vector<const TensorSpec*>& inputs_;
  std::vector<PlacedRow> rows_;
  std::span<const std::int32_t> sizes_;
  const MoveCost& cost_;
  std::size_t outputs_;
  std::vector<Tensor> tensors_;
  std::vector<double> costs_;
  std::vector<Candidate> all_;
  std::int64_t count_ = 0;
  bool blocked_ = false;
  Best best_, second_;
};

// Adds a row in which nothing is cut or partial, unless there is one. Outputs that are not produced
// stay absent.
void add_whole_row(const OpSite& site, std::size_t inputs, Rows& rows) {
  for (const Row& row : rows)
    if (std::all_of(row.begin(), row.end(), [](const Mark& mark) {
          return mark.kind == Mark::Kind::Replicate || mark.kind == Mark::Kind::Absent;
        }))
      return;
  Row whole;
  for (const std::optional<TensorMeta>& output : site.outputs)
    whole.push_back(output ? Mark::replicate() : Mark::absent());
  whole.insert(whole.end(), inputs, Mark::replicate());
  rows.insert(rows.begin(), std::move(whole));
}

}  // namespace

bool can_lie(const Shape& shape, const OpPlacements& placements,
             std::span<const std::int32_t> sizes) {
  DimVector parts(kMaxDims, 1);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const OpPlacement& placement = placements[axis];
    if (!placement.is_shard_like()) continue;
    if (placement.dim >= shape.size()) return false;
    std::int64_t& count = parts[placement.dim];
    count *= sizes[axis];
    if (shape[placement.dim] < count * placement.split_factor) return false;
  }
  return true;
}

Decision choose(const OpSite& site, const std::vector<const TensorSpec*>& inputs, const Rows& rows,
                std::span<const std::int32_t> sizes, const MoveCost& cost,
                const Choosing& choosing) {
  auto expect = [&](std::size_t tensors) {
    if (inputs.size() != tensors)
      throw InputError(
          fmt::format("{}: expected {} tensors, found {}", site.op.name, tensors, inputs.size()));
  };
  expect(site.inputs().size() + (site.op.writes_out ? site.outputs.size() : 0));
  Rows all = rows;
  if (site.op.writes_out)
    for (Row& row : all)
      row.insert(row.end(), row.begin(),
                 row.begin() + static_cast<std::ptrdiff_t>(site.outputs.size()));
  add_whole_row(site, inputs.size(), all);
  for (const Row& row : all) expect(row.size() - site.outputs.size());
  return Search(site, inputs, place_rows(site, all, inputs, choosing.cuts_plainly), sizes, cost)
      .run(choosing);
}

}  // namespace reshard
