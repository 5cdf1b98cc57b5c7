#include "cli/doctor/facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace berth::cli::doctor {
namespace {

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::string_view type_of_mount(std::string_view line) {
  take_word(line);  // device
  take_word(line);  // mount point
  return take_word(line);
}

}  // namespace

std::optional<Version> version_in(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    if (*at < '0' || *at > '9') continue;
    Version version;
    const auto major = std::from_chars(at, end, version.major);
    if (major.ec == std::errc{} && major.ptr + 1 < end && *major.ptr == '.') {
      if (std::from_chars(major.ptr + 1, end, version.minor).ec == std::errc{}) return version;
    }
    at = std::max(at, major.ptr - 1);  // a number that is not a version: continue after it
  }
  return std::nullopt;
}

Cgroups cgroups_in(std::string_view mounts) {
  bool v1 = false;
  bool v2 = false;
  while (!mounts.empty()) {
    const std::string_view type = type_of_mount(take_line(mounts));
    v1 = v1 || type == "cgroup";
    v2 = v2 || type == "cgroup2";
  }
  if (v1 && v2) return Cgroups::hybrid;
  return v2 ? Cgroups::v2 : v1 ? Cgroups::v1 : Cgroups::none;
}

std::string os_release_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.substr(0, equals) != key) continue;
    std::string_view value = line.substr(equals + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    return std::string{value};
  }
  return {};
}

std::string bytes_text(unsigned long long bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < units.size()) {
    amount /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return text.data();
}

}  // namespace berth::cli::doctor
