# stax_find_dependency(NAME ...): find_package(NAME ... REQUIRED) for a library that users of the static library have to
# link too; the installed package looks for it again.
macro(stax_find_dependency)
  find_package(${ARGN} REQUIRED)
  string(REPLACE ";" " " stax_dependency_arguments "${ARGN}")
  set_property(GLOBAL APPEND_STRING PROPERTY STAX_PACKAGE_DEPENDENCIES
    "find_dependency(${stax_dependency_arguments})\n")
endmacro()

stax_find_dependency(Threads)
stax_find_dependency(fmt)
stax_find_dependency(OpenSSL COMPONENTS Crypto)
stax_find_dependency(ZLIB)
stax_find_dependency(Protobuf)
stax_find_dependency(dnnl)

# Only headers, and only inside.
find_package(nlohmann_json REQUIRED)
