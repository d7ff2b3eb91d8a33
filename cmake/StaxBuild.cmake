# Flags shared by every target, and the functions that the folders' CMake files are written with.

# ccache takes files that use precompiled headers only where it may take no notice of __TIME__, which Stax does not use.
find_program(STAX_CCACHE ccache)
if(STAX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${STAX_CCACHE})
endif()
find_program(STAX_MOLD mold)
if(STAX_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(stax_flags INTERFACE)
target_compile_options(stax_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers -fvisibility=hidden)
# GCC compiles faster where it collects its garbage rarely; a compiler run then takes up to 1 GB of memory.
# With -fpch-preprocess ccache sees which precompiled headers a file uses.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stax_flags INTERFACE "SHELL:--param ggc-min-heapsize=500000" -fpch-preprocess)
endif()
target_include_directories(stax_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
# Targets with the property STAX_UNSANITIZED are built without sanitizers.
if(STAX_SANITIZE)
  set(sanitized "$<NOT:$<BOOL:$<TARGET_PROPERTY:STAX_UNSANITIZED>>>")
  target_compile_options(stax_flags INTERFACE
    "$<${sanitized}:-fsanitize=${STAX_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(stax_flags INTERFACE "$<${sanitized}:-fsanitize=${STAX_SANITIZE}>")
endif()

# Most of a compiler run is spent on reading headers and instantiating their templates, so files are compiled a few at a
# time. Files with names of their own that clash stand in a target's list of single files.
option(STAX_UNITY "Compile several files of a target at once, and headers ahead" ON)
function(stax_unity target)
  if(STAX_UNITY)
    cmake_parse_arguments(arg "" "BATCH" "SINGLE" ${ARGN})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    set_source_files_properties(${arg_SINGLE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# stax_precompiled_headers(NAME HEADER...): compiles headers once, for the targets of stax_use_precompiled_headers(NAME
# TARGET...), which need the same flags. Not for headers of Stax: with each change of one, all targets would be built anew.
function(stax_precompiled_headers name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Has its headers compiled.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
function(stax_use_precompiled_headers name)
  if(STAX_UNITY)
    foreach(target ${ARGN})
      target_precompile_headers(${target} REUSE_FROM ${name})
    endforeach()
  endif()
endfunction()

# stax_layer(NAME [LIBS ...]): an object library of the .cpp files in this folder and its subfolders.
function(stax_layer name)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(stax_${name} OBJECT ${sources})
  target_link_libraries(stax_${name} PRIVATE stax_flags ${arg_LIBS})
  set_property(GLOBAL APPEND PROPERTY STAX_LAYERS stax_${name})
endfunction()

# stax_layer_protobuf(NAME FILE): adds the code that protoc makes of src/FILE; it is included as "FILE" with .pb.h.
function(stax_layer_protobuf name file)
  if(NOT TARGET stax_${name})
    return()
  endif()
  set(generated ${PROJECT_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${generated}/${file})
  add_custom_command(OUTPUT ${stem}.cc ${stem}.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
    COMMAND protobuf::protoc -I ${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${generated} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} VERBATIM)
  target_sources(stax_${name} PRIVATE ${stem}.cc ${stem}.h)
endfunction()

function(stax_add_subdirectory_if_present folder)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()
