# berth_library(NAME DEPENDS ...): every .cpp of the calling folder but *_test.cpp and *_fuzz.cpp becomes the library
# berth_NAME; every *_test.cpp becomes part of the test program NAME_test (label unit). EXCLUDE names sources that
# belong to a program instead; FLAT leaves out the subfolders, which are libraries of their own. UNITY compiles several
# sources at once, which halves the time of a library whose sources instantiate the same templates; names in its unnamed
# namespaces are then unique in the library.
function(berth_library name)
  cmake_parse_arguments(arg "NO_TESTS;FLAT;UNITY" "" "DEPENDS;LABELS;EXCLUDE" ${ARGN})
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
  if(arg_UNITY)
    set_target_properties(berth_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()

  if(BERTH_TESTS AND tests AND NOT arg_NO_TESTS)
    berth_test(${name}_test LABEL unit SOURCES ${tests} DEPENDS berth_${name})
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

# berth_test(NAME LABEL unit|contract|integration|... SOURCES ... DEPENDS ...): one GoogleTest program, one CTest entry per
# test. With GROUPS of filters there is one entry per group, for tests that share what is costly to make; tools/test
# counts the tests of a group one by one, from its report in groups/. Tests with the
# same LOCK never run at the same time.
function(berth_test name)
  cmake_parse_arguments(arg "SERIAL" "LABEL;TIMEOUT;LOCK" "SOURCES;DEPENDS;GROUPS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  # The shared precompiled header is compiled with -fPIC; an executable's own -fPIE would not fit it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM berth_test_pch)
  foreach(group ${arg_GROUPS})
    add_test(NAME ${name}.${group} COMMAND ${name} --gtest_filter=*${group}*
      --gtest_output=xml:${CMAKE_BINARY_DIR}/groups/${name}.${group}.xml)
    set_tests_properties(${name}.${group} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT}
      RUN_SERIAL ${arg_SERIAL})
  endforeach()
  if(arg_GROUPS)
    return()
  endif()
  set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})
  if(arg_LOCK)
    list(APPEND properties RESOURCE_LOCK ${arg_LOCK})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
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
