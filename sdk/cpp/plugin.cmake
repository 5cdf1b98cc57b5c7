# berth_plugin(NAME SOURCES ... FILES ...): one plugin, ready to be installed, in the folder NAME of the build: the
# program, the manifest that it prints of itself, and copies of the FILES.
function(berth_plugin name)
  cmake_parse_arguments(arg "" "FOLDER" "SOURCES;FILES" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/${name})
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE berth_sdk)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${arg_FOLDER})
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND $<TARGET_FILE:${name}> --manifest > ${arg_FOLDER}/manifest.json VERBATIM)
  foreach(file ${arg_FILES})
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${file} ${arg_FOLDER} VERBATIM)
  endforeach()
endfunction()
