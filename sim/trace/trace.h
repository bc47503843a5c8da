// SPDX-License-Identifier: BSD-3-Clause
// A trace: what a job does, operation by operation, whatever file it was read from.
//
// *Lines* are what a reader saw, and what everything is said in that goes wrong later. *Operations*
// are what runs: a line may stand for several, and a front end may put more between those of two
// lines. Operation i of the trace is operation i of the workload; operations of one (rank, stream)
// run in their order here.
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
#include "core/topology/machine.h"
#include "core/traffic/bare_collective.h"

namespace reshard::sim {

// Lines that say the same share one request; its own name is empty.
struct TraceRedistribute {
  std::shared_ptr<const Request> request;
};

struct TraceCompute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
  std::int64_t blocks = 0;  // thread blocks of each of its kernels; 0: not said
};

// One end of a message.
struct TraceEnd {
  enum class Side : std::uint8_t { Send, Receive } side;
  Rank rank, peer;
  std::int64_t bytes, tag;
  std::optional<DType> dtype = {};                   // where it is said
  std::optional<std::int64_t> cap_bytes_per_s = {};  // at most this rate
  std::int32_t other = -1;  // operation of the other end; -1 where none matches
};

// Where of a program a line is.
struct TracePlace;  // operator_line.h

struct TraceCollective {
  BareKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;                                 // as BareCollective's
  std::shared_ptr<const TracePlace> place = nullptr;  // where it is said
  Rank root{-1};                                      // of kinds that have one
};

// One rank's share of a collective.
struct TraceCall {
  BareKind kind;
  Algorithm algorithm;
  Rank rank;
  std::int64_t bytes;
  std::optional<DType> dtype = {};       // where it is said
  std::optional<std::int64_t> seq = {};  // its number in its communicator, where it is said
  std::vector<Rank> ranks = {};          // of the communicator, where the line says them
  std::int32_t first = -1;  // operation of the first call that it meets; -1 where none matches
  Rank root{-1};            // of kinds that have one
};

// Something that goes wrong: a link or a rank at a share of its rate, or with a latency of its own,
// from a time on; or a rank that comes late to what stands behind the line.
struct TraceFault {
  enum class Kind : std::uint8_t { Share, Latency, Late } kind;
  std::string link;  // empty: of the rank
  std::optional<Rank> rank;
  std::int64_t amount;  // millionths, ps
  std::int64_t from_ps = 0;
};

// A line on named tensors, before it is decided what it comes to.
struct OperatorLine;  // operator_line.h
using TraceOperator = std::shared_ptr<const OperatorLine>;

using TraceBody = std::variant<TraceRedistribute, TraceCompute, TraceEnd, TraceCollective,
                               TraceCall, TraceFault, TraceOperator>;

struct TraceLine {
  std::int64_t number;   // in the file
  std::string id, name;  // empty where none was given
};

// What operations work on.
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
  std::vector<std::int32_t> tensors;       // indices into Trace::tensors, those that were named
  std::optional<TransportKind> transport;  // what carries it, where it is not the run's
  std::int32_t communicator = -1;          // index into Trace::communicators; -1: none
  std::int32_t batch = -1;                 // as Seat's
  bool async = false;                      // its stream does not wait for it
};

// Ranks ascending. Of the header, or of all who use it; without a name: a group's own.
struct TraceCommunicator {
  std::string name;
  std::vector<Rank> ranks;
};

// Of a circle of waits: what a rank does not come to, behind what, and whom that waits for.
struct TraceWait {
  Rank rank;
  std::int64_t line;
  std::string held_by;     // "stream 0", "communicator 'tp'"
  std::int64_t behind;     // line
  std::int64_t waits_for;  // line of `of`: the next one's, the first one's behind the last
  Rank of;
};

// Something that makes a well-formed trace impossible to run: a message without its other end, ends
// that wait for each other. The user's check does not hold (exit code 1), so it is a value and not
// an exception.
struct TraceFinding {
  std::vector<std::int64_t> lines;     // numbers in the file, ascending
  std::string what;                    // one sentence with "FILE:LINE"
  std::vector<Rank> ranks = {};        // that it names as those to look at, ascending
  std::vector<TraceWait> circle = {};  // of what waits for ever, where it is too long for `what`
};

// What a recorder wrote down of its machine.
struct TraceRecording {
  std::string torch, device;          // empty: not said
  std::int32_t devices_per_host = 1;  // as PyTorch's costs were told
};

struct Trace {
  std::string file;
  std::string topology;  // empty where the file names none
  std::optional<TraceRecording> recorded;
  IndexVector<std::int32_t, TraceLine> lines;
  std::vector<TraceTensor> tensors;
  std::vector<TraceCommunicator> communicators;
  bool implicit_launch_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT, as the header says
  IndexVector<OpId, TraceOperation> operations;
  std::vector<TraceFinding> findings;  // what does not match; empty: everything does

  const TraceLine& line_of(const TraceOperation& operation) const { return lines[operation.line]; }
  const TraceLine& line_of(OpId op) const { return line_of(operations[op]); }
  // "FILE:LINE".
  std::string place_of(OpId op) const;
  // The operation that runs: of a recv its send, of a call the first one, else itself. Everything
  // must match.
  OpId runs(OpId op) const;
};

// Ranks with a part in the operation, as written; of a message end its own rank.
std::vector<Rank> ranks_of(const TraceOperation& operation);
// Whether the trace has lines on named tensors.
bool has_operators(const Trace& trace);
// Whether a collective of it says where of a program it is.
bool has_places(const Trace& trace);
// Gives what has no communicator one of its ranks' own.
void join_own_communicators(Trace& trace);
// Highest rank that the trace names; -1 without operations.
std::int64_t highest_rank(const Trace& trace);

// "redistribute", "compute", "send", "recv", "collective", "fault"; of one rank's call its kind.
std::string_view op_text(const TraceOperation& operation);

class LineReader;
class TraceBuilder;  // below

// A format is one file, its reader, and one row in trace.cpp.
struct TraceFormat {
  std::string_view name, what;
  // By the first 64 KiB of a file.
  bool (*recognise)(std::string_view start);
  // Throws InputError "FILE:LINE: ...".
  void (*read)(LineReader& lines, TraceBuilder& builder);
};
std::span<const TraceFormat> trace_formats();

// Reads a stream in the format of that name, or, where it is empty, in the one that recognises the
// content; what none does the first one refuses. `file` names the stream in messages. Throws
// InputError for a name that is none, and "FILE:LINE: FIELD: ..." for what a reader or the builder
// refuses. Memory is bounded by what was read, and that by the builder's limits.
Trace parse_trace(std::istream& in, const std::string& file, std::string_view format = {});
// The same from a file. Throws InputError for a file that is missing, unreadable or a directory.
Trace read_trace(const std::string& path, std::string_view format = {});

// The readers, each with whether it recognises a file.
bool is_reshard_trace(std::string_view start);  // reshard_trace.cpp
void read_reshard_trace(LineReader& lines, TraceBuilder& builder);
bool is_alltoallv_matrix(std::string_view start);  // alltoallv_matrix.cpp
void read_alltoallv_matrix(LineReader& lines, TraceBuilder& builder);

// What a line says beside what is done.
struct TraceIssue {
  std::int32_t stream = 0;
  std::vector<std::int32_t> tensors = {};  // by TraceBuilder::tensor()
  std::optional<TransportKind> transport = {};
  std::string communicator = {};  // empty: none is named
  std::string batch = {};         // empty: none
  bool async = false;
};

// Makes a trace of what a reader sees. The reader says at which line it is and which operations
// that line stands for; the builder keeps the limits and, when all is said, links: names in
// `after`, cycles of them, sends that meet receives. So that a reader knows its format and nothing
// else.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string file) { trace_.file = place_ = std::move(file); }

  const std::string& file() const { return trace_.file; }
  void set_topology(std::string topology) { trace_.topology = std::move(topology); }
  void set_recorded(TraceRecording recorded) { trace_.recorded = std::move(recorded); }
  void set_implicit_launch_order(bool implicit) { trace_.implicit_launch_order = implicit; }
  // A communicator of the header. Its ranks count.
  void communicator(const std::string& name, std::vector<Rank> ranks);

  // All that follows is said by this line, and refused with it in front.
  void at_line(std::int64_t number);
  const std::string& place() const { return place_; }  // "FILE:LINE"
  [[noreturn]] void fail(const std::string& what) const;
  // What `parse` returns; an InputError of its own gets the place.
  template <typename Parse>
  auto placed(Parse parse) const {
    try {
      return parse();
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  }

  // Of the line, where it has any: how `after` of others calls all its operations, its name in
  // reports, and the ids of the lines that all its operations come after.
  void describe(std::string id, std::string name, std::vector<std::string> after);
  // One more operation of the line. Refuses a message to the own rank, a collective that no memory
  // holds, a batch of what is no message, and too much of anything.
  void add(TraceBody body, TraceIssue how = {});
  // An index for add(); those of equal name, shape and dtype are one.
  std::int32_t tensor(const std::string& name, const Shape& shape, DType dtype);
  // Ranks that are held beside those of operations count, too.
  void count_ranks(std::size_t ranks);

  // Links everything. Throws InputError for an id given twice or not at all, for a cycle, naming
  // its lines, and for a batch that is not one launch; what does not match becomes findings
  // (matching.h).
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
  // The batch that a rank is in, and those that it has left: by name.
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
