# The operator functions and methods: tools/opgen reads the op table and writes them below the build folder.
set(STAX_OPGEN_LAYERS support symbolic loops graph lowering ops)
set(stax_generated_dir ${PROJECT_BINARY_DIR}/generated/stax)
set(stax_generated_sources)
foreach(shard 0 1 2 3)
  list(APPEND stax_generated_sources ${stax_generated_dir}/functions_${shard}.cpp)
endforeach()

if(NOT TARGET stax_ops)
  # Without an op table there are no operators to declare.
  file(MAKE_DIRECTORY ${stax_generated_dir})
  foreach(name functions.h tensor_methods.inc)
    if(NOT EXISTS ${stax_generated_dir}/${name})
      file(WRITE ${stax_generated_dir}/${name} "")
    endif()
  endforeach()
  return()
endif()

set(stax_opgen_objects)
foreach(layer ${STAX_OPGEN_LAYERS})
  list(APPEND stax_opgen_objects $<TARGET_OBJECTS:stax_${layer}>)
endforeach()
add_executable(stax_opgen ${PROJECT_SOURCE_DIR}/tools/opgen/main.cpp ${PROJECT_SOURCE_DIR}/tools/opgen/generate.cpp
  ${stax_opgen_objects})
target_include_directories(stax_opgen PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(stax_opgen PRIVATE stax_flags fmt::fmt OpenSSL::Crypto ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})

add_custom_command(OUTPUT ${stax_generated_dir}/stamp
  BYPRODUCTS ${stax_generated_dir}/functions.h ${stax_generated_dir}/tensor_methods.inc ${stax_generated_sources}
  COMMAND stax_opgen ${PROJECT_BINARY_DIR}/generated
  COMMAND ${CMAKE_COMMAND} -E touch ${stax_generated_dir}/stamp
  DEPENDS stax_opgen COMMENT "Writing the operator functions")
add_custom_target(stax_generated DEPENDS ${stax_generated_dir}/stamp)

# Layers that opgen is not made of see the public headers, which include what it writes.
get_property(layers GLOBAL PROPERTY STAX_LAYERS)
foreach(layer ${STAX_OPGEN_LAYERS})
  list(REMOVE_ITEM layers stax_${layer})
endforeach()
foreach(layer ${layers})
  add_dependencies(${layer} stax_generated)
endforeach()
if(TARGET stax_capture)
  target_sources(stax_capture PRIVATE ${stax_generated_sources})
endif()
