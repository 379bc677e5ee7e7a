# Option TPRIMAT_STATIC, which preset package sets: the programs contain their libraries and C++'s, and need glibc alone, of
# 2.35 or older. What Debian 12 has no static form of comes from scripts/package/third_party.sh.
set(TPRIMAT_THIRD_PARTY ${CMAKE_SOURCE_DIR}/build/third_party/installed CACHE PATH "Static libraries that Debian has not")
list(PREPEND CMAKE_PREFIX_PATH ${TPRIMAT_THIRD_PARTY})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(CMAKE_SKIP_RPATH ON)
set(OPENSSL_USE_STATIC_LIBS ON)
set(TPRIMAT_OPENMP -l:libgomp.a)
add_link_options(-static-libstdc++ -static-libgcc LINKER:--gc-sections LINKER:--strip-all)

# Debian describes these as shared; their static forms have the same headers.
function(tprimat_take_static target library)
  find_library(TPRIMAT_STATIC_${library} ${library} REQUIRED)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION_${configuration} ${TPRIMAT_STATIC_${library}} IMPORTED_SONAME_${configuration} "")
  endforeach()
endfunction()
foreach(pair IN ITEMS "fmt fmt::fmt fmt" "simdjson simdjson::simdjson simdjson" "yaml-cpp yaml-cpp yaml-cpp"
    "pugixml pugixml::shared pugixml" "hwy hwy::hwy hwy")
  separate_arguments(pair)
  list(GET pair 0 package)
  list(GET pair 1 target)
  list(GET pair 2 library)
  find_package(${package} REQUIRED)
  tprimat_take_static(${target} ${library})
endforeach()

# What a shared library names itself: the libraries behind it.
find_package(ZLIB REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_package(LibArchive REQUIRED)
set_property(TARGET LibArchive::LibArchive APPEND PROPERTY INTERFACE_LINK_LIBRARIES ZLIB::ZLIB ${ZSTD_LIBRARY})
find_package(dnnl REQUIRED)
set_property(TARGET DNNL::dnnl APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${TPRIMAT_OPENMP})
