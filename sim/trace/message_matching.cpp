// SPDX-License-Identifier: BSD-3-Clause
// Pairs sends with receives, and finds those without a partner.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/trace/findings.h"
#include "sim/trace/matching.h"

namespace reshard::sim {
namespace {

class Messages {
 public:
  explicit Messages(Trace& trace) : trace_(trace) {}

  void match() {
    pair_channels();
    pair_strays();
  }

 private:
  // Sends and recvs with one source, destination, tag and communicator.
  struct Channel {
    std::vector<OpId> sends, receives;
  };
  using ChannelKey = std::tuple<Rank, Rank, std::int64_t, std::int32_t>;

  TraceEnd& end(OpId op) { return std::get<TraceEnd>(trace_.operations[op].body); }
  std::int64_t number_of(OpId op) const { return trace_.line_of(op).number; }
  void find(const std::vector<OpId>& at, std::vector<Rank> ranks, const std::string& sentence) {
    trace_.findings.push_back(finding_of(trace_, at, std::move(ranks), at.front(), sentence));
  }

  void pair_channels();
  void pair_channel(const Channel& channel);
  void pair_up(OpId send, OpId receive);
  void leave(OpId op);
  std::string communicator_of(OpId op) const;
  void pair_strays();

  Trace& trace_;
  std::vector<OpId> strays_;  // ends that do not match
};

void Messages::pair_channels() {
  std::map<ChannelKey, Channel> channels;
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    auto op = id_of<OpId>(i);
    if (!std::holds_alternative<TraceEnd>(trace_.operations[op].body)) continue;
    const TraceEnd& at = end(op);
    std::int32_t communicator = trace_.operations[op].communicator;
    if (at.side == TraceEnd::Side::Send)
      channels[{at.rank, at.peer, at.tag, communicator}].sends.push_back(op);
    else
      channels[{at.peer, at.rank, at.tag, communicator}].receives.push_back(op);
  }
  for (const auto& [key, channel] : channels) pair_channel(channel);
}

void Messages::pair_channel(const Channel& channel) {
  const auto& [sends, receives] = channel;
  Numbering<std::pair<std::int64_t, int>> numbers;
  auto numbered = [&](const std::vector<OpId>& ends) {
    std::vector<std::int32_t> out;
    for (OpId op : ends)
      out.push_back(
          numbers.of({end(op).bytes, end(op).dtype ? static_cast<int>(*end(op).dtype) : -1}));
    return out;
  };
  // One missing end shifts all later pairs. If that explains every difference, only the end without
  // a partner is reported.
  std::size_t skip_send = sends.size(), skip_receive = receives.size();
  if (sends.size() != receives.size()) {
    Difference difference = difference_of(numbered(receives), numbered(sends));
    if (difference.kind == Difference::Kind::Missing) skip_send = difference.at;
    if (difference.kind == Difference::Kind::Extra) skip_receive = difference.at;
  }
  std::size_t s = 0, r = 0;
  while (s < sends.size() || r < receives.size()) {
    bool send_alone = r == receives.size() || s == skip_send,
         receive_alone = s == sends.size() || r == skip_receive;
    if (s < sends.size() && send_alone) {
      strays_.push_back(sends[s++]);
      skip_send = sends.size();
    } else if (receive_alone) {
      strays_.push_back(receives[r++]);
      skip_receive = receives.size();
    } else {
      pair_up(sends[s++], receives[r++]);
    }
  }
}

void Messages::pair_up(OpId send, OpId receive) {
  TraceEnd &from = end(send), &to = end(receive);
  from.other = static_cast<std::int32_t>(receive);
  to.other = static_cast<std::int32_t>(send);
  // A transport that one end gives applies to both.
  std::optional<TransportKind>&here = trace_.operations[send].transport,
  &there = trace_.operations[receive].transport;
  if (!here) here = there;
  if (!there) there = here;
  std::string by, met;
  if (here != there) {
    by = fmt::format(" by {}", text(*here));
    met = fmt::format(" by {}", text(*there));
  } else if (from.bytes != to.bytes) {
    by = fmt::format(" of {} bytes", from.bytes);
    met = fmt::format(" of {} bytes", to.bytes);
  } else if (from.dtype && to.dtype && *from.dtype != *to.dtype) {
    by = fmt::format(" of {}", text(*from.dtype));
    met = fmt::format(" of {}", text(*to.dtype));
  }
  if (by.empty()) return;
  bool after_tag = here != there;  // a transport is named after the tag, other things after "send"
  find({send, receive}, {from.rank, to.rank},
       fmt::format("send{} from rank {} to rank {} (tag {}){} meets the recv{} in line {}",
                   after_tag ? "" : by, to_int(from.rank), to_int(to.rank), from.tag,
                   after_tag ? by : "", met, number_of(receive)));
}

void Messages::leave(OpId op) {
  const TraceEnd& at = end(op);
  int rank = to_int(at.rank), peer = to_int(at.peer);
  find({op}, {at.rank, at.peer},
       at.side == TraceEnd::Side::Send
           ? fmt::format("send from rank {} to rank {} (tag {}) has no recv", rank, peer, at.tag)
           : fmt::format("recv on rank {} from rank {} (tag {}) has no send", rank, peer, at.tag));
}

std::string Messages::communicator_of(OpId op) const {
  std::int32_t communicator = trace_.operations[op].communicator;
  return communicator < 0 ? "no communicator" : communicator_text(trace_, communicator);
}

// Unmatched ends that would meet if they were on the same communicator share one finding.
void Messages::pair_strays() {
  std::map<std::tuple<Rank, Rank, std::int64_t, std::int64_t>, std::vector<OpId>> receives;
  std::sort(strays_.begin(), strays_.end(), std::greater<>());
  for (OpId op : strays_)
    if (const TraceEnd& at = end(op); at.side == TraceEnd::Side::Receive)
      receives[{at.peer, at.rank, at.tag, at.bytes}].push_back(op);
  std::reverse(strays_.begin(), strays_.end());
  for (OpId op : strays_) {
    const TraceEnd& at = end(op);
    if (at.side == TraceEnd::Side::Receive) continue;
    std::vector<OpId>& there = receives[{at.rank, at.peer, at.tag, at.bytes}];
    if (there.empty()) {
      leave(op);
      continue;
    }
    OpId receive = there.back();
    there.pop_back();
    find({op, receive}, {at.rank, at.peer},
         fmt::format(
             "send from rank {} to rank {} (tag {}) on {} never meets the recv on {} in line {}",
             to_int(at.rank), to_int(at.peer), at.tag, communicator_of(op),
             communicator_of(receive), number_of(receive)));
  }
  for (const auto& [key, left] : receives)
    for (OpId op : left) leave(op);
}

}  // namespace

void match_messages(Trace& trace) { Messages(trace).match(); }

}  // namespace reshard::sim
