# SPDX-License-Identifier: BSD-3-Clause
# What a folder becomes: a library, a test program, a text inside the program.

# sources_of(OUT FOLDERS [EXCEPT NAMES...]): all C++ below the folders. CONFIGURE_DEPENDS looks
# again at every build, so that a file that comes or goes needs no line anywhere.
function(sources_of out folders)
  cmake_parse_arguments(LESS "" "" "EXCEPT" ${ARGN})
  list(TRANSFORM folders APPEND /*.cpp)
  set(found)
  if(folders)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folders})
  endif()
  foreach(name IN LISTS LESS_EXCEPT)
    list(FILTER found EXCLUDE REGEX "/${name}")
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# reshard_part(NAME FOLDER ... [EXCEPT NAMES] [SOURCES ...] [LINKS ...] [PRIVATE ...]): the library
# of a folder. LINKS are the parts whose headers it may include, with theirs: tests/tidy reads them.
# PRIVATE are packages.
function(reshard_part name)
  cmake_parse_arguments(PART "" "" "FOLDER;EXCEPT;SOURCES;LINKS;PRIVATE" ${ARGN})
  sources_of(sources "${PART_FOLDER}" EXCEPT ${PART_EXCEPT})
  add_library(${name} STATIC ${sources} ${PART_SOURCES})
  target_link_libraries(${name} PUBLIC ${PART_LINKS} PRIVATE reshard_flags ${RESHARD_FMT}
    ${PART_PRIVATE})
  if(RESHARD_FUZZ)  # what it covers guides the fuzzer
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${name} INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# What has no loop that anyone waits for: compiled in two thirds of the time.
function(compile_quickly name)
  if(RESHARD_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# embed_texts(NAME HEADER FILES ...): a source NAME.cpp in the build tree, so that the program needs
# none of the files at run time: the function NAME() that HEADER declares in reshard::sim, a span of
# EmbeddedText (core/base/embedded_text.h).
function(embed_texts name header)
  set(rows)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    cmake_path(GET file STEM stem)
    file(READ ${file} text)
    string(APPEND rows "    {\"${stem}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  set(source "#include \"${header}\"
std::span<const reshard::EmbeddedText> reshard::sim::${name}() {
  static constexpr EmbeddedText kTexts[] = {\n${rows}  };\n  return kTexts;\n}\n")
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "@source@\n" @ONLY)  # only where it changed
endfunction()
