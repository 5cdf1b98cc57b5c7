# berth_library(NAME DEPENDS ...): every .cpp of the calling folder but *_test.cpp and *_fuzz.cpp becomes the library
# berth_NAME; every *_test.cpp becomes part of the test program NAME_test (label unit). EXCLUDE names sources that
# belong to a program instead; FLAT leaves out the subfolders, which are libraries of their own.
function(berth_library name)
  cmake_parse_arguments(arg "NO_TESTS;FLAT" "" "DEPENDS;LABELS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(NOT arg_FLAT)
    file(GLOB_RECURSE nested CONFIGURE_DEPENDS */*.cpp)
    list(APPEND sources ${nested})
  endif()
  foreach(excluded ${arg_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")

  if(NOT sources)
    return()
  endif()
  add_library(berth_${name} STATIC ${sources})
  target_include_directories(berth_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(berth_${name} PUBLIC berth_boost ${arg_DEPENDS})
  target_precompile_headers(berth_${name} REUSE_FROM berth_pch)
  berth_compile_in_batches(berth_${name})

  if(BERTH_TESTS AND tests AND NOT arg_NO_TESTS)
    berth_test(${name}_test LABEL unit SHARDS 1 SOURCES ${tests} DEPENDS berth_${name})
  endif()
  if(BERTH_FUZZ AND fuzzers)
    # What a fuzzer is led by, in the library that it fuzzes and nowhere else: it makes a compilation a third longer.
    target_compile_options(berth_${name} PRIVATE -fsanitize-coverage=inline-8bit-counters,pc-table,indirect-calls,trace-cmp)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_link_libraries(${target} PRIVATE berth_${name})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# Compiles several sources of a target at once. That halves the time where they instantiate the same templates, which is
# everywhere; names in unnamed namespaces are therefore unique in a library and in a test program.
function(berth_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# berth_test(NAME LABEL unit|contract|integration|... SOURCES ... DEPENDS ...): one GoogleTest program, one CTest entry per
# test. Tests with the same LOCK never run at the same time. A start with sanitizers costs more than most tests do, so
# tests that leave nothing behind in their process share one: SHARDS N divides them into N entries, and GROUPS of filters
# has one entry per filter. tools/test counts the tests of such an entry one by one, from its report in groups/.
function(berth_test name)
  cmake_parse_arguments(arg "SERIAL" "LABEL;TIMEOUT;LOCK;SHARDS" "SOURCES;DEPENDS;GROUPS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  # The shared precompiled header is compiled with -fPIC; an executable's own -fPIE would not fit it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  # A helper of one test file may have the name of a local of another that is compiled with it.
  target_compile_options(${name} PRIVATE -fPIC -Wno-shadow)
  target_precompile_headers(${name} REUSE_FROM berth_test_pch)
  berth_compile_in_batches(${name})
  foreach(group ${arg_GROUPS})
    berth_test_entry(${name} ${name}.${group} LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL}
      RESOURCE_LOCK "${arg_LOCK}" ENVIRONMENT GTEST_FILTER=*${group}*)
  endforeach()
  if(arg_SHARDS)
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(shard RANGE ${last})
      berth_test_entry(${name} ${name}.${shard} LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
      set_property(TEST ${name}.${shard} PROPERTY ENVIRONMENT
        GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${shard})
    endforeach()
  endif()
  if(arg_GROUPS OR arg_SHARDS)
    return()
  endif()
  set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})
  if(arg_LOCK)
    list(APPEND properties RESOURCE_LOCK ${arg_LOCK})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

function(berth_test_entry program entry)
  add_test(NAME ${entry} COMMAND ${program} --gtest_output=xml:${CMAKE_BINARY_DIR}/groups/${entry}.xml)
  set_tests_properties(${entry} PROPERTIES ${ARGN})
endfunction()

# Every header must compile alone: one generated source per header, compiled and thrown away. A header
# that a source of the same name includes first is compiled alone by that source already, but for what
# the precompiled header has: `berth_lone_headers_alone` are the others, and quick.
function(berth_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/*.hpp)
  list(FILTER headers EXCLUDE REGEX "_fixture\\.hpp$")  # of tests, which see more than src
  set(every)
  set(lone)
  foreach(header ${headers})
    string(MAKE_C_IDENTIFIER ${header} id)
    set(source ${CMAKE_BINARY_DIR}/headers/${id}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND every ${source})
    string(REGEX REPLACE "hpp$" "cpp" own ${header})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${own})
      list(APPEND lone ${source})
    endif()
  endforeach()
  berth_compile_headers(berth_headers_alone ${every})
  berth_compile_headers(berth_lone_headers_alone ${lone})
endfunction()

function(berth_compile_headers name)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE berth_boost PkgConfig::sodium PkgConfig::tomlplusplus CLI11::CLI11
    prometheus-cpp::core SQLite::SQLite3 PostgreSQL::PostgreSQL)
  # The point is that it compiles, not what comes out.
  target_compile_options(${name} PRIVATE -O0 -g0 -fno-sanitize=all)
endfunction()
