// SPDX-License-Identifier: BSD-3-Clause
// What tests of jobs through the C API share: requests by their texts, files of requests, plans of
// both, and what they and the command print.
#pragma once

#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace reshard::test {

struct Asked {
  const char *name, *shape, *dtype, *from, *to, *mesh, *ranks, *to_mesh, *to_ranks;
  const char* id = nullptr;
  std::vector<const char*> after = {};
};

inline reshard_request* request_of(const Asked& asked) {
  reshard_request_texts texts = RESHARD_INIT(reshard_request_texts);
  texts.mesh = asked.mesh;
  texts.ranks = asked.ranks;
  texts.to_mesh = asked.to_mesh;
  texts.to_ranks = asked.to_ranks;
  texts.shape = asked.shape;
  texts.dtype = asked.dtype;
  texts.from = asked.from;
  texts.to = asked.to;
  texts.name = asked.name;
  texts.id = asked.id;
  texts.after = asked.after.data();
  texts.after_count = static_cast<std::int32_t>(asked.after.size());
  reshard_request* out = nullptr;
  REQUIRE(reshard_request_create(&texts, &out) == RESHARD_OK);
  return out;
}

inline reshard_plan_options by(const char* planner) {
  reshard_plan_options out = RESHARD_INIT(reshard_plan_options);
  out.planner = planner;
  return out;
}

// The job's requests, freed at the end; a plan keeps what it needs.
struct Requests {
  explicit Requests(const std::vector<Asked>& job) {
    for (const Asked& asked : job) all.push_back(request_of(asked));
  }
  Requests(const Requests&) = delete;
  ~Requests() {
    for (reshard_request* each : all) reshard_request_free(each);
  }
  std::int32_t count() const { return static_cast<std::int32_t>(all.size()); }
  std::vector<reshard_request*> all;
};

using PlanHandle = std::unique_ptr<reshard_plan, void (*)(reshard_plan*)>;

inline PlanHandle plan_of(const std::vector<Asked>& job, const char* planner) {
  Requests requests(job);
  reshard_plan_options options = by(planner);
  reshard_plan* plan = nullptr;
  INFO(reshard_last_error());
  REQUIRE(reshard_plan_create_job(requests.all.data(), requests.count(), nullptr, &options,
                                  &plan) == RESHARD_OK);
  return {plan, reshard_plan_free};
}

// A file of requests, removed at the end.
struct JobFile {
  explicit JobFile(const std::string& text)
      : path("/tmp/reshard_capi_job_" + std::to_string(getpid()) + ".jsonl") {
    std::ofstream(path) << text;
  }
  JobFile(const JobFile&) = delete;
  ~JobFile() { std::remove(path.c_str()); }
  std::string path;
};

template <class Call>
std::string taken_text(Call&& call) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  std::int32_t code = call(&text, &bytes);
  INFO(reshard_last_error());
  REQUIRE(code == RESHARD_OK);
  std::string out(text, static_cast<std::size_t>(bytes));
  reshard_text_free(text);
  return out;
}

inline std::string report(const reshard_plan* plan, const char* form) {
  return taken_text([&](auto... out) { return reshard_plan_report(plan, form, out...); });
}

inline std::string command(const std::vector<const char*>& words) {
  return taken_text([&](auto... out) {
    return reshard_command(words.data(), static_cast<std::int32_t>(words.size()), out...);
  });
}

inline std::string digest(const reshard_plan* plan) {
  char out[33];
  REQUIRE(reshard_plan_get_digest(plan, out) == RESHARD_OK);
  return out;
}

inline void expect(std::int32_t code, std::int32_t expected, const std::string& what) {
  CHECK(code == expected);
  CHECK_THAT(reshard_last_error(), Catch::Matchers::Contains(what));
}
inline void expect_input_error(std::int32_t code, const std::string& what) {
  expect(code, RESHARD_INPUT_ERROR, what);
}

}  // namespace reshard::test
