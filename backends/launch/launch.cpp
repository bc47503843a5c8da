// SPDX-License-Identifier: BSD-3-Clause
#include "backends/launch/launch.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::launch {
namespace {

struct Launcher {
  Among narrowest;  // the narrowest Among that includes it
  const char *name, *rank, *size, *local_rank, *local_size;
};
constexpr std::array<Launcher, 4> kLaunchers{{
    {Among::All, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {Among::MpiJoins, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Among::MpiJoins, "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // Slurm gives the number of tasks per node in its own format, which nothing here needs.
    {Among::MpiStarts, "Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
}};

std::int32_t integer(const std::string& value, const std::string& name, std::int64_t low,
                     std::int64_t high) {
  Cursor cursor(value, name);
  std::int64_t out = cursor.integer("", low, high);
  cursor.expect_end();
  return static_cast<std::int32_t>(out);
}

std::optional<std::int32_t> find_integer(const Environment& environment, const char* name,
                                         std::int64_t low, std::int64_t high) {
  if (name == nullptr) return std::nullopt;
  std::optional<std::string> value = environment(name);
  if (!value) return std::nullopt;
  return integer(*value, name, low, high);
}

std::optional<LaunchedProcess> find(const Launcher& launcher, const Environment& environment) {
  std::optional<std::int32_t> rank = find_integer(environment, launcher.rank, 0, kMaxRanks - 1);
  if (!rank) return std::nullopt;
  std::optional<std::int32_t> size = find_integer(environment, launcher.size, 1, kMaxRanks);
  if (!size)
    throw InputError(fmt::format("{}: expected a value, as {} is {}, found none", launcher.size,
                                 launcher.rank, *rank));
  if (*rank >= *size)
    throw InputError(fmt::format("{}: expected below {}, which is {}, found {}", launcher.rank,
                                 launcher.size, *size, *rank));
  return LaunchedProcess{launcher.name, *rank, *size,
                         find_integer(environment, launcher.local_rank, 0, kMaxRanks - 1),
                         find_integer(environment, launcher.local_size, 1, kMaxRanks)};
}

LaunchedProcess from_options(const JobOptions& options) {
  if (options.world_size < 1 || options.world_size > kMaxRanks)
    throw InputError(fmt::format("world size: expected 1 to {} with rank {}, found {}", kMaxRanks,
                                 options.rank, options.world_size));
  if (options.rank < 0 || options.rank >= options.world_size)
    throw InputError(
        fmt::format("rank: expected 0 to {}, found {}", options.world_size - 1, options.rank));
  LaunchedProcess launch{"options", options.rank, options.world_size, std::nullopt, std::nullopt};
  if (options.local_rank >= 0) launch.local_rank = options.local_rank;
  return launch;
}

MeetingPlace parse_place(const std::string& text) {
  constexpr std::string_view kFile = "file:";
  if (text.rfind(kFile, 0) == 0) {
    if (text.size() == kFile.size()) throw InputError("rendezvous: expected a path after 'file:'");
    return {"", 0, text.substr(kFile.size())};
  }
  std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    throw InputError("rendezvous: expected HOST:PORT or file:PATH, found " + quoted(text));
  return {text.substr(0, colon), integer(text.substr(colon + 1), "rendezvous port", 1, 65535), ""};
}

MeetingPlace at_master(const std::string& address, const Environment& environment) {
  if (address.empty()) throw InputError("MASTER_ADDR: expected a host, found ''");
  MeetingPlace place{address, kDefaultPort, ""};
  if (std::optional<std::int32_t> port = find_integer(environment, "MASTER_PORT", 1, 65534)) {
    place.port = *port;
    // torchrun's agent itself listens on that port.
    if (environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True") ++place.port;
  }
  return place;
}

// Jobs that share a node must not meet each other, so the port depends on the job.
int slurm_port(const Environment& environment) {
  return 30000 + find_integer(environment, "SLURM_JOB_ID", 0, 2147483647).value_or(0) % 20000;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

LaunchedProcess find_launch(const JobOptions& options, const Environment& environment) {
  if (options.rank >= 0) return from_options(options);
  for (const Launcher& launcher : kLaunchers) {
    std::optional<LaunchedProcess> launch = find(launcher, environment);
    if (!launch) continue;
    if (options.world_size >= 0 && options.world_size != launch->size)
      throw InputError(fmt::format("world size: {} started {} ranks, but {} are requested",
                                   launch->launcher, launch->size, options.world_size));
    return *launch;
  }
  return {};
}

LaunchedProcess likely_launch(Among among, const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) try {
      if (launcher.narrowest < among) continue;
      if (std::optional<LaunchedProcess> launch = find(launcher, environment)) return *launch;
    } catch (const InputError&) {
      continue;
    }
  return {};
}

bool launched_for_mpi(const Environment& environment) {
  auto is_set = [&](const char* name) { return !environment(name).value_or("").empty(); };
  return is_set("PMIX_RANK") ||
         std::any_of(kLaunchers.begin(), kLaunchers.end(), [&](const Launcher& launcher) {
           return launcher.narrowest == Among::MpiJoins && is_set(launcher.size);
         });
}

MeetingPlace find_meeting_place(const JobOptions& options, const LaunchedProcess& launch,
                                const Environment& environment) {
  if (!options.rendezvous.empty()) return parse_place(options.rendezvous);
  if (std::optional<std::string> address = environment("MASTER_ADDR"))
    return at_master(*address, environment);
  if (launch.launcher == "Slurm")
    if (std::optional<std::string> nodes = environment("SLURM_STEP_NODELIST"))
      return {first_host(*nodes), slurm_port(environment), ""};
  if (launch.local_size == launch.size) return {"127.0.0.1", kDefaultPort, ""};
  throw InputError(
      fmt::format("rendezvous: {} does not state where rank 0 runs; set MASTER_ADDR and "
                  "MASTER_PORT, or give HOST:PORT or file:PATH",
                  launch.launcher));
}

std::string first_host(std::string_view node_list) {
  std::string out;
  bool inside = false, skips = false;
  for (char c : node_list) {
    if (c == '[' && !inside) {
      inside = true;
    } else if (c == ']' && inside) {
      inside = skips = false;
    } else if (inside && (c == ',' || c == '-')) {
      skips = true;  // only the first number of a bracket counts
    } else if (!inside && c == ',') {
      break;
    } else if (!skips) {
      out += c;
    }
  }
  if (out.empty() || inside || out.find_first_of("[] \t") != std::string::npos)
    throw InputError("SLURM_STEP_NODELIST: expected host names such as node[1-4], found " +
                     quoted(node_list));
  return out;
}

}  // namespace reshard::backends::launch
