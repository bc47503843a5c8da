# SPDX-License-Identifier: BSD-3-Clause
# Whether libreshard.so has the packages and the C++ runtime inside, from their archives or headers,
# and so needs nothing but the system's C library: what a wheel must be, as it is installed where
# none of them may be there.
option(RESHARD_STANDALONE "Build libreshard.so to need the C library alone" OFF)

set(RESHARD_FMT fmt::fmt)
set(RESHARD_PUGIXML pugixml::pugixml)
set(RESHARD_RUNTIME_OPTIONS)
if(RESHARD_STANDALONE)
  set(RESHARD_FMT fmt::fmt-header-only)  # Debian has no archive of it
  set(RESHARD_PUGIXML pugixml::static)
  find_library(XXHASH_ARCHIVE libxxhash.a REQUIRED)
  set(XXHASH_LIBRARY ${XXHASH_ARCHIVE})
  set(RESHARD_RUNTIME_OPTIONS -static-libstdc++ -static-libgcc)
endif()
