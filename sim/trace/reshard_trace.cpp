// SPDX-License-Identifier: BSD-3-Clause
// Reader of Reshard's own format: JSON lines, a header and then one operation per line
// (traces/README.md).
#include <array>
#include <limits>
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "sim/trace/jobs/named_order.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/named_layouts.h"
#include "sim/trace/operator_line.h"
#include "sim/trace/trace.h"

namespace reshard::sim {
namespace {

class Reader {
 public:
  // `requests`: a file of requests; its lines are redistributions without an `op`.
  Reader(LineReader& lines, TraceBuilder& builder, bool requests)
      : lines_(lines), builder_(builder), requests_only_(requests) {}

  void read() {
    bool headed = false;
    std::string line;
    while (lines_.next(line)) {
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      builder_.at_line(lines_.line_number());
      TraceJson json = parse_json_line(line, builder_.place());
      TraceFields fields(json, builder_.place());
      if (headed || (requests_only_ && !fields.has("reshard_trace")))
        read_operation(fields);
      else
        read_header(fields);
      headed = true;
    }
    if (!headed && requests_only_)
      builder_.fail("expected a request as the first line, found an empty file");
    if (!headed)
      builder_.fail(
          "expected a header such as {\"reshard_trace\": 1} as the first line, found an empty "
          "file");
  }

 private:
  void read_header(TraceFields& fields) {
    fields.integer("reshard_trace", 1, 1);
    builder_.set_topology(
        fields.optional_string("topology", "a topology such as \"dgx-h100:2\"").value_or(""));
    if (const TraceJson* recorded = fields.find("recorded")) {
      if (!recorded->is_object())
        fields.fail("recorded", "an object such as {\"device\": \"cpu\", \"devices_per_host\": 1}",
                    *recorded);
      builder_.set_recorded(read_recorded(*recorded));
    }
    constexpr std::string_view kWhat = "an object of meshes such as {\"train\": \"dp=8,tp=8\"}";
    transport_ = read_transport(fields);
    if (const TraceJson* meshes = fields.find("meshes")) {
      if (!meshes->is_object()) fields.fail("meshes", kWhat, *meshes);
      for (const auto& [name, mesh] : meshes->items()) meshes_.emplace(name, read_mesh(name, mesh));
    }
    layouts_.read(fields);
    constexpr std::string_view kComms = "an object of ranks such as {\"tp\": \"0-7\"}";
    if (const TraceJson* comms = fields.find("comms")) {
      if (!comms->is_object()) fields.fail("comms", kComms, *comms);
      TraceFields ranks(*comms, builder_.place());
      for (const auto& [name, value] : comms->items())
        builder_.communicator(name, ranks.ranks(name.c_str()));
    }
    builder_.set_implicit_launch_order(fields.boolean("launch_order_implicit", false));
    fields.refuse_others("the header");
  }

  TraceRecording read_recorded(const TraceJson& json) {
    TraceFields fields(json, builder_.place());
    TraceRecording out;
    out.torch = fields.optional_string("torch", "a version such as \"2.15.0\"").value_or("");
    out.device = fields.optional_string("device", "a kind such as \"cpu\"").value_or("");
    out.devices_per_host =
        static_cast<std::int32_t>(fields.integer("devices_per_host", 1, kMaxRanks));
    fields.refuse_others("recorded");
    return out;
  }

  MeshRef read_mesh(const std::string& name, const TraceJson& json) {
    std::string field = fmt::format("mesh {}", reshard::quoted(name));
    std::string shape, ranks;
    if (json.is_string()) {
      shape = json.get<std::string>();
    } else if (json.is_object()) {
      TraceFields fields(json, builder_.place());
      shape = fields.string("mesh", "a mesh such as \"dp=8,tp=8\"");
      if (fields.has("ranks")) ranks = ranks_text(fields.ranks("ranks"));
      fields.refuse_others("a mesh");
    } else {
      builder_.fail(fmt::format(
          "{}: expected text such as \"dp=8,tp=8\" or an object with mesh and ranks", field));
    }
    MeshRef mesh = builder_.placed(
        [&] { return std::make_shared<const Mesh>(parse_mesh(shape, ranks, field)); });
    builder_.count_ranks(mesh->ranks().size());
    return mesh;
  }

  MeshRef mesh_of(const std::string& key, const std::string& name) const {
    auto it = meshes_.find(name);
    if (it != meshes_.end()) return it->second;
    if (requests_only_)
      return builder_.placed(
          [&] { return std::make_shared<const Mesh>(parse_mesh(name, "", key)); });
    builder_.fail(fmt::format("{}: expected the name of a mesh of the header, found {}", key,
                              reshard::quoted(name)));
  }

  void read_operation(TraceFields& fields) {
    constexpr std::string_view kOps =
        "tensor, call, redistribute, compute, send, recv, isend, irecv, collective or fault";
    const TraceJson redistribute = "redistribute";
    const TraceJson& op =
        requests_only_ && !fields.has("op") ? redistribute : fields.required("op", kOps);
    std::string text = op.is_string() ? op.get<std::string>() : std::string();
    if (requests_only_ && text != "redistribute") fields.fail("op", "redistribute", op);
    std::string name = read_description(fields);
    TraceIssue how = requests_only_ ? TraceIssue{} : read_issue(fields, text);
    TraceBody body;
    if (text == "tensor") {
      body = operators_.read_tensor(fields);
    } else if (text == "call") {
      body = operators_.read_call(fields);
    } else if (text == "redistribute" && fields.has("tensor")) {
      body = operators_.read_redistribute(fields);
    } else if (text == "redistribute") {
      TraceRedistribute read =
          fields.has("requests") ? read_requests(fields) : TraceRedistribute{read_request(fields)};
      for (const Request& request : *read.requests)
        if (const std::string& of = read.requests->size() == 1 ? name : request.name(); !of.empty())
          how.tensors.push_back(builder_.tensor(of, request.shape(), request.dtype()));
      body = std::move(read);
    } else if (text == "compute") {
      body = TraceCompute{fields.ranks("ranks"), fields.integer("duration_ps", 0, kMaxDurationPs),
                          fields.integer("blocks", 0, kMaxBytes, 0)};
    } else if (text == "send" || text == "isend") {
      body = read_end(fields, TraceEnd::Side::Send);
    } else if (text == "recv" || text == "irecv") {
      body = read_end(fields, TraceEnd::Side::Receive);
    } else if (text == "collective") {
      body = read_collective(fields);
      std::shared_ptr<const TracePlace> place = OperatorLineReader::read_place(fields, builder_);
      if (auto* collective = std::get_if<TraceCollective>(&body)) collective->place = place;
    } else if (text == "fault") {
      body = read_fault(fields);
    } else {
      fields.fail("op", kOps, op);
    }
    builder_.add(std::move(body), std::move(how));
    fields.refuse_others(text);
  }

  TraceIssue read_issue(TraceFields& fields, std::string_view op) const {
    TraceIssue how;
    how.stream = static_cast<std::int32_t>(
        fields.integer("stream", 0, std::numeric_limits<std::int32_t>::max(), 0));
    if (op == "compute" || op == "fault" || op == "tensor" || op == "call") return how;
    how.transport = read_transport(fields);
    if (const TraceJson* comm = fields.find("comm")) {
      how.communicator = fields.id_of(*comm, "comm");
      if (how.communicator.empty())
        fields.fail("comm", "the name of a communicator, at least one character", *comm);
    }
    bool never_waits = op == "isend" || op == "irecv";
    how.async = fields.boolean("async", never_waits) || never_waits;
    if (const TraceJson* batch = fields.find("batch")) how.batch = fields.id_of(*batch, "batch");
    return how;
  }

  // The transport of the operation, else that of the header; none: that of the run.
  std::optional<TransportKind> read_transport(TraceFields& fields) const {
    const TraceJson* given = fields.find("transport");
    if (given == nullptr) return transport_;
    std::optional<TransportKind> kind;
    if (given->is_string()) kind = find_transport(given->get_ref<const std::string&>());
    if (!kind) fields.fail("transport", transport_names(), *given);
    return kind;
  }

  // Reads the fields that every operation can have: id, name, after. Returns the name.
  std::string read_description(TraceFields& fields) {
    std::string id = read_id(fields);
    std::string name = fields.optional_string("name", "text").value_or("");
    builder_.describe(std::move(id), name, read_after(fields));
    return name;
  }

  static std::string read_id(TraceFields& fields) {
    const TraceJson* given = fields.find("id");
    if (given == nullptr) return {};
    std::string id = fields.id_of(*given, "id");
    if (id.empty()) fields.fail("id", "text of at least one character", *given);
    return id;
  }

  static std::vector<std::string> read_after(TraceFields& fields) {
    std::vector<std::string> after;
    const TraceJson* ids = fields.find("after");
    if (ids == nullptr) return after;
    if (!ids->is_array()) return {fields.id_of(*ids, "after")};
    for (const TraceJson& each : *ids) after.push_back(fields.id_of(each, "after"));
    return after;
  }

  // Each has the fields of a line of one, except those on when it runs: `after` is the order within
  // the job.
  TraceRedistribute read_requests(TraceFields& fields) {
    constexpr std::string_view kWhat = "a list of requests, at least one";
    const TraceJson& list = fields.required("requests", kWhat);
    if (!list.is_array() || list.empty()) fields.fail("requests", kWhat, list);
    auto out = std::make_shared<std::vector<Request>>();
    NamedOrder order;
    for (const TraceJson& each : list) {
      TraceFields own(each, builder_.place());
      std::string name = own.optional_string("name", "text").value_or(""), id = read_id(own);
      order.add(std::move(id), read_after(own));
      out->push_back(read_request(own)->front().named(std::move(name)));
      own.refuse_others("a request");
      builder_.count_ranks(out->back().ranks().size());
    }
    return {std::move(out), builder_.placed([&] { return stages_of(order.resolved()); })};
  }

  std::shared_ptr<const std::vector<Request>> read_request(TraceFields& fields) {
    std::string shape = fields.shape("shape"),
                dtype = fields.string("dtype", "a dtype such as \"bf16\"");
    std::string from = layouts_.placements(fields, "from"), to = layouts_.placements(fields, "to");
    std::string mesh = fields.string("mesh", "the name of a mesh of the header");
    std::string to_mesh =
        fields.optional_string("to_mesh", "the name of a mesh of the header").value_or(mesh);
    std::shared_ptr<const std::vector<Request>>& known =
        requests_[{shape, dtype, from, to, mesh, to_mesh}];
    if (!known) {
      MeshRef source = mesh_of("mesh", mesh), destination = mesh_of("to_mesh", to_mesh);
      known = builder_.placed([&] {
        Layout before = parse_layout(shape, dtype, source, from, "from");
        return std::make_shared<const std::vector<Request>>(std::vector<Request>{
            Request(std::move(before), parse_layout(shape, dtype, destination, to, "to"))});
      });
    }
    return known;
  }

  std::optional<DType> read_dtype(TraceFields& fields) const {
    std::optional<std::string> text = fields.optional_string("dtype", "a dtype such as \"bf16\"");
    if (!text) return std::nullopt;
    return builder_.placed([&] { return parse_dtype(*text); });
  }

  TraceEnd read_end(TraceFields& fields, TraceEnd::Side side) const {
    TraceEnd end{side,
                 read_rank(fields, "rank"),
                 read_rank(fields, "peer"),
                 fields.integer("bytes", 0, kMaxBytes),
                 fields.integer("tag", 0, kMaxBytes, 0),
                 read_dtype(fields)};
    if (side == TraceEnd::Side::Send && fields.has("cap_bytes_per_s"))
      end.cap_bytes_per_s = fields.integer("cap_bytes_per_s", 1, kMaxBytes);
    return end;
  }

  // A fault has exactly one of share, latency_ps and late_ps.
  TraceFault read_fault(TraceFields& fields) const {
    TraceFault fault{TraceFault::Kind::Share, {}, {}, 0};
    if (fields.has("link")) fault.link = fields.string("link", "the name of a link");
    if (fields.has("rank")) fault.rank = read_rank(fields, "rank");
    if (fault.link.empty() != fault.rank.has_value())
      builder_.fail("fault: expected one of link and rank");
    int kinds = 0;
    if (fields.has("share")) {
      fault.amount = fields.millionths("share", fault.rank ? 1 : 0);
      ++kinds;
    }
    for (auto [key, kind] : {std::pair{"latency_ps", TraceFault::Kind::Latency},
                             std::pair{"late_ps", TraceFault::Kind::Late}})
      if (fields.has(key)) {
        fault.kind = kind;
        fault.amount = fields.integer(key, 0, kMaxDurationPs);
        ++kinds;
      }
    if (kinds != 1) builder_.fail("fault: expected one of share, latency_ps and late_ps");
    if (fault.kind == TraceFault::Kind::Late) {
      if (!fault.rank) builder_.fail("late_ps: expected it only with rank, found it with link");
    } else {
      fault.from_ps = fields.integer("from_ps", 0, kMaxDurationPs, 0);
    }
    return fault;
  }

  // A collective of all its ranks or, with the field `rank`, one rank's call of it.
  TraceBody read_collective(TraceFields& fields) const {
    BareKind kind = read_kind(fields);
    Algorithm algorithm = default_algorithm(kind);
    if (std::optional<std::string> given =
            fields.optional_string("algorithm", "ring, direct or tree"))
      algorithm = read_algorithm(*given, kind);
    std::int64_t bytes = kind == BareKind::Barrier ? 0 : fields.integer("bytes", 0, kMaxBytes);
    Rank root = read_root(fields, kind);
    if (!fields.has("rank"))
      return TraceCollective{kind, algorithm, fields.ranks("ranks"), bytes, nullptr, root};
    TraceCall call{kind, algorithm, read_rank(fields, "rank"), bytes, read_dtype(fields)};
    call.root = root;
    if (fields.has("seq")) call.seq = fields.integer("seq", 0, kMaxBytes);
    if (fields.has("ranks")) call.ranks = fields.ranks("ranks");
    if (call.ranks.empty() && !fields.has("comm"))
      builder_.fail("comm: expected comm or ranks with rank, found neither");
    if (!call.ranks.empty() && kind.has_root() &&
        std::find(call.ranks.begin(), call.ranks.end(), root) == call.ranks.end())
      builder_.fail(fmt::format("root: expected one of the ranks {}, found {}",
                                ranks_text(call.ranks), to_int(root)));
    return call;
  }

  static BareKind read_kind(TraceFields& fields) {
    constexpr std::string_view kWhat =
        "all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, gather, scatter or "
        "barrier";
    std::string found = fields.string("kind", kWhat);
    for (int i = 0; i < BareKind::kCount; ++i)
      if (BareKind kind(static_cast<BareKind::Value>(i)); text(kind) == found) return kind;
    fields.fail("kind", kWhat, *fields.find("kind"));
  }

  // The root of a broadcast, reduce, gather or scatter, as a rank of the job; -1 for other kinds.
  Rank read_root(TraceFields& fields, BareKind kind) const {
    if (kind.has_root()) return read_rank(fields, "root");
    if (fields.has("root"))
      builder_.fail(fmt::format(
          "root: expected it only for a broadcast, reduce, gather or scatter, found it for {} {}",
          text(kind).front() == 'a' ? "an" : "a", text(kind)));
    return Rank{-1};
  }

  static Rank read_rank(TraceFields& fields, const char* key) {
    return Rank{static_cast<std::int32_t>(fields.integer(key, 0, kMaxRanks - 1))};
  }

  Algorithm read_algorithm(const std::string& text, BareKind kind) const {
    std::string there;
    for (auto [name, algorithm] : {std::pair{"ring", Algorithm::Ring},
                                   {"direct", Algorithm::Direct},
                                   {"tree", Algorithm::Tree}}) {
      if (!has_algorithm(kind, algorithm)) continue;
      if (text == name) return algorithm;
      there += fmt::format("{}{}", there.empty() ? "" : ", ", name);
    }
    builder_.fail(fmt::format("algorithm: expected one that {} has ({}), found {}",
                              reshard::text(kind), there, reshard::quoted(text)));
  }

  LineReader& lines_;
  TraceBuilder& builder_;
  bool requests_only_;
  std::map<std::string, MeshRef> meshes_;
  NamedLayouts layouts_;
  std::optional<TransportKind> transport_;  // of the header
  std::map<std::array<std::string, 6>, std::shared_ptr<const std::vector<Request>>> requests_;
  OperatorLineReader operators_{builder_, meshes_};
};

}  // namespace

bool is_reshard_trace(std::string_view start) {
  return start.substr(0, start.find('\n')).find("\"reshard_trace\"") != std::string_view::npos;
}

void read_reshard_trace(LineReader& lines, TraceBuilder& builder) {
  Reader(lines, builder, false).read();
}

void read_request_lines(LineReader& lines, TraceBuilder& builder) {
  Reader(lines, builder, true).read();
}

}  // namespace reshard::sim
