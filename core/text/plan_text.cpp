// SPDX-License-Identifier: BSD-3-Clause
// Writes plans. plan_reader.cpp reads them; traces/plan-format.md shows the format.
#include "core/text/plan_text.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

using Out = fmt::memory_buffer;

template <class... Args>
void put(Out& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void put_box(Out& out, BufferId buffer, const DimVector& lo, const DimVector& extents) {
  put(out, "b{}[", static_cast<std::int32_t>(buffer));
  for (int d = 0; d < lo.size(); ++d)
    put(out, "{}{}:{}", d == 0 ? "" : ",", lo[d], lo[d] + extents[d]);
  put(out, "]");
}

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  std::string run() {
    put(out_, "reshard-plan 1\nplanner {}\n", plan_.planner);
    if (plan_.frees_sources) put(out_, "sources freed\n");
    for (const Request& tensor : plan_.tensors) {
      RESHARD_CHECK(tensor.tensors() == 1,
                    "a plan of series has no text, only that of the tensors");
      put(out_, "shape {}\ndtype {}\n", text(tensor.shape()), text(tensor.dtype()));
      layout("source", tensor.source());
      layout("destination", tensor.destination());
    }
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) stage(s);
    for (std::size_t b = 2 * plan_.tensors.size(); b < plan_.buffers.size(); ++b) temporary(b);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) step(s);
    put(out_, "end\n");
    return fmt::to_string(out_);
  }

 private:
  int rank(Slot slot) const { return to_int(plan_.rank_of(slot)); }

  void layout(const char* side, const Layout& layout) {
    put(out_, "{} mesh {} ranks {} placements {}\n", side, shape_text(layout.mesh()),
        ranks_text(layout.mesh().ranks()), layout.placements_text());
  }

  void stage(std::size_t s) {
    const Stage& stage = plan_.stages[s];
    put(out_, "stage {} tensors", s);
    for (std::size_t i = 0, last = 0; i < stage.tensors.size(); i = last + 1) {
      auto number = [&](std::size_t at) { return static_cast<std::int32_t>(stage.tensors[at]); };
      for (last = i; last + 1 < stage.tensors.size() && number(last + 1) == number(last) + 1;)
        ++last;
      put(out_, "{}{}", i == 0 ? " " : ",", number(i));
      if (last > i) put(out_, "-{}", number(last));
    }
    for (std::size_t i = 0; i < stage.after.size(); ++i)
      put(out_, "{}{}", i == 0 ? " after " : ",", stage.after[i]);
    put(out_, "\n");
  }

  // Consecutive ranks with the same shape share a line.
  void temporary(std::size_t b) {
    const Buffer& buffer = plan_.buffers[b];
    put(out_, "temporary {}", b);
    if (auto tensor = static_cast<std::int32_t>(buffer.tensor()); tensor > 0)
      put(out_, " tensor {}", tensor);
    put(out_, "\n");
    auto slots = static_cast<Slot>(plan_.slot_count());
    for (Slot first = 0; first < slots;) {
      if (!buffer.exists(first)) {
        ++first;
        continue;
      }
      Slot last = first;
      while (last + 1 < slots && buffer.exists(last + 1) && rank(last + 1) == rank(last) + 1 &&
             buffer.shape(last + 1) == buffer.shape(first))
        ++last;
      put(out_, "  {}", rank(first));
      if (last > first) put(out_, "-{}", rank(last));
      put(out_, ": {}\n", text(buffer.shape(first)));
      first = last + 1;
    }
  }

  void step(std::size_t s) {
    const Step& step = plan_.steps[s];
    put(out_, "step {} {}", s, kind_text(step));
    std::visit([&](const auto& body) { head(body); }, step.body);
    for (std::size_t i = 0; i < step.after.size(); ++i)
      put(out_, "{}{}", i == 0 ? " after " : ",", static_cast<std::int32_t>(step.after[i]));
    for (std::size_t i = 0; i < step.axes.size(); ++i)
      put(out_, "{}{}", i == 0 ? " axes " : ",", step.axes[i]);
    if (step.stream != 0) put(out_, " stream {}", step.stream);
    put(out_, "\n");
    std::visit([&](const auto& body) { lines(body); }, step.body);
  }

  void head(const CopyStep&) {}
  void head(const FillStep&) {}
  void head(const ExchangeStep&) {}
  void head(const ReduceStep& step) { put(out_, " {} divisor {}", text(step.op), step.divisor); }
  void head(const CollectiveStep& step) {
    put(out_, " b{} dim {} -> b{} dim {}", static_cast<std::int32_t>(step.input), step.input_dim,
        static_cast<std::int32_t>(step.output), step.output_dim);
    if (step.kind == CollectiveKind::AllReduce || step.kind == CollectiveKind::ReduceScatter)
      put(out_, " {} divisor {}", text(step.op), step.divisor);
  }

  void moves(const MoveList& list, MoveRange range) {
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      Move move = list[i];
      put(out_, "{}", i == range.first ? " " : "; ");
      put_box(out_, move.source, move.source_lo, move.extents);
      put(out_, " -> ");
      put_box(out_, move.destination, move.destination_lo, move.extents);
    }
    put(out_, "\n");
  }
  void lines(const CopyStep& step) {
    for (const CopyStep::SlotMoves& part : step.parts) {
      put(out_, "  {}:", rank(part.slot));
      moves(step.moves, part.moves);
    }
  }
  void lines(const FillStep& step) {
    for (const FillStep::SlotFill& part : step.parts) {
      put(out_, "  {}: ", rank(part.slot));
      put_box(out_, part.buffer, part.box.lo, part.box.extents());
      put(out_, " = 0\n");
    }
  }
  void lines(const ExchangeStep& step) {
    for (const ExchangeStep::Message& message : step.messages) {
      put(out_, "  {} -> {}:", rank(message.source), rank(message.destination));
      moves(step.moves, message.moves);
    }
  }
  void lines(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      std::vector<Rank> ranks;
      for (Slot slot : step.group(g)) ranks.push_back(plan_.rank_of(slot));
      put(out_, "  group {}", ranks_text(ranks));
      if (!step.input_boxes.empty()) {
        put(out_, " ");
        put_box(out_, step.input, step.input_boxes[g].lo, step.input_boxes[g].extents());
        put(out_, " -> ");
        put_box(out_, step.output, step.output_boxes[g].lo, step.output_boxes[g].extents());
      }
      put(out_, "\n");
    }
  }
  void lines(const ReduceStep& step) {
    for (const ReduceStep::SlotFold& part : step.parts) {
      put(out_, "  {}: ", rank(part.slot));
      put_box(out_, part.destination, part.destination_lo, part.extents);
      for (std::uint32_t k = 0; k < part.operand_count; ++k) {
        put(out_, "{}", k == 0 ? " = " : " + ");
        const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
        put_box(out_, operand.buffer, operand.lo, part.extents);
      }
      put(out_, "\n");
    }
  }

  const Plan& plan_;
  Out out_;
};

}  // namespace

std::string to_text(const Plan& plan) { return Writer(plan).run(); }

}  // namespace reshard
