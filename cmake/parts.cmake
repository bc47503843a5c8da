# SPDX-License-Identifier: BSD-3-Clause
# Functions that make a library, a test program or a text inside the program from a folder.

# sources_of(OUT FOLDERS [EXCEPT NAMES...]): all C++ files below the folders. CONFIGURE_DEPENDS
# checks again at every build, so that a file that is added or removed needs no line anywhere.
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

# compile_together(NAME SOURCES): compiles each folder's sources as one file where RESHARD_UNITY is
# on. Most of a file's time is spent in headers, which a folder's files share.
function(compile_together name)
  if(NOT RESHARD_UNITY)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

# reshard_part(NAME [FOLDER ...] [EXCEPT NAMES] [SOURCES ...] [LINKS ...] [PACKAGES ...]): the
# library reshard_NAME of a folder. It may include headers of LINKS and of their own LINKS:
# tests/tidy reads them.
function(reshard_part name)
  cmake_parse_arguments(PART "" "" "FOLDER;EXCEPT;SOURCES;LINKS;PACKAGES" ${ARGN})
  sources_of(sources "${PART_FOLDER}" EXCEPT ${PART_EXCEPT})
  list(TRANSFORM PART_LINKS PREPEND reshard_)
  add_library(reshard_${name} STATIC ${sources} ${PART_SOURCES})
  target_link_libraries(reshard_${name} PUBLIC ${PART_LINKS} PRIVATE reshard_flags ${PART_PACKAGES})
  compile_together(reshard_${name} ${sources} ${PART_SOURCES})
  if(RESHARD_FUZZ)  # coverage guides the fuzzer
    target_compile_options(reshard_${name} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(reshard_${name} INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# reshard_program(NAME SOURCES LINKS...)
function(reshard_program name sources)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARGN} reshard_flags)
  if(RESHARD_SANITIZE)  # the libraries need the sanitizers' runtime for C++
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# compile_quickly(NAMES...): compiles code in which little time is spent with less optimisation, in
# two thirds of the time.
function(compile_quickly)
  foreach(name IN LISTS ARGN)
    if(RESHARD_SANITIZE)
      target_compile_options(${name} PRIVATE -O0)
    else()
      target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
  endforeach()
endfunction()

# embed_texts(NAME HEADER FILES ...): makes a source NAME.cpp in the build tree with the contents of
# the files, so that the program needs none of them at run time. HEADER declares the function NAME()
# in reshard::sim, which returns a span of EmbeddedText (core/base/embedded_text.h).
function(embed_texts name header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(rows)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file STEM stem)
    file(READ ${file} text)
    string(APPEND rows "    {\"${stem}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${name}.cpp @ONLY CONTENT "#include \"${header}\"
std::span<const reshard::EmbeddedText> reshard::sim::@name@() {
  static constexpr EmbeddedText kTexts[] = {\n@rows@  };\n  return kTexts;\n}\n")
endfunction()
