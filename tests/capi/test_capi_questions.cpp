// SPDX-License-Identifier: BSD-3-Clause
// What the C API says about programs is enough to run them: an executor that knows a plan only
// through these queries moves it element by element, and gets the store's bits.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "core/base/errors.h"
#include "core/bytes/box_fold.h"
#include "core/text/plan_text.h"
#include "tests/conformance/conformance.h"
#include "tests/support/part.h"

namespace reshard::test {
namespace {

void check(std::int32_t code) { RESHARD_CHECK(code == RESHARD_OK, reshard_last_error()); }

// A rank's program and memory, each buffer by itself.
struct RankProgram {
  RankProgram(const reshard_plan* plan, std::int32_t rank) {
    check(reshard_program_create(plan, rank, 64, &program));
    facts = RESHARD_INIT(reshard_program_facts);
    check(reshard_program_get_facts(program, &facts));
    for (std::int32_t b = 0; b < facts.buffer_count; ++b) {
      reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
      check(reshard_program_get_buffer(program, b, &buffer));
      RESHARD_CHECK(buffer.arena_offset % 64 == 0 || buffer.arena_offset == -1, "alignment");
      RESHARD_CHECK(
          buffer.arena_offset == -1 || buffer.arena_offset + buffer.bytes <= facts.arena_bytes,
          "a temporary outside the arena");
      buffers.push_back(buffer);
      memory.emplace_back(static_cast<std::size_t>(buffer.bytes), std::byte{0xa5});
    }
  }
  RankProgram(const RankProgram&) = delete;
  ~RankProgram() { reshard_program_free(program); }

  // Calls visit(first byte) for every element of a box, row-major.
  void each(std::int32_t buffer, const std::int64_t* offset, const std::int64_t* extents,
            const std::function<void(std::byte*)>& visit, int dim = 0, std::int64_t at = 0) {
    if (dim == facts.dims)
      return visit(memory[static_cast<std::size_t>(buffer)].data() +
                   at * buffers[static_cast<std::size_t>(buffer)].element_bytes);
    for (std::int64_t i = 0; i < extents[dim]; ++i)
      each(buffer, offset, extents, visit, dim + 1,
           at * buffers[static_cast<std::size_t>(buffer)].shape[dim] + offset[dim] + i);
  }

  std::size_t width(std::int32_t buffer) const {
    return static_cast<std::size_t>(buffers[static_cast<std::size_t>(buffer)].element_bytes);
  }
  // A box, dense row-major.
  std::vector<std::byte> taken(std::int32_t buffer, const std::int64_t* offset,
                               const std::int64_t* extents) {
    std::vector<std::byte> out;
    each(buffer, offset, extents,
         [&](std::byte* element) { out.insert(out.end(), element, element + width(buffer)); });
    return out;
  }
  void put(std::int32_t buffer, const std::int64_t* offset, const std::int64_t* extents,
           const std::byte* from) {
    each(buffer, offset, extents, [&](std::byte* element) {
      std::memcpy(element, from, width(buffer));
      from += width(buffer);
    });
  }

  reshard_program* program = nullptr;
  reshard_program_facts facts{};
  std::vector<reshard_buffer> buffers;
  std::vector<std::vector<std::byte>> memory;
  std::int32_t next = 0;  // operation
};

class ByQuestions : public PreparedPlan {
 public:
  explicit ByQuestions(const Plan& plan) {
    for (const Request& request : plan.tensors) dtypes_.push_back(request.dtype());
    std::string text = to_text(plan);
    reshard_plan* handle = nullptr;
    check(reshard_plan_parse(text.data(), static_cast<std::int64_t>(text.size()), &handle));
    reshard_plan_facts facts = RESHARD_INIT(reshard_plan_facts);
    check(reshard_plan_get_facts(handle, &facts));
    steps_ = facts.step_count;
    RESHARD_CHECK(facts.tensor_count == static_cast<std::int32_t>(dtypes_.size()), "tensors");
    for (std::int32_t i = 0; i < facts.rank_count; ++i) {
      std::int32_t rank = -1;
      check(reshard_plan_get_rank(handle, i, &rank));
      parts_[rank] = std::make_unique<RankProgram>(handle, rank);
    }
    reshard_plan_free(handle);
  }

  void fill(const FillSource& fill, TensorId tensor) override {
    for (auto& [rank, part] : parts_)
      if (std::size_t b = to_index(source_of(tensor)); part->buffers[b].exists)
        fill(Rank{rank}, part->memory[b]);
  }
  void take(const TakeDestination& take, TensorId tensor) override {
    for (auto& [rank, part] : parts_)
      if (std::size_t b = to_index(destination_of(tensor)); part->buffers[b].exists)
        take(Rank{rank}, part->memory[b]);
  }

  Timeline run() override {
    for (auto& [rank, part] : parts_) part->next = 0;
    for (std::int32_t step = 0; step < steps_; ++step) {
      for (bool sends : {true, false})
        for (auto& [rank, part] : parts_) {
          reshard_operation operation = RESHARD_INIT(reshard_operation);
          if (part->next == part->facts.operation_count) continue;
          check(reshard_program_get_operation(part->program, part->next, &operation));
          if (operation.step != step) continue;
          for (std::int32_t k = 0; k < operation.after_count; ++k)
            RESHARD_CHECK(operation.after[k] < part->next, "waits for what comes later");
          run_operation(rank, *part, operation, sends);
          if (!sends) ++part->next;
        }
      RESHARD_CHECK(messages_.empty(), "a message that nobody received");
    }
    return {};
  }

 private:
  void run_operation(std::int32_t rank, RankProgram& part, const reshard_operation& operation,
                     bool sends) {
    if (operation.kind == RESHARD_EXCHANGE) return exchange(rank, part, operation, sends);
    if (sends) return;
    for (std::int32_t i = 0; i < operation.part_count; ++i) {
      if (operation.kind == RESHARD_COPY) copy(part, i);
      if (operation.kind == RESHARD_FILL) {
        reshard_box box = RESHARD_INIT(reshard_box);
        check(reshard_program_get_box(part.program, part.next, i, &box));
        part.each(box.buffer, box.offset, box.extents,
                  [&](std::byte* element) { std::memset(element, 0, part.width(box.buffer)); });
      }
      if (operation.kind == RESHARD_REDUCE) reduce(part, operation, i);
    }
    if (operation.kind >= RESHARD_ALL_GATHER) collective(part, operation);
  }

  void copy(RankProgram& part, std::int32_t index) {
    reshard_move move = RESHARD_INIT(reshard_move);
    check(reshard_program_get_move(part.program, part.next, 0, index, &move));
    std::vector<std::byte> box = part.taken(move.source, move.source_offset, move.extents);
    part.put(move.destination, move.destination_offset, move.extents, box.data());
  }

  void exchange(std::int32_t rank, RankProgram& part, const reshard_operation& operation,
                bool sends) {
    for (std::int32_t m = 0; m < operation.part_count; ++m) {
      reshard_message message = RESHARD_INIT(reshard_message);
      check(reshard_program_get_message(part.program, part.next, m, &message));
      if ((message.receives == 0) != sends) continue;
      std::vector<std::byte> bytes;
      if (!sends) bytes = messages_.extract({message.peer, rank}).mapped();
      std::byte* from = bytes.data();
      for (std::int32_t i = 0; i < message.move_count; ++i) {
        reshard_move move = RESHARD_INIT(reshard_move);
        check(reshard_program_get_move(part.program, part.next, m, i, &move));
        if (sends) {
          std::vector<std::byte> box = part.taken(move.source, move.source_offset, move.extents);
          bytes.insert(bytes.end(), box.begin(), box.end());
          continue;
        }
        part.put(move.destination, move.destination_offset, move.extents, from);
        std::size_t moved = part.width(move.destination);
        for (int d = 0; d < part.facts.dims; ++d)
          moved *= static_cast<std::size_t>(move.extents[d]);
        from += moved;
      }
      RESHARD_CHECK(static_cast<std::int64_t>(bytes.size()) == message.bytes,
                    "the bytes of a message");
      if (sends)
        RESHARD_CHECK(messages_.emplace(std::pair(rank, message.peer), bytes).second,
                      "two messages of one pair");
    }
  }

  void reduce(RankProgram& part, const reshard_operation& operation, std::int32_t index) {
    reshard_box to = RESHARD_INIT(reshard_box);
    check(reshard_program_get_box(part.program, part.next, index, &to));
    std::vector<std::vector<const std::byte*>> operands;  // per element
    for (std::int32_t k = 0; k < to.operand_count; ++k) {
      reshard_box from = RESHARD_INIT(reshard_box);
      check(reshard_program_get_operand(part.program, part.next, index, k, &from));
      std::size_t at = 0;
      part.each(from.buffer, from.offset, from.extents, [&](std::byte* element) {
        if (k == 0) operands.emplace_back();
        operands[at++].push_back(element);
      });
    }
    std::size_t at = 0;
    DType dtype = dtype_of(part, to.buffer);
    part.each(to.buffer, to.offset, to.extents,
              [&](std::byte* element) { fold(operation, dtype, operands[at++], element, 1); });
  }

  DType dtype_of(const RankProgram& part, std::int32_t buffer) const {
    return dtypes_[static_cast<std::size_t>(part.buffers[static_cast<std::size_t>(buffer)].tensor)];
  }

  static void fold(const reshard_operation& operation, DType dtype,
                   const std::vector<const std::byte*>& operands, std::byte* out,
                   std::int64_t count) {
    fold_row(static_cast<ReduceOp>(operation.reduce_op), dtype, operation.divisor, operands, out,
             count);
  }

  void collective(RankProgram& part, const reshard_operation& operation) {
    std::vector<std::byte> output(static_cast<std::size_t>(operation.output_bytes));
    std::vector<std::vector<std::byte>> inputs;
    for (std::int32_t j = 0; j < operation.group_size; ++j)
      inputs.push_back(
          parts_.at(operation.group[j])
              ->taken(operation.input, operation.input_offset, operation.input_extents));
    collect(part, operation, inputs, output);
    part.put(operation.output, operation.output_offset, operation.output_extents, output.data());
  }

  // Blocks are contiguous in a dense box.
  void collect(const RankProgram& part, const reshard_operation& operation,
               const std::vector<std::vector<std::byte>>& inputs, std::vector<std::byte>& output) {
    auto n = static_cast<std::size_t>(operation.group_size),
         member = static_cast<std::size_t>(operation.member);
    if (operation.kind == RESHARD_ALL_REDUCE || operation.kind == RESHARD_REDUCE_SCATTER) {
      bool scatters = operation.kind == RESHARD_REDUCE_SCATTER;
      std::vector<const std::byte*> operands;
      for (const std::vector<std::byte>& input : inputs)
        operands.push_back(input.data() + (scatters ? member * output.size() : 0));
      return fold(operation, dtype_of(part, operation.input), operands, output.data(),
                  static_cast<std::int64_t>(output.size() / part.width(operation.output)));
    }
    std::size_t block = output.size() / n;
    for (std::size_t j = 0; j < n; ++j)
      std::memcpy(output.data() + j * block,
                  inputs[j].data() + (operation.kind == RESHARD_ALL_TO_ALL ? member * block : 0),
                  block);
  }

  std::vector<DType> dtypes_;  // by tensor
  std::int32_t steps_ = 0;
  std::map<std::int32_t, std::unique_ptr<RankProgram>> parts_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::byte>> messages_;
};

class QuestionExecutor : public Executor {
 public:
  std::string_view name() const override { return "questions"; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override {
    return std::make_unique<ByQuestions>(plan);
  }
};

}  // namespace

TEST_CASE("the answers about programs are enough to run drawn requests") {
  QuestionExecutor executor;
  ConformanceReport report =
      check_conformance(executor, {.world = 12, .draws = 2'000 / kOneOf, .seed = 4711});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.requests == 2'000 / kOneOf);
  CHECK(report.rough_runs > 100 / kOneOf);
}

}  // namespace reshard::test

TEST_CASE("plans of ranks are told apart, with what differs") {
  auto plan_of = [](const char* to, const char* planner) {
    reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
    texts.mesh = "4";
    texts.shape = "8,8";
    texts.dtype = "i32";
    texts.from = "S(0)";
    texts.to = to;
    reshard_plan_options options = RESHARD_INIT(reshard_plan_options);
    options.planner = planner;
    reshard_request* request = nullptr;
    reshard_plan* plan = nullptr;
    REQUIRE(reshard_request_create(&texts, &request) == RESHARD_OK);
    REQUIRE(reshard_plan_create(request, nullptr, &options, &plan) == RESHARD_OK);
    reshard_request_free(request);
    return plan;
  };
  reshard_plan *plan = plan_of("S(1)", "p2p"), *same = plan_of("S(1)", "p2p"),
               *other = plan_of("R", "p2p");
  char digest[33], again[33], another[33];
  REQUIRE(reshard_plan_get_digest(plan, digest) == RESHARD_OK);
  REQUIRE(reshard_plan_get_digest(same, again) == RESHARD_OK);
  REQUIRE(reshard_plan_get_digest(other, another) == RESHARD_OK);
  CHECK(std::string(digest).size() == 32);
  CHECK(std::string(digest) == again);
  CHECK(std::string(digest) != another);
  auto difference = [&](const reshard_plan* mine, const reshard_plan* theirs) {
    char *text = nullptr, *found = nullptr;
    std::int64_t bytes = 0, found_bytes = 0;
    REQUIRE(reshard_plan_write(theirs, &text, &bytes) == RESHARD_OK);
    REQUIRE(reshard_plan_compare(mine, text, bytes, &found, &found_bytes) == RESHARD_OK);
    std::string out(found, static_cast<std::size_t>(found_bytes));
    reshard_text_free(text);
    reshard_text_free(found);
    return out;
  };
  CHECK(difference(plan, same).empty());
  CHECK(difference(plan, other) == "destination placements S(1), where the other one has R");
  CHECK(reshard_plan_get_digest(plan, nullptr) == RESHARD_INPUT_ERROR);
  CHECK(reshard_plan_get_digest(nullptr, digest) == RESHARD_INPUT_ERROR);
  char* text = nullptr;
  std::int64_t bytes = 0;
  CHECK(reshard_plan_compare(plan, nullptr, 0, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(reshard_plan_compare(plan, "", -1, &text, &bytes) == RESHARD_INPUT_ERROR);
  for (reshard_plan* each : {plan, same, other}) reshard_plan_free(each);
}
