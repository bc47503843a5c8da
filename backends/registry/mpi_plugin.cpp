// SPDX-License-Identifier: BSD-3-Clause
// Two implementations of MPI share names but no ABI, so a module is built against each one that was
// found. The launcher decides which one this process uses; without a launcher it is Open MPI, or
// the only one installed. $RESHARD_MPI=openmpi|mpich overrides the choice.
#include "backends/registry/mpi_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backends/launch/launch.h"
#include "backends/registry/mpi_module.h"
#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::backends {
namespace {

struct Flavour {
  const char* name;  // in $RESHARD_MPI
  const char* file;
  const char* library;  // opened RTLD_GLOBAL: its own plugins look up its symbols
  std::vector<const char*> launchers;
  bool needs_launcher;  // even for a single process, Open MPI starts a daemon that comes with its
                        // launcher's package, and ends the process if it cannot
  const char *packages, *built;  // Debian packages: to run, and to build
};

// Says what is missing, and how to get it.
struct Missing : InputError {
  Missing(const std::string& what, std::string how)
      : InputError(what), how_to_get(std::move(how)) {}
  std::string how_to_get;
};

const Flavour& open_mpi() {
  static const Flavour flavour{"openmpi",
                               "reshard_mpi.so",
                               "libmpi.so.40",
                               {"mpirun.openmpi", "mpirun"},
                               true,
                               "openmpi-bin",
                               "libopenmpi-dev openmpi-bin"};
  return flavour;
}
const Flavour& mpich() {
  static const Flavour flavour{"mpich",
                               "reshard_mpich.so",
                               "libmpich.so.12",
                               {"mpirun.mpich", "mpiexec.hydra", "mpirun"},
                               false,
                               "mpich",
                               "libmpich-dev mpich"};
  return flavour;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where the module is looked for: next to the program (build tree), in ../lib/reshard (installed),
// and in $RESHARD_MODULE_DIR.
std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> out;
  std::error_code none;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!program.empty()) {
    out.push_back(program.parent_path());
    out.push_back(program.parent_path().parent_path() / "lib" / "reshard");
  }
  if (std::string extra = environment("RESHARD_MODULE_DIR"); !extra.empty())
    out.emplace_back(extra);
  return out;
}

// Empty if none of them has it.
std::filesystem::path module_file(const Flavour& flavour) {
  for (const std::filesystem::path& folder : folders()) {
    std::error_code none;
    if (std::filesystem::path path = folder / flavour.file; std::filesystem::exists(path, none))
      return path;
  }
  return {};
}

const Flavour& wanted() {
  std::string forced = environment("RESHARD_MPI");
  if (forced == mpich().name) return mpich();
  if (forced == open_mpi().name) return open_mpi();
  if (!forced.empty())
    throw Missing(
        fmt::format("RESHARD_MPI: expected openmpi or mpich, found {}", reshard::quoted(forced)),
        "set RESHARD_MPI=openmpi or RESHARD_MPI=mpich, or unset it");
  std::string launcher = launch::likely_launch(launch::Among::MpiJoins).launcher;
  if (launcher == "Open MPI") return open_mpi();
  if (launcher == "PMI") return mpich();
  return module_file(open_mpi()).empty() && !module_file(mpich()).empty() ? mpich() : open_mpi();
}

const MpiModule& opened(const std::filesystem::path& path, const Flavour& flavour) {
  // Never closed. If the library is elsewhere, loading the module reports what is missing.
  dlopen(flavour.library, RTLD_NOW | RTLD_GLOBAL);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Missing(fmt::format("{}: {}", path.filename().string(), dlerror()),
                  fmt::format("apt install {}", flavour.packages));
  auto* find = reinterpret_cast<const MpiModule* (*)()>(dlsym(handle, kMpiModuleSymbol));
  if (find == nullptr || find()->version != kMpiModuleVersion)
    throw Missing(fmt::format("{}: from a different build of reshard", path.string()),
                  "install or build it together with the program");
  return *find();
}

const MpiModule& module_of(const Flavour& flavour) {
  if (std::filesystem::path path = module_file(flavour); !path.empty())
    return opened(path, flavour);
  std::string looked;
  for (const std::filesystem::path& folder : folders())
    looked += (looked.empty() ? "" : ", ") + folder.string();
  throw Missing(fmt::format("no {} in {}", flavour.file, looked),
                fmt::format("install the package reshard-mpi, or, to build it, apt install {}, "
                            "then build reshard again",
                            flavour.built));
}

// The launcher's path, or an empty string.
std::string launcher_of(const Flavour& flavour) {
  std::string path = environment("PATH");
  for (const char* launcher : flavour.launchers)
    for (std::size_t begin = 0; begin <= path.size();) {
      std::size_t end = std::min(path.find(':', begin), path.size());
      std::string file = path.substr(begin, end - begin) + "/" + launcher;
      if (access(file.c_str(), X_OK) == 0) return file;
      begin = end + 1;
    }
  return "";
}

}  // namespace

BackendStatus probe_mpi() {
  try {
    const Flavour& flavour = wanted();
    std::string what = module_of(flavour).library(), launcher = launcher_of(flavour);
    if (!launcher.empty()) return {true, what + ", mpirun at " + launcher, ""};
    if (launch::launched_for_mpi()) return {true, what, ""};
    std::string how =
        fmt::format("apt install {}, or add the folder of its mpirun to PATH", flavour.packages);
    if (flavour.needs_launcher) return {false, what + ", but no mpirun in PATH", how};
    return {true, what + ", no mpirun in PATH: a single process only", ""};
  } catch (const Missing& missing) {
    return {false, missing.what(), missing.how_to_get};
  }
}

std::unique_ptr<Executor> make_mpi(const BackendOptions& options) {
  return std::unique_ptr<Executor>(module_of(wanted()).make(options));
}

}  // namespace reshard::backends
