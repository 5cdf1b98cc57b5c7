#pragma once

#include <string_view>

// The files of tools/plugin_kit/skeleton, embedded at build.
namespace berth::cli::skeleton {

extern const std::string_view cpp_build;
extern const std::string_view cpp_provider;
extern const std::string_view cpp_readme;
extern const std::string_view js_manifest;
extern const std::string_view js_worker;
extern const std::string_view js_readme;

}  // namespace berth::cli::skeleton
