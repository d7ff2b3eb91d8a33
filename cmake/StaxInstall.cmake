# What `cmake --install` puts in place: the library, the public headers (the build's own ones included), the programs,
# the Python package that works on GPU kernels, and a CMake package that finds its files relative to itself.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS stax EXPORT staxTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/stax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/stax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/stax_triton DESTINATION ${CMAKE_INSTALL_DATADIR}/stax/python
  FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
if(TARGET stax_cli)
  install(TARGETS stax_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stax)
get_property(STAX_PACKAGE_DEPENDENCIES GLOBAL PROPERTY STAX_PACKAGE_DEPENDENCIES)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/staxConfig.cmake.in ${PROJECT_BINARY_DIR}/staxConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/staxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/staxConfig.cmake ${PROJECT_BINARY_DIR}/staxConfigVersion.cmake
  DESTINATION ${package_dir})
install(EXPORT staxTargets NAMESPACE stax:: DESTINATION ${package_dir})
