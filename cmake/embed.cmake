# SPDX-License-Identifier: BSD-3-Clause
# Writes a C++ source that holds text files, so that the program needs none of them at run time:
#   cmake -DOUT=presets_text.cpp -DHEADER=sim/machines/presets.h -DFUNCTION=embedded_topologies
#     -DFILES=a.topo|b.topo -P embed.cmake
# The source defines FUNCTION, which HEADER declares in reshard::sim: a span of EmbeddedText
# (core/base/embedded_text.h) in the order of FILES. Bytes are written as hex escapes, in parts well
# below the length that compilers must take.
string(REPLACE "|" ";" files "${FILES}")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" hex HEX)
  string(LENGTH "${hex}" digits)
  set(text "")
  foreach(at RANGE 0 ${digits} 8192)
    if(at LESS digits)
      string(SUBSTRING "${hex}" ${at} 8192 part)
      string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" part "${part}")
      string(APPEND text "    \"${part}\"\n")
    endif()
  endforeach()
  math(EXPR bytes "${digits} / 2")
  string(APPEND rows "  {\"${name}\", std::string_view(\n${text}    , ${bytes})},\n")
endforeach()
file(WRITE "${OUT}" "// Written by cmake/embed.cmake.
#include \"${HEADER}\"

namespace reshard::sim {

std::span<const EmbeddedText> ${FUNCTION}() {
  static constexpr EmbeddedText kTexts[] = {
${rows}  };
  return kTexts;
}

}  // namespace reshard::sim
")
