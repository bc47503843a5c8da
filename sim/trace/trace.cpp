// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/trace_fields.h"
#include "sim/trace/trace_links.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMaxNamedRanks = std::int64_t{1}
                                        << 25;  // what all operations and meshes may hold together
constexpr std::size_t kMaxOperations = std::size_t{1} << 24;
constexpr std::int64_t kMaxDurationPs = 1'000'000'000'000'000'000;

class Reader {
 public:
  Reader(std::istream& in, const std::string& file) : lines_(in, file) { trace_.file = file; }

  Trace read() {
    bool headed = false;
    std::string line;
    while (lines_.next(line)) {
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      place_ = fmt::format("{}:{}", trace_.file, lines_.line_number());
      TraceJson json = parse_json_line(line, place_);
      TraceFields fields(json, place_);
      if (headed)
        read_operation(fields);
      else
        read_header(fields);
      headed = true;
    }
    if (!headed)
      throw InputError(
          fmt::format("{}: expected a header such as {{\"reshard_trace\": 1}} as the first line, "
                      "found an empty file",
                      trace_.file));
    resolve_after(trace_, after_);
    match_messages(trace_);
    return std::move(trace_);
  }

 private:
  // From here on: one field each, with FILE:LINE in front of what the parsers of layouts say.
  template <typename Parse>
  auto placed(Parse parse) {
    try {
      return parse();
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  }

  void count_ranks(std::size_t ranks) {
    named_ranks_ += static_cast<std::int64_t>(ranks);
    if (named_ranks_ > kMaxNamedRanks)
      throw InputError(fmt::format("{}: expected at most {} ranks over all lines, found more",
                                   place_, kMaxNamedRanks));
  }

  void read_header(TraceFields& fields) {
    fields.integer("reshard_trace", 1, 1);
    trace_.topology =
        fields.optional_string("topology", "a topology such as \"dgx-h100:2\"").value_or("");
    constexpr std::string_view kWhat = "an object of meshes such as {\"train\": \"dp=8,tp=8\"}";
    if (const TraceJson* meshes = fields.find("meshes")) {
      if (!meshes->is_object()) fields.fail("meshes", kWhat, *meshes);
      for (const auto& [name, mesh] : meshes->items()) meshes_.emplace(name, read_mesh(name, mesh));
    }
    fields.refuse_others("the header");
  }

  MeshRef read_mesh(const std::string& name, const TraceJson& json) {
    std::string field = fmt::format("mesh {}", reshard::quoted(name));
    std::string shape, ranks;
    if (json.is_string()) {
      shape = json.get<std::string>();
    } else if (json.is_object()) {
      TraceFields fields(json, place_);
      shape = fields.string("mesh", "a mesh such as \"dp=8,tp=8\"");
      if (fields.has("ranks")) ranks = ranks_text(fields.ranks("ranks"));
      fields.refuse_others("a mesh");
    } else {
      throw InputError(fmt::format(
          "{}: {}: expected text such as \"dp=8,tp=8\" or an object with mesh and ranks", place_,
          field));
    }
    MeshRef mesh =
        placed([&] { return std::make_shared<const Mesh>(parse_mesh(shape, ranks, field)); });
    count_ranks(mesh->ranks().size());
    return mesh;
  }

  MeshRef mesh_of(const std::string& key, const std::string& name) const {
    auto it = meshes_.find(name);
    if (it != meshes_.end()) return it->second;
    throw InputError(fmt::format("{}: {}: expected the name of a mesh of the header, found {}",
                                 place_, key, reshard::quoted(name)));
  }

  void read_operation(TraceFields& fields) {
    if (trace_.operations.size() == kMaxOperations)
      throw InputError(
          fmt::format("{}: expected at most {} operations, found more", place_, kMaxOperations));
    TraceOperation operation;
    operation.line = lines_.line_number();
    constexpr std::string_view kOps = "redistribute, compute, send, recv or collective";
    const TraceJson& op = fields.required("op", kOps);
    std::string text = op.is_string() ? op.get<std::string>() : std::string();
    read_place(fields, operation);
    if (text == "redistribute")
      operation.body = read_redistribute(fields);
    else if (text == "compute")
      operation.body = read_compute(fields);
    else if (text == "send" || text == "recv")
      operation.body =
          read_end(fields, text == "send" ? TraceEnd::Side::Send : TraceEnd::Side::Receive);
    else if (text == "collective")
      operation.body = read_collective(fields);
    else
      fields.fail("op", kOps, op);
    fields.refuse_others(text);
    trace_.operations.push_back(std::move(operation));
  }

  // What every operation may have.
  void read_place(TraceFields& fields, TraceOperation& operation) {
    if (const TraceJson* id = fields.find("id")) {
      operation.id = fields.id_of(*id, "id");
      if (operation.id.empty()) fields.fail("id", "text of at least one character", *id);
    }
    operation.name = fields.optional_string("name", "text").value_or("");
    operation.stream = static_cast<std::int32_t>(
        fields.integer("stream", 0, std::numeric_limits<std::int32_t>::max(), 0));
    std::vector<std::string>& after = after_.emplace_back();
    const TraceJson* ids = fields.find("after");
    if (ids == nullptr) return;
    if (!ids->is_array()) {
      after.push_back(fields.id_of(*ids, "after"));
      return;
    }
    for (const TraceJson& id : *ids) after.push_back(fields.id_of(id, "after"));
  }

  TraceRedistribute read_redistribute(TraceFields& fields) {
    std::string shape = fields.shape("shape"),
                dtype = fields.string("dtype", "a dtype such as \"bf16\"");
    constexpr std::string_view kWhat = "placements such as \"S(0)R\"";
    std::string from = fields.string("from", kWhat), to = fields.string("to", kWhat);
    std::string mesh = fields.string("mesh", "the name of a mesh of the header");
    std::string to_mesh =
        fields.optional_string("to_mesh", "the name of a mesh of the header").value_or(mesh);
    std::shared_ptr<const Request>& known = requests_[{shape, dtype, from, to, mesh, to_mesh}];
    if (!known) {
      MeshRef source = mesh_of("mesh", mesh), destination = mesh_of("to_mesh", to_mesh);
      known = placed([&] {
        return std::make_shared<const Request>(parse_layout(shape, dtype, source, from, "from"),
                                               parse_layout(shape, dtype, destination, to, "to"));
      });
    }
    count_ranks(known->ranks().size());
    return {known};
  }

  TraceCompute read_compute(TraceFields& fields) {
    TraceCompute out{fields.ranks("ranks"), fields.integer("duration_ps", 0, kMaxDurationPs)};
    count_ranks(out.ranks.size());
    return out;
  }

  TraceEnd read_end(TraceFields& fields, TraceEnd::Side side) {
    TraceEnd out{side,
                 read_rank(fields, "rank"),
                 read_rank(fields, "peer"),
                 fields.integer("bytes", 0, kMaxBytes),
                 fields.integer("tag", 0, kMaxBytes, 0),
                 -1};
    if (out.rank == out.peer)
      throw InputError(fmt::format("{}: peer: expected another rank, found the rank's own, {}",
                                   place_, to_int(out.rank)));
    count_ranks(1);
    return out;
  }

  static Rank read_rank(TraceFields& fields, const char* key) {
    return Rank{static_cast<std::int32_t>(fields.integer(key, 0, kMaxRanks - 1))};
  }

  TraceCollective read_collective(TraceFields& fields) {
    constexpr std::array kKinds{CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                CollectiveKind::AllReduce, CollectiveKind::AllToAll};
    constexpr std::string_view kWhat = "all_gather, reduce_scatter, all_reduce or all_to_all";
    std::string text = fields.string("kind", kWhat);
    auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                             [&](CollectiveKind k) { return reshard::text(k) == text; });
    if (kind == kKinds.end()) fields.fail("kind", kWhat, *fields.find("kind"));
    TraceCollective out{*kind, default_algorithm(*kind), fields.ranks("ranks"),
                        fields.integer("bytes", 0, kMaxBytes)};
    if (std::optional<std::string> algorithm =
            fields.optional_string("algorithm", "ring, direct or tree"))
      out.algorithm = read_algorithm(*algorithm, *kind);
    count_ranks(out.ranks.size());
    // Refuses what no memory holds.
    if (out.ranks.size() >= 2)
      placed([&] {
        return Expansion(out.kind, out.algorithm, static_cast<std::int32_t>(out.ranks.size()),
                         out.bytes)
            .size();
      });
    return out;
  }

  Algorithm read_algorithm(const std::string& text, CollectiveKind kind) const {
    for (auto [name, algorithm] : {std::pair{"ring", Algorithm::Ring},
                                   {"direct", Algorithm::Direct},
                                   {"tree", Algorithm::Tree}})
      if (text == name && has_algorithm(kind, algorithm)) return algorithm;
    throw InputError(fmt::format(
        "{}: algorithm: expected one that {} has (ring, direct; all_reduce also tree), found {}",
        place_, reshard::text(kind), reshard::quoted(text)));
  }

  LineReader lines_;
  Trace trace_;
  AfterIds after_;
  std::string place_;
  std::map<std::string, MeshRef> meshes_;
  std::map<std::array<std::string, 6>, std::shared_ptr<const Request>> requests_;
  std::int64_t named_ranks_ = 0;
};

}  // namespace

std::string Trace::place_of(OpId op) const { return fmt::format("{}:{}", file, line_of(op)); }

Trace parse_trace(std::istream& in, const std::string& file) { return Reader(in, file).read(); }

Trace read_trace(const std::string& path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: expected a trace, found no such file", path));
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError(fmt::format("{}: expected a trace, found a directory", path));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(
        fmt::format("{}: expected a readable file, found: {}", path, std::strerror(errno)));
  return parse_trace(file, path);
}

std::vector<Rank> ranks_of(const TraceOperation& operation) {
  if (const auto* redistribute = std::get_if<TraceRedistribute>(&operation.body))
    return redistribute->request->ranks();
  if (const auto* compute = std::get_if<TraceCompute>(&operation.body)) return compute->ranks;
  if (const auto* collective = std::get_if<TraceCollective>(&operation.body))
    return collective->ranks;
  return {std::get<TraceEnd>(operation.body).rank};
}

std::int64_t highest_rank(const Trace& trace) {
  std::int64_t highest = -1;
  for (const TraceOperation& operation : trace.operations)
    for (Rank rank : ranks_of(operation)) highest = std::max<std::int64_t>(highest, to_int(rank));
  return highest;
}

std::string_view op_text(const TraceOperation& operation) {
  if (std::holds_alternative<TraceRedistribute>(operation.body)) return "redistribute";
  if (std::holds_alternative<TraceCompute>(operation.body)) return "compute";
  if (std::holds_alternative<TraceCollective>(operation.body)) return "collective";
  return std::get<TraceEnd>(operation.body).side == TraceEnd::Side::Send ? "send" : "recv";
}

}  // namespace reshard::sim
