// SPDX-License-Identifier: BSD-3-Clause
// Reads plans line by line. Only the form of the text is checked here; whether the plan is right is
// left to the proof, which runs on every plan that is read.
#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"

namespace reshard {
namespace {

class Reader {
 public:
  Reader(std::string_view text, std::string_view file)
      : text_(after_byte_order_mark(text)), file_(file) {}

  Plan run() {
    Plan plan = header();
    while (starts_with("stage ")) stage(plan);
    while (starts_with("temporary ")) temporary(plan);
    while (starts_with("step ")) step(plan);
    int end_line = line_;
    at_line([&](Cursor& cursor) { cursor.expect("end"); });
    if (has_line_)
      throw InputError(fmt::format("{}: expected nothing after 'end', found {}", place(line_),
                                   quoted(current_)));
    if (std::optional<Refutation> refutation = check_plan(plan).refutation) {
      // A step is a head line, then one line per part.
      int line = end_line;
      if (refutation->step) line = step_lines_[*refutation->step];
      if (refutation->part) line += 1 + static_cast<int>(*refutation->part);
      throw InputError(
          fmt::format("{}: expected a valid plan, found: {}", place(line), refutation->what));
    }
    return plan;
  }

 private:
  std::string place(int line) const { return fmt::format("{}:{}", file_, line); }

  void next_line() {
    has_line_ = !text_.empty();
    ++line_;
    if (has_line_) current_ = take_line(text_);
  }
  bool starts_with(std::string_view prefix) const {
    return has_line_ && current_.starts_with(prefix);
  }

  // Lets `read` parse the current line, requires that it reads all of it, and advances to the next.
  template <class Read>
  void at_line(Read&& read) {
    std::string where = place(line_);
    if (!has_line_)
      throw InputError(
          fmt::format("{}: expected more lines up to 'end', found the end of the file", where));
    Cursor cursor(current_, where);
    try {
      read(cursor);
      cursor.expect_end();
    } catch (const InputError& error) {
      // Errors of nested parsers name a field but no line.
      if (std::string_view(error.what()).substr(0, where.size()) == where) throw;
      throw error.in(where);
    }
    next_line();
  }

  // The rest of the line up to `stop`, or to its end if `stop` is empty.
  static std::string_view until(Cursor& cursor, std::string_view stop) {
    std::size_t at = stop.empty() ? std::string_view::npos : cursor.rest().find(stop);
    std::string_view out = cursor.rest().substr(0, at);
    cursor.accept(out);
    return out;
  }

  static std::string_view rest_after(Cursor& cursor, std::string_view word) {
    cursor.expect(word);
    return until(cursor, "");
  }

  Plan header() {
    std::string planner;
    next_line();
    at_line([&](Cursor& cursor) { cursor.expect("reshard-plan 1"); });
    at_line([&](Cursor& cursor) {
      cursor.expect("planner ");
      planner = cursor.word();
      if (planner.empty()) cursor.fail("a planner's name");
    });
    bool frees_sources = starts_with("sources ");
    if (frees_sources) at_line([&](Cursor& cursor) { cursor.expect("sources freed"); });
    std::vector<Request> tensors;
    do tensors.push_back(tensor());
    while (starts_with("shape "));
    Plan plan(std::move(tensors), planner);
    plan.frees_sources = frees_sources;
    return plan;
  }

  Request tensor() {
    std::string_view shape, dtype;
    at_line([&](Cursor& cursor) { shape = rest_after(cursor, "shape "); });
    at_line([&](Cursor& cursor) { dtype = rest_after(cursor, "dtype "); });
    std::optional<Layout> source, destination;
    at_line([&](Cursor& cursor) { source = layout(cursor, "source", shape, dtype); });
    int last = line_;
    at_line([&](Cursor& cursor) { destination = layout(cursor, "destination", shape, dtype); });
    try {
      return Request(std::move(*source), std::move(*destination));
    } catch (const InputError& error) {
      throw error.in(place(last));
    }
  }

  static Layout layout(Cursor& cursor, std::string_view side, std::string_view shape,
                       std::string_view dtype) {
    cursor.expect(side);
    cursor.expect(" mesh ");
    std::string_view mesh = until(cursor, " ");
    cursor.expect(" ranks ");
    std::string_view ranks = until(cursor, " ");
    std::string_view placements = rest_after(cursor, " placements ");
    return parse_layout(shape, dtype, std::make_shared<const Mesh>(parse_mesh(mesh, ranks)),
                        placements);
  }

  void stage(Plan& plan) {
    staged_.resize(plan.tensors.size(), false);
    at_line([&](Cursor& cursor) {
      cursor.expect("stage ");
      auto number = to_index(cursor.integer("the next stage's number", 0, kMaxPlanNumber));
      if (number != plan.stages.size())
        cursor.fail(fmt::format("stage {} here, before this", plan.stages.size()));
      if (number == kMaxStages) cursor.fail(fmt::format("at most {} stages", kMaxStages));
      Stage& stage = plan.stages.emplace_back();
      cursor.expect(" tensors ");
      auto end = static_cast<std::int64_t>(plan.tensors.size());
      do {
        std::int64_t first = cursor.integer("a tensor of the plan", 0, end - 1), last = first;
        if (cursor.accept("-")) last = cursor.integer("a last tensor of the plan", first, end - 1);
        for (std::int64_t tensor = first; tensor <= last; ++tensor) {
          if (staged_[to_index(tensor)]) cursor.fail("each tensor in one stage, before this");
          staged_[to_index(tensor)] = true;
          stage.tensors.push_back(id_of<TensorId>(to_index(tensor)));
        }
      } while (cursor.accept(","));
      if (cursor.accept(" after ")) do
          stage.after.push_back(static_cast<std::int32_t>(
              cursor.integer("a stage's number", 0, static_cast<std::int64_t>(number) - 1)));
        while (cursor.accept(","));
    });
  }

  static Slot slot(Cursor& cursor, const Plan& plan) {
    auto rank = Rank{static_cast<std::int32_t>(cursor.integer("a rank", 0, kMaxRanks - 1))};
    auto it = std::lower_bound(plan.ranks.begin(), plan.ranks.end(), rank);
    if (it == plan.ranks.end() || *it != rank)
      cursor.fail(fmt::format("a rank of the plan instead of {} before this", to_int(rank)));
    return static_cast<Slot>(it - plan.ranks.begin());
  }

  void temporary(Plan& plan) {
    BufferId id{};
    at_line([&](Cursor& cursor) {
      cursor.expect("temporary ");
      auto number = to_index(cursor.integer("the next buffer's number", 0, kMaxPlanNumber));
      if (number != plan.buffers.size())
        cursor.fail(fmt::format("buffer {} here, before this", plan.buffers.size()));
      if ((number + 1) * plan.slot_count() * to_index(plan.dims()) > kMaxPlanExtents)
        cursor.fail("fewer temporaries for this number of ranks");
      std::int64_t tensor = 0;
      if (cursor.accept(" tensor "))
        tensor = cursor.integer("a tensor of the plan", 0,
                                static_cast<std::int64_t>(plan.tensors.size()) - 1);
      id = plan.add_temporary(TensorId{static_cast<std::int32_t>(tensor)});
    });
    while (starts_with("  "))
      at_line([&](Cursor& cursor) {
        cursor.expect("  ");
        Slot first = slot(cursor, plan), last = first;
        if (cursor.accept("-")) last = slot(cursor, plan);
        cursor.expect(": ");
        Shape shape = parse_shape(until(cursor, ""));
        if (shape.size() != plan.dims())
          cursor.fail(fmt::format("{} extents before this", plan.dims()));
        std::int64_t elements = plan.element_bytes(id);
        for (std::int64_t extent : shape) {
          std::optional<std::int64_t> product = checked_product(elements, extent);
          if (!product) cursor.fail("a temporary of at most 2^62 bytes");
          elements = *product;
        }
        if (last < first) cursor.fail("a range of ascending ranks");
        for (Slot s = first; s <= last; ++s) {
          if (plan.buffer(id).exists(s)) cursor.fail("each rank once");
          plan.buffer(id).set_shape(s, shape);
        }
      });
  }

  static BufferId buffer(Cursor& cursor) {
    cursor.expect("b");
    return BufferId{
        static_cast<std::int32_t>(cursor.integer("a buffer's number", 0, kMaxPlanNumber))};
  }

  struct BoxIn {
    BufferId buffer;
    DimVector lo, extents;
  };
  static BoxIn box(Cursor& cursor, const Plan& plan) {
    BoxIn out{buffer(cursor), {}, {}};
    cursor.expect("[");
    for (int d = 0; d < plan.dims(); ++d) {
      if (d > 0) cursor.expect(",");
      std::int64_t lo = cursor.integer("a lower index", 0, kMaxBytes);
      cursor.expect(":");
      std::int64_t hi = cursor.integer("an upper index", lo + 1, kMaxBytes);
      out.lo.push_back(lo);
      out.extents.push_back(hi - lo);
    }
    cursor.expect("]");
    return out;
  }

  static MoveRange moves(Cursor& cursor, const Plan& plan, MoveList& list) {
    MoveRange range{static_cast<std::uint32_t>(list.size()), 0};
    do {
      cursor.expect(" ");
      BoxIn from = box(cursor, plan);
      cursor.expect(" -> ");
      BoxIn to = box(cursor, plan);
      if (from.extents != to.extents) cursor.fail("boxes of equal extents before this");
      list.push_back({from.buffer, to.buffer, from.lo, to.lo, from.extents});
      ++range.count;
    } while (cursor.accept(";"));
    return range;
  }

  void each_line(const std::function<void(Cursor&)>& read) {
    while (starts_with("  ")) at_line([&](Cursor& cursor) { cursor.expect("  "), read(cursor); });
  }

  void step(Plan& plan) {
    step_lines_.push_back(line_);
    Step step{CopyStep{}, {}, {}};
    at_line([&](Cursor& cursor) {
      cursor.expect("step ");
      auto number = to_index(cursor.integer("the next step's number", 0, kMaxPlanNumber));
      if (number != plan.steps.size())
        cursor.fail(fmt::format("step {} here, before this", plan.steps.size()));
      cursor.expect(" ");
      step.body = head(cursor);
      auto number_of = [&](const char* what, std::int64_t least, std::int64_t most) {
        return static_cast<std::int32_t>(cursor.integer(what, least, most));
      };
      if (cursor.accept(" after ")) do
          step.after.push_back(StepId{number_of("a step's number", 0, kMaxPlanNumber)});
        while (cursor.accept(","));
      if (cursor.accept(" axes ")) do
          step.axes.push_back(number_of("a mesh axis", 0, kMaxAxes - 1));
        while (cursor.accept(","));
      if (cursor.accept(" stream ")) step.stream = number_of("a stream", 1, kMaxStreams - 1);
    });
    std::visit([&](auto& body) { lines(body, plan); }, step.body);
    plan.steps.push_back(std::move(step));
  }

  static StepBody head(Cursor& cursor) {
    std::string_view kind = cursor.word();
    if (kind == "copy") return CopyStep{};
    if (kind == "fill") return FillStep{};
    if (kind == "exchange") return ExchangeStep{};
    if (kind == "reduce") {
      ReduceStep step;
      operation(cursor, step.op, step.divisor);
      return step;
    }
    for (CollectiveKind each : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                CollectiveKind::AllReduce, CollectiveKind::AllToAll})
      if (kind == text(each)) return collective(cursor, each);
    cursor.fail(
        "copy, fill, exchange, reduce, all_gather, reduce_scatter, all_reduce or all_to_all before "
        "this");
  }

  static void operation(Cursor& cursor, ReduceOp& op, std::int64_t& divisor) {
    cursor.expect(" ");
    op = parse_reduce_op(cursor.word());
    cursor.expect(" divisor ");
    divisor = cursor.integer("a divisor", 1, kMaxBytes);
  }

  static CollectiveStep collective(Cursor& cursor, CollectiveKind kind) {
    CollectiveStep step{};
    step.kind = kind;
    cursor.expect(" ");
    step.input = buffer(cursor);
    cursor.expect(" dim ");
    step.input_dim = static_cast<int>(cursor.integer("a dim", 0, kMaxDims - 1));
    cursor.expect(" -> ");
    step.output = buffer(cursor);
    cursor.expect(" dim ");
    step.output_dim = static_cast<int>(cursor.integer("a dim", 0, kMaxDims - 1));
    if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter)
      operation(cursor, step.op, step.divisor);
    return step;
  }

  void lines(CopyStep& step, const Plan& plan) {
    step.moves = MoveList(plan.dims());
    each_line([&](Cursor& cursor) {
      Slot at = slot(cursor, plan);
      cursor.expect(":");
      step.parts.push_back({at, moves(cursor, plan, step.moves)});
    });
  }
  void lines(FillStep& step, const Plan& plan) {
    each_line([&](Cursor& cursor) {
      Slot at = slot(cursor, plan);
      cursor.expect(": ");
      BoxIn target = box(cursor, plan);
      cursor.expect(" = 0");
      step.parts.push_back({at, target.buffer, box_at(target.lo, target.extents)});
    });
  }
  void lines(ExchangeStep& step, const Plan& plan) {
    step.moves = MoveList(plan.dims());
    each_line([&](Cursor& cursor) {
      Slot from = slot(cursor, plan);
      cursor.expect(" -> ");
      Slot to = slot(cursor, plan);
      cursor.expect(":");
      step.messages.push_back({from, to, moves(cursor, plan, step.moves)});
    });
  }
  void lines(CollectiveStep& step, const Plan& plan) {
    each_line([&](Cursor& cursor) {
      cursor.expect("group ");
      std::vector<Rank> ranks = parse_ranks(until(cursor, " "), "group");
      if (step.members.empty()) step.group_size = static_cast<std::int32_t>(ranks.size());
      if (static_cast<std::int32_t>(ranks.size()) != step.group_size)
        cursor.fail("groups of equal size before this");
      for (Rank rank : ranks) {
        auto it = std::lower_bound(plan.ranks.begin(), plan.ranks.end(), rank);
        if (it == plan.ranks.end() || *it != rank) cursor.fail("ranks of the plan before this");
        step.members.push_back(static_cast<Slot>(it - plan.ranks.begin()));
      }
      if (step.members.size() > plan.slot_count())
        cursor.fail("each rank in one group only, before this");
      if (!cursor.accept(" ")) return;
      BoxIn input = box(cursor, plan);
      cursor.expect(" -> ");
      BoxIn output = box(cursor, plan);
      if (input.buffer != step.input || output.buffer != step.output)
        cursor.fail("boxes of the step's buffers before this");
      step.input_boxes.push_back(box_at(input.lo, input.extents));
      step.output_boxes.push_back(box_at(output.lo, output.extents));
    });
  }
  void lines(ReduceStep& step, const Plan& plan) {
    each_line([&](Cursor& cursor) {
      ReduceStep::SlotFold part{};
      part.slot = slot(cursor, plan);
      cursor.expect(": ");
      BoxIn target = box(cursor, plan);
      part.destination = target.buffer;
      part.destination_lo = target.lo;
      part.extents = target.extents;
      part.first_operand = static_cast<std::uint32_t>(step.operands.size());
      cursor.expect(" = ");
      do {
        BoxIn operand = box(cursor, plan);
        if (operand.extents != target.extents) cursor.fail("boxes of equal extents before this");
        step.operands.push_back({operand.buffer, operand.lo});
        ++part.operand_count;
      } while (cursor.accept(" + "));
      step.parts.push_back(part);
    });
  }

  std::string_view text_, file_, current_;
  int line_ = 0;
  bool has_line_ = false;
  IndexVector<StepId, int> step_lines_;
  std::vector<bool> staged_;  // by tensor: whether a stage has it
};

}  // namespace

Plan parse_plan(std::string_view text, std::string_view file) { return Reader(text, file).run(); }

}  // namespace reshard
