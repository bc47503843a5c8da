# SPDX-License-Identifier: BSD-3-Clause
# CPack runs this on the files that it is about to pack. It adds the files that Debian requires in
# every package, and compresses documents as Debian requires. Only for .deb files.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
find_program(SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_TYPE file)
if(NOT SHLIBDEPS OR NOT FILE_TYPE)
  message(FATAL_ERROR "Debian packages need dpkg-shlibdeps and file (apt install dpkg-dev file), "
    "which say what they depend on; cpack -G TGZ makes the archive without them")
endif()
find_program(GZIP gzip REQUIRED)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../LICENSE license)
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REGEX REPLACE "\n([^\n])" "\n \\1" license "\n${license}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share)
  file(WRITE ${root}/doc/${component}/copyright
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    "Upstream-Name: reshard\n\nFiles: *\nCopyright: 2026 the reshard authors\n"
    "License: BSD-3-Clause${license}")
  # A changelog in Debian's format, which refers to ours for the changes.
  file(WRITE ${root}/doc/${component}/changelog
    "reshard (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * Release ${CPACK_PACKAGE_VERSION}: see CHANGELOG.md of package reshard.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(REMOVE ${root}/doc/${component}/LICENSE)
  file(GLOB pages ${root}/man/man1/*.1)
  execute_process(COMMAND ${GZIP} -9 -n -f ${root}/doc/${component}/changelog ${pages}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
