// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/validated.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/layout/mesh.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

class Report {
 public:
  Report(const Json& whole, const std::string& file) : whole_(whole), file_(file) {}

  MeasuredTable read() {
    if (std::string name = text(whole_, "/backend/name"); name != "nccl")
      throw InputError(
          fmt::format("{}: expected a run of backend nccl, whose times are NCCL's, found "
                      "{}",
                      file_, reshard::quoted(name)));
    MeasuredTable out;
    const Json* moving = the_moving_step();
    std::optional<CollectiveKind> kind = moving == nullptr ? std::nullopt : kind_of(*moving);
    if (!kind) {
      ++out.passed_over;
      return out;
    }
    std::int64_t n = ranks_, received = number(*moving, "/bytes", 1, kMaxBytes),
                 time_ps = number(*moving, "/measured_ps/median", 1, kMaxDurationPs);
    // `received` sums over all ranks, each of which receives the parts of all other ranks; in the
    // ring of an all_reduce, twice.
    std::int64_t bytes = received / ((n - 1) * (*kind == CollectiveKind::AllReduce ? 2 : 1));
    out.rows.push_back(
        {*kind, static_cast<std::int32_t>(n), std::max<std::int64_t>(1, bytes), time_ps, file_});
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& expected) const {
    throw InputError(
        fmt::format("{}: {}: expected {}, found something else", file_, where, expected));
  }
  const Json& at(const Json& of, const std::string& where) const {
    Json::json_pointer pointer(where);
    if (!of.contains(pointer)) fail(where, "a field of reshard.validate/1");
    return of.at(pointer);
  }
  std::string text(const Json& of, const std::string& where) const {
    const Json& found = at(of, where);
    if (!found.is_string()) fail(where, "a text");
    return found.get<std::string>();
  }
  std::int64_t number(const Json& of, const std::string& where, std::int64_t low,
                      std::int64_t high) const {
    std::optional<std::int64_t> found = integer_in(at(of, where), low, high);
    if (!found) fail(where, fmt::format("an integer from {} to {}", low, high));
    return *found;
  }

  // The only step that sends, if all others are copies; else null.
  const Json* the_moving_step() const {
    const Json& steps = at(whole_, "/steps");
    if (!steps.is_array()) fail("/steps", "a list");
    const Json* found = nullptr;
    for (const Json& step : steps) {
      if (text(step, "/kind") == "copy") continue;
      if (found != nullptr) return nullptr;
      found = &step;
    }
    return found;
  }

  // The collective of a step over ranks 0 .. n-1 of a mesh of one axis, the same before and after.
  std::optional<CollectiveKind> kind_of(const Json& step) {
    Mesh mesh = parse_mesh(text(whole_, "/request/mesh"));
    ranks_ = mesh.size();
    std::string all = fmt::format("0-{}", ranks_ - 1);
    bool one_group = ranks_ >= 2 && mesh.axes() == 1 && text(whole_, "/request/ranks") == all &&
                     text(whole_, "/request/to_ranks") == all && text(step, "/ranks") == all;
    if (!one_group) return std::nullopt;
    std::string kind = text(step, "/kind");
    if (kind != "exchange") return collective_named(kind);
    // From the shards of one dim to even shards of another.
    std::string from = text(whole_, "/request/from"), to = text(whole_, "/request/to");
    bool shards = from != to && from.starts_with("S(") && to.starts_with("S(");
    std::int64_t most = number(whole_, "/bytes_received_max", 0, kMaxBytes / ranks_),
                 received = number(step, "/bytes", 0, kMaxBytes);
    return shards && most * ranks_ == received ? std::optional(CollectiveKind::AllToAll)
                                               : std::nullopt;
  }

  const Json& whole_;
  const std::string& file_;
  std::int64_t ranks_ = 0;
};

}  // namespace

bool is_validated(const Json& whole) {
  return whole.is_object() && whole.contains("schema") && whole["schema"] == "reshard.validate/1";
}

MeasuredTable parse_validated(const Json& whole, const std::string& file) {
  return Report(whole, file).read();
}

}  // namespace reshard::sim
