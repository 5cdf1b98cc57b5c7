#include "cli/plugin_skeleton.hpp"

#include "base/text.hpp"
#include "cli/skeleton_files.hpp"

#include <algorithm>
#include <string_view>

namespace berth::cli {
namespace {

// Replaces "@NAME@" and the like.
std::string filled(std::string_view text, const SkeletonOptions& wanted) {
  std::string identifier = wanted.name;
  std::ranges::replace_if(identifier, [](char c) { return c == '-' || c == '.'; }, '_');
  if (identifier.front() >= '0' && identifier.front() <= '9') identifier.insert(0, 1, '_');
  std::string out{text};
  for (const auto& [mark, value] : {std::pair{std::string_view{"@NAME@"}, wanted.name},
                                    std::pair{std::string_view{"@IDENTIFIER@"}, identifier},
                                    std::pair{std::string_view{"@SDK@"}, wanted.sdk},
                                    std::pair{std::string_view{"@BERTH@"}, wanted.berth}}) {
    for (std::size_t at = out.find(mark); at != std::string::npos;
         at = out.find(mark, at + value.size())) {
      out.replace(at, mark.size(), value);
    }
  }
  return out;
}

bool is_plugin_name(std::string_view name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto fits = [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 64 && is_plain(name.front()) &&
         std::ranges::all_of(name, fits);
}

}  // namespace

Result<std::vector<SkeletonFile>> plugin_skeleton(const SkeletonOptions& wanted) {
  if (!is_plugin_name(wanted.name)) {
    return fail(Errc::bad_request, in_quotes(wanted.name) + " is not a plugin name",
                "use lower-case letters, digits, '.', '_' and '-', for example acme-sandbox");
  }
  if (wanted.language == PluginLanguage::js) {
    return std::vector<SkeletonFile>{{"manifest.json", filled(skeleton::js_manifest, wanted)},
                                     {"worker.mjs", filled(skeleton::js_worker, wanted)},
                                     {"README.md", filled(skeleton::js_readme, wanted)}};
  }
  return std::vector<SkeletonFile>{{"CMakeLists.txt", filled(skeleton::cpp_build, wanted)},
                                   {"provider.cpp", filled(skeleton::cpp_provider, wanted)},
                                   {"README.md", filled(skeleton::cpp_readme, wanted)}};
}

}  // namespace berth::cli
