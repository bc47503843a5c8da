// SPDX-License-Identifier: BSD-3-Clause
//
// reshard from C++17: reshard.h with handles that free themselves, exceptions in place of codes,
// and containers in place of pointers. It needs only reshard.h and its library. Failures throw one
// of the errors of reshard_base.hpp, with reshard_last_error() as text.
//
// Values. Copies of a Request, Topology, Plan or Program share one handle; as handles never change,
// several threads may use the same one. Results are the structs of reshard.h; its comments
// explain their fields; the functions here have the names of the C functions that they call.
#pragma once
#ifndef RESHARD_RESHARD_HPP
#define RESHARD_RESHARD_HPP

#include <reshard/reshard_base.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
  std::string ranks = "";               // "0-7"; "": 0 .. n-1
  std::string to_mesh = "";             // "": the source's
  std::string to_ranks = "";            // "": the source's, or 0 .. n-1 of to_mesh
  std::string name = "";                // of the tensor, for reports
  std::string id = "";                  // by which others of its job name it
  std::vector<std::string> after = {};  // ids of those of its job that it comes after
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
              asked.name = detail::given(texts.name);
              asked.id = detail::given(texts.id);
              std::vector<const char*> after;
              for (const std::string& each : texts.after) after.push_back(each.c_str());
              asked.after = after.data();
              asked.after_count = static_cast<std::int32_t>(after.size());
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
  std::int64_t memory_limit_bytes = 0;                            // 0: no limit
  std::optional<std::int64_t> extra_memory_bytes = std::nullopt;  // 0 is a limit
  bool free_source = false;                                       // as in reshard.h
};

// A plan that has been proved.
class Plan {
 public:
  // On a DGX H100 cluster with as many nodes as the ranks need.
  explicit Plan(const Request& request, const PlanOptions& options = {})
      : Plan(request, nullptr, options) {}
  Plan(const Request& request, const PlanOptions& options, const Topology& topology)
      : Plan(request, topology.get(), options) {}
  // All requests, at least one, planned together.
  static Plan job(const std::vector<Request>& requests, const PlanOptions& options = {}) {
    return job_on(nullptr, requests, options);
  }
  static Plan job(const std::vector<Request>& requests, const PlanOptions& options,
                  const Topology& topology) {
    return job_on(topology.get(), requests, options);
  }
  // The same for the requests in a file; without a topology on the one that the file names, if any.
  static Plan job_from_file(const std::string& path, const PlanOptions& options = {}) {
    return job_from_file_on(nullptr, path, options);
  }
  static Plan job_from_file(const std::string& path, const PlanOptions& options,
                            const Topology& topology) {
    return job_from_file_on(topology.get(), path, options);
  }
  // The same for the text of such a file.
  static Plan job_from_text(const std::string& text, const PlanOptions& options = {}) {
    return job_from_text_on(nullptr, text, options);
  }
  static Plan job_from_text(const std::string& text, const PlanOptions& options,
                            const Topology& topology) {
    return job_from_text_on(topology.get(), text, options);
  }
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
  // Its texts are valid as long as a copy of this plan.
  reshard_tensor tensor(std::int32_t tensor) const {
    return detail::asked<reshard_tensor>(
        [&](auto* out) { return reshard_plan_get_tensor(get(), tensor, out); });
  }
  std::vector<reshard_tensor> tensors() const {
    return detail::listed(facts().tensor_count, [&](std::int32_t i) { return tensor(i); });
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
      : Plan(planned(options, [&](const reshard_plan_options* asked, reshard_plan** out) {
          return reshard_plan_create(request.get(), topology, asked, out);
        })) {}
  static Plan job_on(const reshard_topology* topology, const std::vector<Request>& requests,
                     const PlanOptions& options) {
    std::vector<const reshard_request*> all;
    for (const Request& request : requests) all.push_back(request.get());
    return Plan(planned(options, [&](const reshard_plan_options* asked, reshard_plan** out) {
      return reshard_plan_create_job(all.data(), static_cast<std::int32_t>(all.size()), topology,
                                     asked, out);
    }));
  }
  static Plan job_from_file_on(const reshard_topology* topology, const std::string& path,
                               const PlanOptions& options) {
    return Plan(planned(options, [&](const reshard_plan_options* asked, reshard_plan** out) {
      return reshard_plan_create_job_from_file(path.c_str(), topology, asked, out);
    }));
  }
  static Plan job_from_text_on(const reshard_topology* topology, const std::string& text,
                               const PlanOptions& options) {
    return Plan(planned(options, [&](const reshard_plan_options* asked, reshard_plan** out) {
      return reshard_plan_create_job_from_text(text.data(), static_cast<std::int64_t>(text.size()),
                                               topology, asked, out);
    }));
  }
  // The handle that create(&options, &handle) makes.
  template <class Create>
  static std::shared_ptr<const reshard_plan> planned(const PlanOptions& options, Create&& create) {
    return detail::made<reshard_plan>(
        [&](reshard_plan** out) {
          reshard_plan_options asked = RESHARD_INIT(reshard_plan_options);
          asked.planner = options.planner.c_str();
          asked.memory_limit_bytes = options.memory_limit_bytes;
          asked.extra_memory_bytes = options.extra_memory_bytes.value_or(0);
          asked.no_extra_memory = options.extra_memory_bytes == 0 ? 1 : 0;
          asked.free_source = options.free_source ? 1 : 0;
          return create(&asked, out);
        },
        reshard_plan_free);
  }
  reshard_times times_on(const reshard_topology* topology) const {
    return detail::asked<reshard_times>(
        [&](auto* out) { return reshard_plan_get_times(get(), topology, out); });
  }

  std::shared_ptr<const reshard_plan> handle_;
};

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

#include <reshard/reshard_buffers.hpp>
#include <reshard/reshard_program.hpp>

#endif  // RESHARD_RESHARD_HPP
