// SPDX-License-Identifier: BSD-3-Clause
// Tracks where the values of copied temporaries came from, and reads them from there.
#include "core/schedule/forwarding.h"

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

// Aliases are searched linearly.
constexpr std::int64_t kMaxForwarded = std::int64_t{1} << 16;

DimVector plus(const DimVector& a, const DimVector& b) {
  DimVector out = a;
  for (int d = 0; d < a.size(); ++d) out[d] += b[d];
  return out;
}

DimVector minus(const DimVector& a, const DimVector& b) {
  DimVector out = a;
  for (int d = 0; d < a.size(); ++d) out[d] -= b[d];
  return out;
}

}  // namespace

// Finds the temporaries that hold nothing but copies.
class Forwarding::Survey : public Operations {
 public:
  explicit Survey(Forwarding& of) : of_(of) {}
  void copy(const Place&, const Place& to, const DimVector&) override {
    copies_ += of_.forwarded_[of_.at(to)];
  }
  void fill(const Place& to, const DimVector&) override { of_.forwarded_[of_.at(to)] = false; }
  void fold(ReduceOp, std::int64_t, std::span<const Place>, const Place& to,
            const DimVector&) override {
    of_.forwarded_[of_.at(to)] = false;
  }
  std::int64_t copies() const { return copies_; }

 private:
  Forwarding& of_;
  std::int64_t copies_ = 0;
};

class Forwarding::LifeCount : public Operations {
 public:
  LifeCount(const Forwarding& of, Lives& lives) : of_(of), lives_(lives) {}
  void begin(std::int32_t step) { step_ = step; }
  void copy(const Place& from, const Place& to, const DimVector&) override {
    read(from);
    write(to);
  }
  void fill(const Place& to, const DimVector&) override { write(to); }
  void fold(ReduceOp, std::int64_t, std::span<const Place> operands, const Place& to,
            const DimVector&) override {
    for (const Place& operand : operands) read(operand);
    write(to);
  }

 private:
  void read(const Place& place) { lives_.end[of_.at(place)] = step_; }
  void write(const Place& place) {
    std::int32_t& begin = lives_.begin[of_.at(place)];
    if (begin < 0) begin = step_;
    lives_.end[of_.at(place)] = step_;
  }

  const Forwarding& of_;
  Lives& lives_;
  std::int32_t step_ = 0;
};

Forwarding::Forwarding(const Plan& plan, bool forwards) : plan_(plan) {
  std::size_t ends = 2 * plan.tensors.size();
  if (plan.buffers.size() == ends || !forwards) {
    lives_ = lives_of(plan);
    return;
  }
  std::size_t places = plan.buffers.size() * plan.slot_count();
  forwarded_.assign(places, true);
  std::fill(forwarded_.begin(),
            forwarded_.begin() + static_cast<std::ptrdiff_t>(ends * plan.slot_count()), false);
  Survey survey(*this);
  for (const Step& step : plan.steps) lower(plan, step, survey);
  if (survey.copies() > kMaxForwarded) forwarded_.assign(places, false);
  aliases_.resize(places);

  lives_ = {std::vector<std::int32_t>(places, -1), std::vector<std::int32_t>(places, -1)};
  LifeCount count(*this, lives_);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    count.begin(static_cast<std::int32_t>(s));
    run(StepId{static_cast<std::int32_t>(s)}, count);
  }
}

std::size_t Forwarding::at(const Place& place) const {
  auto slot = to_index(place.slot);
  RESHARD_CHECK(to_index(place.buffer) < plan_.buffers.size() && slot < plan_.slot_count(),
                fmt::format("slot {} has no buffer {}", place.slot, to_index(place.buffer)));
  return to_index(place.buffer) * plan_.slot_count() + slot;
}

void Forwarding::run(StepId step, Operations& out) {
  const Step& at = plan_.steps[step];
  if (aliases_.empty()) return lower(plan_, at, out);
  if (step == StepId{0})
    for (std::vector<Alias>& list : aliases_) list.clear();
  out_ = &out;
  lower(plan_, at, *this);
}

std::vector<Forwarding::Alias> Forwarding::origins_of(const Place& place,
                                                      const DimVector& extents) const {
  Box whole = box_of(extents);
  if (!forwarded_[at(place)]) return {{whole, place}};
  std::vector<Alias> out;
  std::int64_t covered = 0;
  for (const Alias& alias : aliases_[at(place)]) {
    Box part = intersect(shifted(alias.box, minus(DimVector(extents.size()), place.lo)), whole);
    if (part.empty()) continue;
    Place origin = alias.origin;
    origin.lo = plus(origin.lo, minus(plus(part.lo, place.lo), alias.box.lo));
    covered += part.volume();
    out.push_back({part, origin});
  }
  RESHARD_CHECK(covered == whole.volume(),
                fmt::format("buffer {} of slot {} is read but was not written",
                            to_index(place.buffer), place.slot));
  return out;
}

void Forwarding::copy(const Place& from, const Place& to, const DimVector& extents) {
  for (const Alias& part : origins_of(from, extents)) {
    Place target{to.slot, to.buffer, plus(to.lo, part.box.lo)};
    if (forwarded_[at(to)])
      aliases_[at(to)].push_back({box_at(target.lo, part.box.extents()), part.origin});
    else
      out_->copy(part.origin, target, part.box.extents());
  }
}

// Splits at the boundaries of the first operand that is in several places, until each is in one.
void Forwarding::fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
                      const Place& to, const DimVector& extents) {
  std::vector<Place> origins;
  for (const Place& operand : operands) {
    std::vector<Alias> parts = origins_of(operand, extents);
    if (parts.size() == 1) {
      origins.push_back(parts[0].origin);
      continue;
    }
    for (const Alias& part : parts) {
      std::vector<Place> within(operands.begin(), operands.end());
      for (Place& place : within) place.lo = plus(place.lo, part.box.lo);
      fold(op, divisor, within, {to.slot, to.buffer, plus(to.lo, part.box.lo)}, part.box.extents());
    }
    return;
  }
  out_->fold(op, divisor, origins, to, extents);
}

}  // namespace reshard
