find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(prometheus-cpp REQUIRED CONFIG)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(libseccomp REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(libarchive REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(re2 REQUIRED re2)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
find_package(CLI11 REQUIRED)
if(BERTH_TESTS)
  find_package(GTest REQUIRED)
endif()

# Only the library: the -pthread that it names for compilers does not go together with our precompiled header.
add_library(berth_re2 INTERFACE)
target_link_libraries(berth_re2 INTERFACE ${re2_LINK_LIBRARIES})

# Third-party headers are not ours to warn about.
add_library(berth_boost INTERFACE)
target_link_libraries(berth_boost INTERFACE Boost::json Boost::url Threads::Threads OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(berth_boost INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_HAS_CO_AWAIT BOOST_ASIO_HAS_STD_COROUTINE)
