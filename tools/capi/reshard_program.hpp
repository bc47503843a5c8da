// SPDX-License-Identifier: BSD-3-Clause
//
// A part of reshard.hpp, which includes it: what one rank does, and running it on the caller's
// containers.
#pragma once
#ifndef RESHARD_RESHARD_PROGRAM_HPP
#define RESHARD_RESHARD_PROGRAM_HPP

#include <reshard/reshard.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace reshard {

// The operations of one rank, in order.
class Program {
 public:
  Program(const Plan& plan, std::int32_t rank, std::int64_t alignment = 0)
      : tensor_count_(plan.facts().tensor_count),
        handle_(detail::made<reshard_program>(
            [&](reshard_program** out) {
              return reshard_program_create(plan.get(), rank, alignment, out);
            },
            reshard_program_free)) {}

  reshard_program_facts facts() const {
    return detail::asked<reshard_program_facts>(
        [&](auto* out) { return reshard_program_get_facts(get(), out); });
  }
  reshard_buffer buffer(std::int32_t buffer) const {
    return detail::asked<reshard_buffer>(
        [&](auto* out) { return reshard_program_get_buffer(get(), buffer, out); });
  }
  reshard_operation operation(std::int32_t operation) const {
    return detail::asked<reshard_operation>(
        [&](auto* out) { return reshard_program_get_operation(get(), operation, out); });
  }
  std::vector<reshard_operation> operations() const {
    return detail::listed(facts().operation_count, [&](std::int32_t i) { return operation(i); });
  }
  // Of an exchange.
  std::vector<reshard_message> messages(std::int32_t operation) const {
    return detail::listed(this->operation(operation).part_count,
                          [&](std::int32_t i) { return message(operation, i); });
  }
  // Of a copy, or of a message of an exchange.
  std::vector<reshard_move> moves(std::int32_t operation, std::int32_t message = 0) const {
    reshard_operation of = this->operation(operation);
    std::int32_t count =
        of.kind == RESHARD_EXCHANGE ? this->message(operation, message).move_count : of.part_count;
    return detail::listed(count, [&](std::int32_t i) {
      return detail::asked<reshard_move>(
          [&](auto* out) { return reshard_program_get_move(get(), operation, message, i, out); });
    });
  }
  // Of a fill or a reduce.
  std::vector<reshard_box> boxes(std::int32_t operation) const {
    return detail::listed(this->operation(operation).part_count,
                          [&](std::int32_t i) { return box(operation, i); });
  }
  // Of a part of a reduce.
  std::vector<reshard_box> operands(std::int32_t operation, std::int32_t part) const {
    return detail::listed(box(operation, part).operand_count, [&](std::int32_t i) {
      return detail::asked<reshard_box>(
          [&](auto* out) { return reshard_program_get_operand(get(), operation, part, i, out); });
    });
  }

  std::int32_t tensor_count() const { return tensor_count_; }
  const reshard_program* get() const { return handle_.get(); }

 private:
  reshard_message message(std::int32_t operation, std::int32_t message) const {
    return detail::asked<reshard_message>(
        [&](auto* out) { return reshard_program_get_message(get(), operation, message, out); });
  }
  reshard_box box(std::int32_t operation, std::int32_t part) const {
    return detail::asked<reshard_box>(
        [&](auto* out) { return reshard_program_get_box(get(), operation, part, out); });
  }

  std::int32_t tensor_count_;
  std::shared_ptr<const reshard_program> handle_;
};

// The operations that this one waits for, and the ranks of its group; valid as long as the program.
inline View<const std::int32_t> after(const reshard_operation& operation) {
  return {operation.after, static_cast<std::size_t>(operation.after_count)};
}
inline View<const std::int32_t> group(const reshard_operation& operation) {
  return {operation.group, static_cast<std::size_t>(operation.group_size)};
}

// A rank's shards of one tensor, in the caller's containers; empty if the rank has none. They are
// not copied and must outlive the run.
class Shards {
 public:
  template <class Source, class Destination>
  Shards(const Source& source, Destination&& destination) {
    using From = std::remove_pointer_t<decltype(std::data(source))>;
    using To = std::remove_pointer_t<decltype(std::data(destination))>;
    static_assert(std::is_trivially_copyable_v<From> && std::is_trivially_copyable_v<To>);
    shards_.source = std::data(source);
    shards_.source_bytes = static_cast<std::int64_t>(std::size(source) * sizeof(From));
    shards_.destination = std::data(destination);
    shards_.destination_bytes = static_cast<std::int64_t>(std::size(destination) * sizeof(To));
  }

  const reshard_shards& get() const { return shards_; }

 private:
  reshard_shards shards_ = RESHARD_INIT(reshard_shards);
};

namespace detail {

inline std::vector<reshard_shards> lent(const std::vector<Shards>& shards) {
  std::vector<reshard_shards> out;
  for (const Shards& each : shards) out.push_back(each.get());
  return out;
}

inline void require_count(const char* name, std::size_t expected, std::size_t found) {
  if (expected != found)
    throw InputError(std::string(name) + ": expected " + std::to_string(expected) + ", found " +
                     std::to_string(found));
}

// Calls a caller's exchange from C, which no exception may cross.
template <class Exchange>
struct Carrier {
  Exchange& exchange;
  std::exception_ptr thrown;

  static std::int32_t carry(void* context, const reshard_transfer* sends, std::int32_t send_count,
                            const reshard_transfer* receives, std::int32_t receive_count) {
    auto& self = *static_cast<Carrier*>(context);
    using Transfers = View<const reshard_transfer>;
    try {
      self.exchange(Transfers(sends, static_cast<std::size_t>(send_count)),
                    Transfers(receives, static_cast<std::size_t>(receive_count)));
      return 0;
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

}  // namespace detail

// Runs a rank's program on host memory. `shards` has one entry per tensor of the plan.
// exchange(sends, receives), both View<const reshard_transfer>, must return when all are carried;
// an exception that it throws is rethrown here. `arena` empty: the library allocates temporaries.
template <class Exchange>
void execute(const Program& program, const std::vector<Shards>& shards, Exchange&& exchange,
             View<std::byte> arena = {}) {
  detail::require_count("shards", static_cast<std::size_t>(program.tensor_count()), shards.size());
  std::vector<reshard_shards> lent = detail::lent(shards);
  detail::Carrier<std::remove_reference_t<Exchange>> carrier{exchange, nullptr};
  reshard_run run = RESHARD_INIT(reshard_run);
  run.exchange = carrier.carry;
  run.context = &carrier;
  run.tensors = lent.data();
  run.arena = arena.data();
  run.arena_bytes = static_cast<std::int64_t>(arena.size());
  std::int32_t code = reshard_execute(program.get(), &run);
  if (carrier.thrown) std::rethrow_exception(carrier.thrown);
  detail::check(code);
}

// Runs the plan for all its ranks in this process. `shards` has one entry for every tensor of every
// rank: the tensors of the first of plan.ranks(), then those of the second, and so on.
inline void execute_all(const Plan& plan, const std::vector<Shards>& shards) {
  std::vector<reshard_shards> lent = detail::lent(shards);
  detail::check(
      reshard_execute_all(plan.get(), lent.data(), static_cast<std::int64_t>(lent.size())));
}

// The destination shards of a plan of one tensor, from its source shards: one per rank of
// plan.ranks(), empty where the rank has none.
template <class T>
std::vector<std::vector<T>> redistribute(const Plan& plan,
                                         const std::vector<std::vector<T>>& sources) {
  reshard_plan_facts facts = plan.facts();
  detail::require_count("tensors", 1, static_cast<std::size_t>(facts.tensor_count));
  detail::require_count("bytes of an element", static_cast<std::size_t>(facts.element_bytes),
                        sizeof(T));
  std::vector<std::int32_t> ranks = plan.ranks();
  detail::require_count("shards, one per rank", ranks.size(), sources.size());
  std::vector<std::vector<T>> destinations(ranks.size());
  std::vector<Shards> shards;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::int64_t bytes = plan.rank_bytes(ranks[i]).destination_bytes;
    destinations[i].resize(static_cast<std::size_t>(bytes) / sizeof(T));
    shards.emplace_back(sources[i], destinations[i]);
  }
  execute_all(plan, shards);
  return destinations;
}

}  // namespace reshard
#endif  // RESHARD_RESHARD_PROGRAM_HPP
