# berth_plugin(NAME SOURCES ... FILES ...): one plugin, ready to be installed, in the folder NAME of the build: the
# program, the manifest that it prints of itself, and copies of the FILES. LIBRARY takes the place of berth_sdk.
function(berth_plugin name)
  cmake_parse_arguments(arg "" "FOLDER;LIBRARY" "SOURCES;FILES" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/${name})
  endif()
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY berth_sdk)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARY})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${arg_FOLDER})
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND $<TARGET_FILE:${name}> --manifest > ${arg_FOLDER}/manifest.json VERBATIM)
  foreach(file ${arg_FILES})
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${file} ${arg_FOLDER} VERBATIM)
  endforeach()
endfunction()
