// SPDX-License-Identifier: BSD-3-Clause
//
// A part of reshard.hpp, which includes it: layouts of models that frameworks spread over ranks,
// and plans of layouts on the buffers of a model's ranks.
#pragma once
#ifndef RESHARD_RESHARD_BUFFERS_HPP
#define RESHARD_RESHARD_BUFFERS_HPP

#include <reshard/reshard_program.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reshard {

// The texts of `reshard model`, as in reshard_model_texts; "" is the default, where there is one.
struct ModelTransfer {
  std::string config;    // the text of config.json
  std::string from, to;  // "megatron tp=8 pp=8", "vllm tp=32 ep replicas=4"
  std::string ranks = {}, to_ranks = {}, dtype = {};
  std::string config_name = {};
};
struct ModelLayouts {
  std::string text;   // for Plan::job_from_text
  std::string notes;  // what is assumed or left out, a line each
};
inline ModelLayouts layouts_of(const ModelTransfer& model) {
  reshard_model_texts texts = RESHARD_INIT(reshard_model_texts);
  texts.config = model.config.data();
  texts.config_bytes = static_cast<std::int64_t>(model.config.size());
  texts.config_name = detail::given(model.config_name);
  texts.from = model.from.c_str();
  texts.to = model.to.c_str();
  texts.ranks = detail::given(model.ranks);
  texts.to_ranks = detail::given(model.to_ranks);
  texts.dtype = detail::given(model.dtype);
  char *layouts = nullptr, *notes = nullptr;
  std::int64_t layouts_bytes = 0, notes_bytes = 0;
  detail::check(
      reshard_model_write_layouts(&texts, &layouts, &layouts_bytes, &notes, &notes_bytes));
  return {detail::taken(layouts, layouts_bytes), detail::taken(notes, notes_bytes)};
}

enum class Side : std::int32_t { From = RESHARD_FROM, To = RESHARD_TO };

// The buffers of all ranks, of which none if the plan is not of layouts; valid as long as the plan.
inline std::vector<reshard_stored_buffer> stored_buffers(const Plan& plan, Side side) {
  auto number = static_cast<std::int32_t>(side);
  std::int32_t count = 0;
  detail::check(reshard_plan_get_stored_count(plan.get(), number, &count));
  return detail::listed(count, [&](std::int32_t i) {
    return detail::asked<reshard_stored_buffer>(
        [&](auto* out) { return reshard_plan_get_stored_buffer(plan.get(), number, i, out); });
  });
}

// A whole buffer in the caller's container, which must outlive the runs.
struct LentBuffer {
  template <class Container>
  LentBuffer(std::string of, Container&& memory)
      : name(std::move(of)),
        // Those of Side::From are not written.
        data(const_cast<void*>(static_cast<const void*>(std::data(memory)))),
        bytes(static_cast<std::int64_t>(std::size(memory) * sizeof(*std::data(memory)))) {}

  std::string name;
  void* data;
  std::int64_t bytes;
};

// A rank's shards in its buffers.
class RankBuffers {
 public:
  // All that the rank has on both sides, in any order.
  RankBuffers(const Plan& plan, std::int32_t rank, const std::vector<LentBuffer>& from,
              const std::vector<LentBuffer>& to)
      : handle_(detail::made<reshard_rank_buffers>(
            [&](reshard_rank_buffers** out) {
              std::vector<reshard_lent_buffer> before = lent(from), after = lent(to);
              return reshard_rank_buffers_create(
                  plan.get(), rank, before.data(), static_cast<std::int32_t>(before.size()),
                  after.data(), static_cast<std::int32_t>(after.size()), out);
            },
            reshard_rank_buffers_free)),
        tensors_(static_cast<std::size_t>(plan.facts().tensor_count)) {}

  // One per tensor, for `execute` and `execute_all`; valid as long as this object.
  std::vector<Shards> shards() const {
    std::vector<reshard_shards> found(tensors_, RESHARD_INIT(reshard_shards));
    detail::check(reshard_rank_buffers_get_shards(handle_.get(), found.data(),
                                                  static_cast<std::int32_t>(tensors_)));
    std::vector<Shards> out;
    for (const reshard_shards& each : found) {
      View<const std::byte> source(static_cast<const std::byte*>(each.source),
                                   static_cast<std::size_t>(each.source_bytes));
      out.emplace_back(source, View<std::byte>(static_cast<std::byte*>(each.destination),
                                               static_cast<std::size_t>(each.destination_bytes)));
    }
    return out;
  }
  // Of shards that are not in their buffers.
  std::int64_t staged_bytes() const {
    std::int64_t out = 0;
    detail::check(reshard_rank_buffers_get_staged_bytes(handle_.get(), &out));
    return out;
  }
  // Before and after every run.
  void gather() const { detail::check(reshard_rank_buffers_gather(handle_.get())); }
  void scatter() const { detail::check(reshard_rank_buffers_scatter(handle_.get())); }

 private:
  static std::vector<reshard_lent_buffer> lent(const std::vector<LentBuffer>& buffers) {
    std::vector<reshard_lent_buffer> out;
    for (const LentBuffer& each : buffers) {
      reshard_lent_buffer& one = out.emplace_back(RESHARD_INIT(reshard_lent_buffer));
      one.name = each.name.c_str();
      one.data = each.data;
      one.bytes = each.bytes;
    }
    return out;
  }

  std::shared_ptr<const reshard_rank_buffers> handle_;
  std::size_t tensors_;
};

}  // namespace reshard
#endif  // RESHARD_RESHARD_BUFFERS_HPP
