// SPDX-License-Identifier: BSD-3-Clause
// A trace: what a job does, operation by operation, independent of the file format.
//
// *Lines* are what a reader saw; messages refer to them. *Operations* are what runs: one line can
// become several, and a front end can insert more between those of two lines. Operation i of the
// trace is operation i of the workload; operations of one (rank, stream) run in their order here.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/layout/request.h"
#include "core/layout/stages.h"
#include "core/topology/machine.h"
#include "core/traffic/bare_collective.h"

namespace reshard::sim {

// One request, or those of a job that move together, with their stages. Equal lines of one request
// share it, and its own name is empty.
struct TraceRedistribute {
  std::shared_ptr<const std::vector<Request>> requests;
  Stages stages = {};
};

struct TraceCompute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
  std::int64_t blocks = 0;  // thread blocks of each of its kernels; 0: not given
};

// One end of a message.
struct TraceEnd {
  enum class Side : std::uint8_t { Send, Receive } side;
  Rank rank, peer;
  std::int64_t bytes, tag;
  std::optional<DType> dtype = {};                   // if given
  std::optional<std::int64_t> cap_bytes_per_s = {};  // at most this rate
  std::int32_t other = -1;  // operation of the other end; -1 if none matches
};

struct TracePlace;  // operator_line.h

struct TraceCollective {
  BareKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;                                 // as in BareCollective
  std::shared_ptr<const TracePlace> place = nullptr;  // if given
  Rank root{-1};                                      // for kinds that have one
};

// One rank's call of a collective.
struct TraceCall {
  BareKind kind;
  Algorithm algorithm;
  Rank rank;
  std::int64_t bytes;
  std::optional<DType> dtype = {};       // if given
  std::optional<std::int64_t> seq = {};  // its number in its communicator, if given
  std::vector<Rank> ranks = {};          // of the communicator, if the line lists them
  std::int32_t first = -1;  // operation of the first call of the collective; -1: not matched
  Rank root{-1};            // for kinds that have one
};

// Something that goes wrong: from a given time on, a link or a rank has only a share of its rate or
// adds a latency; or a rank is late for everything after this line.
struct TraceFault {
  enum class Kind : std::uint8_t { Share, Latency, Late } kind;
  std::string link;  // empty: a fault of `rank`
  std::optional<Rank> rank;
  std::int64_t amount;  // millionths, ps
  std::int64_t from_ps = 0;
};

// A line on named tensors, before dispatch decides what runs for it.
struct OperatorLine;  // operator_line.h
using TraceOperator = std::shared_ptr<const OperatorLine>;

using TraceBody = std::variant<TraceRedistribute, TraceCompute, TraceEnd, TraceCollective,
                               TraceCall, TraceFault, TraceOperator>;

struct TraceLine {
  std::int64_t number;   // in the file
  std::string id, name;  // empty if not given
};

// A tensor that operations work on.
struct TraceTensor {
  std::string name;
  Shape shape;
  DType dtype;
};

struct TraceOperation {
  std::int32_t line;  // index into Trace::lines
  std::int32_t stream;
  TraceBody body;
  std::vector<OpId> after;                 // ascending, each once
  std::vector<std::int32_t> tensors;       // indices into Trace::tensors, of the named ones
  std::optional<TransportKind> transport;  // if it differs from that of the run
  std::int32_t communicator = -1;          // index into Trace::communicators; -1: none
  std::int32_t batch = -1;                 // as Seat::batch
  bool async = false;                      // its stream does not wait for it
};

// `ranks` ascend: those of the header, else of the first line that lists them, else all that use
// the communicator. Without a name: implied by the ranks of an operation.
struct TraceCommunicator {
  std::string name;
  std::vector<Rank> ranks;
};

// One wait of a cycle: `rank` cannot start `line`, which `held_by` orders after the line
// `predecessor`; that line is or matches the line `waits_for` of rank `of`, where the next wait
// starts.
struct TraceWait {
  Rank rank;
  std::int64_t line;
  std::string held_by;       // "stream 0", "communicator 'tp'"
  std::int64_t predecessor;  // a line
  std::int64_t waits_for;    // the next wait's `line`; for the last wait, the first's
  Rank of;
};

// Something that makes a well-formed trace impossible to run: a message without its other end, ends
// that wait for each other. The user's check fails (exit code 1), so this is a value and not an
// exception.
struct TraceFinding {
  std::vector<std::int64_t> lines;    // numbers in the file, ascending
  std::string what;                   // one sentence with "FILE:LINE"
  std::vector<Rank> ranks = {};       // to look at, ascending
  std::vector<TraceWait> cycle = {};  // the cycle of waits, if it is too long for `what`
};

// What a recorder noted about its machine.
struct TraceRecording {
  std::string torch, device;          // empty: not given
  std::int32_t devices_per_host = 1;  // as PyTorch's cost model assumed
};

struct Trace {
  std::string file;
  std::string topology;  // empty if the file names none
  std::optional<TraceRecording> recorded;
  IndexVector<std::int32_t, TraceLine> lines;
  std::vector<TraceTensor> tensors;
  std::vector<TraceCommunicator> communicators;
  bool implicit_launch_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT, from the header
  IndexVector<OpId, TraceOperation> operations;
  std::vector<TraceFinding> findings;  // empty if everything matches

  const TraceLine& line_of(const TraceOperation& operation) const { return lines[operation.line]; }
  const TraceLine& line_of(OpId op) const { return line_of(operations[op]); }
  // "FILE:LINE".
  std::string place_of(OpId op) const;
  // The operation that runs for `op`: for a recv its send, for a call the collective's first call,
  // else `op` itself. Everything must match.
  OpId runs(OpId op) const;
};

// Ranks with a part in the operation, as written; for an end of a message its own rank.
std::vector<Rank> ranks_of(const TraceOperation& operation);
// Whether the trace has lines on named tensors.
bool has_operators(const Trace& trace);
// Whether some collective of the trace has a TracePlace.
bool has_places(const Trace& trace);
// Gives collectives and redistributions without a communicator an unnamed one for their ranks.
void join_own_communicators(Trace& trace);
// Highest rank with a part in an operation; -1 if there is none.
std::int64_t highest_rank(const Trace& trace);

// "redistribute", "compute", "send", "recv", "collective", "fault", "call"; for one rank's call of
// a collective its kind.
std::string_view op_text(const TraceOperation& operation);

class LineReader;
class TraceBuilder;  // below

// A format is one file, its reader, and one row in trace.cpp.
struct TraceFormat {
  std::string_view name, what;
  // Decides by the first 64 KiB of a file.
  bool (*recognise)(std::string_view start);
  // Throws InputError "FILE:LINE: ...".
  void (*read)(LineReader& lines, TraceBuilder& builder);
};
std::span<const TraceFormat> trace_formats();

// Reads a stream in the named format. If the name is empty, the format is detected from the
// content; if none recognises it, the first one reports what is wrong. `file` names the stream in
// messages. Throws InputError for an unknown name, and "FILE:LINE: FIELD: ..." for what a reader or
// the builder refuses. Memory is bounded by the input, and the input by the builder's limits.
Trace parse_trace(std::istream& in, const std::string& file, std::string_view format = {});
// The same for a file, or standard input for "-". Throws InputError for a file that is missing,
// unreadable or a directory.
Trace read_trace(const std::string& path, std::string_view format = {});

// The readers and their recognise functions.
bool is_reshard_trace(std::string_view start);  // reshard_trace.cpp
void read_reshard_trace(LineReader& lines, TraceBuilder& builder);
void read_request_lines(LineReader& lines, TraceBuilder& builder);  // the same file
bool is_alltoallv_matrix(std::string_view start);                   // alltoallv_matrix.cpp
void read_alltoallv_matrix(LineReader& lines, TraceBuilder& builder);

// How an operation is issued.
struct TraceIssue {
  std::int32_t stream = 0;
  std::vector<std::int32_t> tensors = {};  // by TraceBuilder::tensor()
  std::optional<TransportKind> transport = {};
  std::string communicator = {};  // empty: none named
  std::string batch = {};         // empty: none
  bool async = false;
};

// Builds a trace. A reader passes the current line and the operations of that line; the builder
// enforces the limits and, at the end, resolves names in `after`, refuses cycles, and matches sends
// with recvs. A reader thus only needs to know its format.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string file) { trace_.file = place_ = std::move(file); }

  const std::string& file() const { return trace_.file; }
  void set_topology(std::string topology) { trace_.topology = std::move(topology); }
  void set_recorded(TraceRecording recorded) { trace_.recorded = std::move(recorded); }
  void set_implicit_launch_order(bool implicit) { trace_.implicit_launch_order = implicit; }
  // Adds a communicator of the header. Its ranks count towards the limit.
  void communicator(const std::string& name, std::vector<Rank> ranks);

  // Everything that follows belongs to this line; error messages start with it.
  void at_line(std::int64_t number);
  const std::string& place() const { return place_; }  // "FILE:LINE"
  [[noreturn]] void fail(const std::string& what) const;
  // Returns parse(); adds the place to an InputError.
  template <typename Parse>
  auto placed(Parse parse) const {
    try {
      return parse();
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  }

  // Describes the line; each argument can be empty. `id` refers to all its operations in `after` of
  // other lines, `name` is its name in reports, `after` are the ids of the lines that all its
  // operations come after.
  void describe(std::string id, std::string name, std::vector<std::string> after);
  // Adds an operation of the line. Refuses a message to the sender itself, a collective that is too
  // large for any memory, a batch of anything but messages, and whatever exceeds the limits.
  void add(TraceBody body, TraceIssue how = {});
  // An index for TraceIssue::tensors. Equal name, shape and dtype give the same index.
  std::int32_t tensor(const std::string& name, const Shape& shape, DType dtype);
  // Counts ranks other than those of operations towards the limit.
  void count_ranks(std::size_t ranks);

  // Resolves and matches everything. Throws InputError for a duplicate or unknown id and for a
  // cycle, with its lines. Messages and calls that do not match become findings (matching.h).
  Trace finish();

 private:
  TraceLine& line();
  std::int32_t batch_of(const TraceBody& body, const TraceIssue& how,
                        const std::vector<Rank>& ranks);
  void close_batch(Rank rank);

  Trace trace_;
  std::string place_;
  std::int64_t number_ = 0;
  std::vector<std::vector<std::string>> after_;  // ids as written, by line
  std::map<std::tuple<std::string, Shape, DType>, std::int32_t> tensors_;
  std::map<std::string, std::int32_t> communicators_;
  // The batch that a rank is in, and the names of those that it has left.
  struct Batches {
    std::string name;
    std::int32_t number = -1, stream = 0;
    std::string communicator;
    std::set<std::string> left;
  };
  std::map<Rank, Batches> batches_;
  std::int32_t next_batch_ = 0, open_batches_ = 0;
  std::int64_t named_ranks_ = 0;
};

}  // namespace reshard::sim
