# Clang 19 in C++23 mode with libstdc++ 12. g++ 12 destroys temporaries twice in statements with co_await.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR
    "Berth needs Clang 19 or newer; this is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}.\n"
    "Install it with 'apt-get install clang-19' and configure with a preset: cmake --preset release")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(BERTH_TESTS "build the tests" ON)
# A build that looks for mistakes in the C++ does without the page: it is the same in each.
if(BERTH_SANITIZE)
  set(berth_web_default OFF)
else()
  set(berth_web_default ON)
endif()
option(BERTH_WEB "embed the web page; needs node and npm" ${berth_web_default})
option(BERTH_BENCH "build the benchmarks" OFF)
option(BERTH_FUZZ "build the fuzz targets with libFuzzer" OFF)
set(BERTH_SANITIZE "" CACHE STRING "sanitizers for every target: address,undefined or thread")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Werror -fdiagnostics-color=always
  -Wno-gnu-zero-variadic-macro-arguments
  -Wno-missing-braces) # the JSON mapper builds derived aggregates in one go
add_link_options(-fuse-ld=lld-19)

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong -fcf-protection)
  add_link_options(-pie -Wl,-z,relro,-z,now)
endif()
