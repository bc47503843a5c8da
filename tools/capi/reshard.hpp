// SPDX-License-Identifier: BSD-3-Clause
//
// reshard from C++17: reshard.h with handles that free themselves, exceptions in place of codes,
// and containers in place of pointers. It needs only reshard.h and its library. Failures throw one
// of the errors of reshard_base.hpp, with reshard_last_error() as text.
//
// Values. Copies of a Request, Topology, Plan or Program share one handle; as handles never change,
// several threads may use the same one. Results are the structs of reshard.h, whose comments
// explain their fields; the functions here have the names of the C functions that they call.
#pragma once
#ifndef RESHARD_RESHARD_HPP
#define RESHARD_RESHARD_HPP

#include <reshard/reshard_base.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace reshard {

// The version of the loaded library, "0.1.0".
inline std::string version() { return reshard_version(); }

// The texts of the command line's options.
struct RequestTexts {
  std::string mesh;   // "4x4", "dp=4,tp=4", "[[0,1],[2,3]]"
  std::string shape;  // "32,8192,4096"; "" is a scalar
  std::string from;   // "S(0)R"
  std::string to;     // "RS(1)"
  std::string dtype = "f32";
  std::string ranks = "";     // "0-7"; "": 0 .. n-1
  std::string to_mesh = "";   // "": the source's
  std::string to_ranks = "";  // "": the source's, or 0 .. n-1 of to_mesh
};

class Request {
 public:
  Request(const std::string& mesh, const std::string& shape, const std::string& from,
          const std::string& to, const std::string& dtype = "f32")
      : Request(RequestTexts{mesh, shape, from, to, dtype}) {}
  explicit Request(const RequestTexts& texts)
      : handle_(detail::made<reshard_request>(
            [&](reshard_request** out) {
              reshard_request_texts asked = RESHARD_INIT(reshard_request_texts);
              asked.mesh = texts.mesh.c_str();
              asked.shape = texts.shape.c_str();
              asked.from = texts.from.c_str();
              asked.to = texts.to.c_str();
              asked.dtype = detail::given(texts.dtype);
              asked.ranks = detail::given(texts.ranks);
              asked.to_mesh = detail::given(texts.to_mesh);
              asked.to_ranks = detail::given(texts.to_ranks);
              return reshard_request_create(&asked, out);
            },
            reshard_request_free)) {}

  const reshard_request* get() const { return handle_.get(); }

 private:
  std::shared_ptr<const reshard_request> handle_;
};

class Topology {
 public:
  // A preset ("dgx-h100"), a preset with a count ("dgx-h100:4"), or the path of a topology file.
  explicit Topology(const std::string& name)
      : handle_(detail::made<reshard_topology>(
            [&](reshard_topology** out) { return reshard_topology_create(name.c_str(), out); },
            reshard_topology_free)) {}
  // From the text of a topology file; `count` is the count in "NAME:COUNT", or 0 for none.
  static Topology parse(const std::string& text, std::int64_t count = 0) {
    return Topology(detail::made<reshard_topology>(
        [&](reshard_topology** out) { return reshard_topology_parse(text.c_str(), count, out); },
        reshard_topology_free));
  }

  const reshard_topology* get() const { return handle_.get(); }

 private:
  explicit Topology(std::shared_ptr<const reshard_topology> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<const reshard_topology> handle_;
};

struct PlanOptions {
  std::string planner = "auto";
  std::int64_t memory_limit_bytes = 0;  // 0: no limit
};

// A plan that has been proved.
class Plan {
 public:
  // On a DGX H100 cluster with as many nodes as the ranks need.
  explicit Plan(const Request& request, const PlanOptions& options = {})
      : Plan(request, nullptr, options) {}
  Plan(const Request& request, const PlanOptions& options, const Topology& topology)
      : Plan(request, topology.get(), options) {}
  static Plan parse(const std::string& text) {
    return Plan(detail::made<reshard_plan>(
        [&](reshard_plan** out) {
          return reshard_plan_parse(text.data(), static_cast<std::int64_t>(text.size()), out);
        },
        reshard_plan_free));
  }
  static Plan join(const std::vector<Plan>& plans) {
    std::vector<const reshard_plan*> all;
    for (const Plan& plan : plans) all.push_back(plan.get());
    return Plan(detail::made<reshard_plan>(
        [&](reshard_plan** out) {
          return reshard_plan_join(all.data(), static_cast<std::int32_t>(all.size()), out);
        },
        reshard_plan_free));
  }

  std::string text() const {
    char* text = nullptr;
    std::int64_t bytes = 0;
    detail::check(reshard_plan_write(get(), &text, &bytes));
    return detail::taken(text, bytes);
  }
  // "table", "explanation", "json", "html", "perfetto", "simulation", "simulation-proof".
  std::string report(const std::string& form) const {
    char* text = nullptr;
    std::int64_t bytes = 0;
    detail::check(reshard_plan_report(get(), form.c_str(), &text, &bytes));
    return detail::taken(text, bytes);
  }
  std::string planner() const { return reshard_plan_planner(get()); }
  std::string request() const { return reshard_plan_request(get()); }
  void prove() const { detail::check(reshard_plan_prove(get())); }
  reshard_plan_facts facts() const {
    return detail::asked<reshard_plan_facts>(
        [&](auto* out) { return reshard_plan_get_facts(get(), out); });
  }
  std::vector<std::int32_t> ranks() const {
    return detail::listed(facts().rank_count, [&](std::int32_t index) {
      std::int32_t rank = 0;
      detail::check(reshard_plan_get_rank(get(), index, &rank));
      return rank;
    });
  }
  reshard_rank_bytes rank_bytes(std::int32_t rank) const {
    return detail::asked<reshard_rank_bytes>(
        [&](auto* out) { return reshard_plan_get_rank_bytes(get(), rank, out); });
  }
  reshard_buffer buffer(std::int32_t rank, std::int32_t buffer) const {
    return detail::asked<reshard_buffer>(
        [&](auto* out) { return reshard_plan_get_buffer(get(), rank, buffer, out); });
  }
  reshard_times times() const { return times_on(nullptr); }
  reshard_times times(const Topology& topology) const { return times_on(topology.get()); }

  const reshard_plan* get() const { return handle_.get(); }

 private:
  explicit Plan(std::shared_ptr<const reshard_plan> handle) : handle_(std::move(handle)) {}
  Plan(const Request& request, const reshard_topology* topology, const PlanOptions& options)
      : handle_(detail::made<reshard_plan>(
            [&](reshard_plan** out) {
              reshard_plan_options asked = RESHARD_INIT(reshard_plan_options);
              asked.planner = options.planner.c_str();
              asked.memory_limit_bytes = options.memory_limit_bytes;
              return reshard_plan_create(request.get(), topology, &asked, out);
            },
            reshard_plan_free)) {}
  reshard_times times_on(const reshard_topology* topology) const {
    return detail::asked<reshard_times>(
        [&](auto* out) { return reshard_plan_get_times(get(), topology, out); });
  }

  std::shared_ptr<const reshard_plan> handle_;
};

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

// What `reshard ARGUMENTS` prints. Throws Findings if a check that was asked for did not hold.
inline std::string command(const std::vector<std::string>& arguments) {
  std::vector<const char*> words;
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  char* text = nullptr;
  std::int64_t bytes = 0;
  std::int32_t code =
      reshard_command(words.data(), static_cast<std::int32_t>(words.size()), &text, &bytes);
  if (code != RESHARD_OK && code != RESHARD_FINDINGS) detail::check(code);
  std::string why = reshard_last_error(), printed = detail::taken(text, bytes);
  if (code == RESHARD_FINDINGS) throw Findings(why, printed);
  return printed;
}

}  // namespace reshard
#endif  // RESHARD_RESHARD_HPP
