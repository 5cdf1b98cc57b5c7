# berth_web: the web page as data, behind http::embedded_page(). Without BERTH_WEB there is no page in it.
add_library(berth_web STATIC)
target_link_libraries(berth_web PUBLIC berth_http)
set(made ${CMAKE_BINARY_DIR}/web)
file(MAKE_DIRECTORY ${made})

if(NOT BERTH_WEB)
  file(CONFIGURE OUTPUT ${made}/no_page.cpp CONTENT
    "#include \"http/server/assets.hpp\"\n\nstd::span<const berth::http::Asset> berth::http::embedded_page() {\n  return {};\n}\n")
  target_sources(berth_web PRIVATE ${made}/no_page.cpp)
  return()
endif()

find_program(BERTH_NODE node NAMES nodejs)
find_program(BERTH_NPM npm)
if(NOT BERTH_NODE OR NOT BERTH_NPM)
  message(FATAL_ERROR "The web page is built with node and npm, and they are not installed. "
    "'tools/install build' installs them; -DBERTH_WEB=OFF builds berth without the page.")
endif()
enable_language(ASM)
set(web ${CMAKE_SOURCE_DIR}/web)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
list(FILTER sources EXCLUDE REGEX "src/api/schema.d.ts$") # made from the API's description
add_custom_command(
  OUTPUT ${made}/page.cpp ${made}/page.S ${made}/page.bin
  COMMAND ${web}/build ${made}
  DEPENDS ${sources} ${web}/build ${web}/embed.mjs ${web}/index.html ${web}/package.json
    ${web}/package-lock.json ${web}/tsconfig.json ${web}/vite.config.ts ${CMAKE_SOURCE_DIR}/docs/openapi.json
  COMMENT "Building the web page"
  VERBATIM)
target_sources(berth_web PRIVATE ${made}/page.cpp ${made}/page.S)
set_source_files_properties(${made}/page.S PROPERTIES OBJECT_DEPENDS ${made}/page.bin)
