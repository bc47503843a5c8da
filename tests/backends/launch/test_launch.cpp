// SPDX-License-Identifier: BSD-3-Clause
// Which rank this process is and where the job meets, launcher by launcher.
#include <catch2/catch.hpp>

#include <map>

#include "backends/launch/launch.h"
#include "core/base/errors.h"

namespace reshard::backends::launch {
namespace {

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string place_text(const MeetingPlace& place) {
  return place.file.empty() ? place.host + ":" + std::to_string(place.port) : "file " + place.file;
}

struct Row {
  std::map<std::string, std::string> variables;
  std::string launcher;
  std::int32_t rank, size, local_rank;
  std::string place;
};

TEST_CASE("every launcher's variables say rank, size, local rank and meeting place") {
  std::vector<Row> rows{
      {{{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"MASTER_ADDR", "n0"},
        {"MASTER_PORT", "29500"}},
       "torchrun",
       5,
       8,
       1,
       "n0:29500"},
      // The agent's own store listens on MASTER_PORT.
      {{{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"MASTER_ADDR", "n0"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "torchrun",
       5,
       8,
       1,
       "n0:29501"},
      {{{"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       "Open MPI",
       3,
       4,
       3,
       "127.0.0.1:29571"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}},
       "PMI",
       0,
       2,
       0,
       "127.0.0.1:29571"},
      {{{"SLURM_PROCID", "9"},
        {"SLURM_NTASKS", "16"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_STEP_NODELIST", "gpu[012-013,20],x"},
        {"SLURM_JOB_ID", "20007"}},
       "Slurm",
       9,
       16,
       1,
       "gpu012:30007"},
      // mpirun inside a Slurm job: the nearer launcher counts.
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"},
        {"MASTER_ADDR", "a"}},
       "Open MPI",
       1,
       2,
       0,
       "a:29571"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.launcher, row.place);
    Environment variables = environment(row.variables);
    LaunchedProcess launch = find_launch({}, variables);
    CHECK(launch.launcher == row.launcher);
    CHECK(launch.rank == row.rank);
    CHECK(launch.size == row.size);
    CHECK(launch.local_rank == row.local_rank);
    CHECK(place_text(find_meeting_place({}, launch, variables)) == row.place);
  }
}

TEST_CASE("without a launcher one process drives all") {
  LaunchedProcess launch =
      find_launch({}, environment({{"WORLD_SIZE", "8"}, {"SLURM_NTASKS", "4"}}));
  CHECK(launch.launcher.empty());
  CHECK(launch.size == 1);
}

TEST_CASE("options go before the launcher's variables") {
  JobOptions options;
  options.rank = 2;
  options.world_size = 3;
  options.local_rank = 1;
  options.rendezvous = "host:1234";
  Environment variables =
      environment({{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "other"}});
  LaunchedProcess launch = find_launch(options, variables);
  CHECK(launch.rank == 2);
  CHECK(launch.size == 3);
  CHECK(launch.local_rank == 1);
  CHECK(place_text(find_meeting_place(options, launch, variables)) == "host:1234");
  options.rendezvous = "file:/shared/meet";
  CHECK(place_text(find_meeting_place(options, launch, variables)) == "file /shared/meet");
  options.rank = 3;
  CHECK_THROWS_WITH(find_launch(options, variables), "rank: expected 0 to 2, found 3");
  options.world_size = -1;
  CHECK_THROWS_AS(find_launch(options, variables), InputError);
  options.rank = -1;
  options.world_size = 4;
  CHECK_THROWS_WITH(find_launch(options, variables),
                    "world size: torchrun started 8 ranks, but 4 are requested");
  options.world_size = 8;
  CHECK(find_launch(options, variables).size == 8);
}

TEST_CASE("a malformed or missing variable is named") {
  auto message = [](std::map<std::string, std::string> variables) {
    try {
      Environment all = environment(std::move(variables));
      find_meeting_place({}, find_launch({}, all), all);
      return std::string("accepted");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  using Catch::Matchers::StartsWith;
  CHECK_THAT(message({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), StartsWith("RANK: expected"));
  CHECK_THAT(message({{"RANK", ""}, {"WORLD_SIZE", "2"}}), StartsWith("RANK: expected"));
  CHECK_THAT(message({{"RANK", "1 "}, {"WORLD_SIZE", "2"}}), StartsWith("RANK: expected"));
  CHECK_THAT(message({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), StartsWith("RANK: "));
  CHECK_THAT(message({{"RANK", "99999999999999999999"}, {"WORLD_SIZE", "2"}}),
             StartsWith("RANK: "));
  CHECK_THAT(message({{"RANK", "1"}}), StartsWith("WORLD_SIZE: expected a value, as RANK"));
  CHECK_THAT(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
             StartsWith("RANK: expected below WORLD_SIZE"));
  CHECK_THAT(message({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "x"}}),
             StartsWith("LOCAL_RANK: expected"));
  CHECK_THAT(message({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "0"}}),
             StartsWith("OMPI_COMM_WORLD_SIZE: "));
  CHECK_THAT(message({{"PMI_RANK", "0"}, {"PMI_SIZE", "0x2"}}), StartsWith("PMI_SIZE: expected"));
  CHECK_THAT(
      message({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "n[1-2"}}),
      StartsWith("SLURM_STEP_NODELIST: expected"));
  CHECK_THAT(
      message({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}),
      StartsWith("MASTER_PORT: "));
  CHECK_THAT(message({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", ""}}),
             StartsWith("MASTER_ADDR: expected"));
  // Two nodes, and nobody says where rank 0 is.
  CHECK_THAT(message({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
             Catch::Matchers::Contains("set MASTER_ADDR and MASTER_PORT"));
}

TEST_CASE("who is asked before a library is: variables that make no sense are none") {
  Environment node = environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  CHECK(likely_launch(Among::All, node).launcher == "torchrun");
  CHECK(likely_launch(Among::MpiStarts, node).launcher.empty());
  Environment slurm = environment({{"RANK", "x"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}});
  CHECK(likely_launch(Among::All, slurm).rank == 1);
  CHECK(likely_launch(Among::MpiStarts, slurm).size == 2);
  CHECK(likely_launch(Among::MpiJoins, slurm).size == 1);
  Environment mpich =
      environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  CHECK(likely_launch(Among::MpiJoins, mpich).launcher == "PMI");
  CHECK(launched_for_mpi(mpich));
  CHECK(find_launch({}, environment({{"PMI_SIZE", ""}, {"WORLD_SIZE", "x"}})).launcher.empty());
  CHECK(launched_for_mpi(environment({{"PMIX_RANK", "0"}})));
  CHECK_FALSE(launched_for_mpi(slurm));
}

TEST_CASE("places that are no places") {
  LaunchedProcess launch{"options", 0, 2, std::nullopt, std::nullopt};
  for (const char* text : {"host", ":5", "host:", "host:0", "host:65536", "host:x", "file:"}) {
    CAPTURE(text);
    JobOptions options;
    options.rendezvous = text;
    CHECK_THROWS_AS(find_meeting_place(options, launch, environment({})), InputError);
  }
}

TEST_CASE("the first host of a node list") {
  CHECK(first_host("node7") == "node7");
  CHECK(first_host("a,b,c") == "a");
  CHECK(first_host("node[003-007,012],login1") == "node003");
  CHECK(first_host("node[5,1-2]") == "node5");
  CHECK(first_host("rack[1-2]n[03-04]-ib") == "rack1n03-ib");
  CHECK(first_host("dgx-a100-[1,2].cluster.local") == "dgx-a100-1.cluster.local");
  for (const char* text : {"", ",a", "n[1", "n]1", "n[[1]]", "a b"})
    CHECK_THROWS_AS(first_host(text), InputError);
}

}  // namespace
}  // namespace reshard::backends::launch
