// SPDX-License-Identifier: BSD-3-Clause
// Digests are compared first. Only if they differ does the first process with a plan other than the
// root's send its text, so that the root can name the difference.
#include "backends/launch/agreement.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/layout/mesh.h"
#include "core/text/plan_difference.h"
#include "core/text/plan_text.h"

namespace reshard::backends::launch {
namespace {

// How much of a plan's text is sent; a difference past it is reported without its words.
constexpr std::size_t kMostShown = std::size_t{1} << 20;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Cut at the end of a line.
std::string_view head_of(std::string_view text) {
  if (text.size() <= kMostShown) return text;
  std::size_t end = text.rfind('\n', kMostShown);
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

// What a process reports: its plan's digest ("-" if it has no plan), and its trouble after a space.
struct Statement {
  std::string digest, trouble;
};

Statement statement_of(std::span<const std::byte> bytes) {
  std::string text = text_of(bytes);
  std::size_t space = text.find(' ');
  RESHARD_CHECK(space != std::string::npos, "a process that sends no digest of its plan");
  return {text.substr(0, space), text.substr(space + 1)};
}

// At the root: finds the first process that has another plan than the root, and returns all
// processes that have that same plan.
std::vector<Rank> differing_ranks(const std::vector<Statement>& all) {
  auto is_other = [&](const Statement& statement) {
    return statement.digest != "-" && statement.digest != all.front().digest;
  };
  std::vector<Rank> out;
  auto first = std::find_if(all.begin(), all.end(), is_other);
  for (auto at = first; at != all.end(); ++at)
    if (at->digest == first->digest)
      out.push_back(Rank{static_cast<std::int32_t>(at - all.begin())});
  return out;
}

std::string sentence(std::string_view mine, std::string_view other, const std::vector<Rank>& who) {
  std::string ranks = fmt::format("rank{} {}", who.size() == 1 ? "" : "s", ranks_text(who));
  std::optional<PlanDifference> found = difference_of(head_of(mine), other);
  if (!found)
    return fmt::format(
        "plan: expected the same on all ranks, found a different one on {} than on rank 0, in a "
        "step long after the first",
        ranks);
  return fmt::format(
      "plan: expected the same on all ranks, found a different one on {} than on rank 0: {} {}, "
      "where rank 0 has {}",
      ranks, found->what, found->there, found->here);
}

}  // namespace

void agree_on_plan(Processes& processes, const Plan* plan, const std::string& trouble) {
  if (processes.count() == 1) {
    if (!trouble.empty()) throw InputError(trouble);
    return;
  }
  std::string text = plan == nullptr ? "" : to_text(*plan);
  std::string mine = fmt::format("{} {}", plan == nullptr ? "-" : digest_of(text).hex(), trouble);
  std::vector<Statement> all;
  for (const std::vector<std::byte>& bytes : processes.gather(bytes_of(mine)))
    all.push_back(statement_of(bytes));
  // The root's verdict: empty if all agree, '!' and a trouble, or the index of the process that
  // must send its plan.
  std::string verdict;
  std::vector<Rank> who;
  if (processes.is_root()) {
    auto troubled = std::find_if(all.begin(), all.end(), [](const Statement& statement) {
      return !statement.trouble.empty();
    });
    if (all.front().digest != "-") who = differing_ranks(all);
    if (!who.empty())
      verdict = std::to_string(to_int(who.front()));
    else if (troubled != all.end())
      verdict = "!" + troubled->trouble;
  }
  verdict = text_of(processes.broadcast(bytes_of(verdict)));
  if (verdict.empty()) return;
  if (verdict.front() == '!') throw InputError(verdict.substr(1));
  bool asked = std::to_string(processes.index()) == verdict;
  std::vector<std::vector<std::byte>> shown =
      processes.gather(bytes_of(asked ? head_of(text) : std::string_view()));
  std::string found;
  if (processes.is_root())
    found = sentence(text, text_of(shown[to_index(to_int(who.front()))]), who);
  throw InputError(text_of(processes.broadcast(bytes_of(found))));
}

}  // namespace reshard::backends::launch
