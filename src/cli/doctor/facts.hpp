#pragma once

#include <optional>
#include <string>
#include <string_view>

// Parses the text of the kernel and of tools for the checks. Pure, and tested as such.
namespace berth::cli::doctor {

struct Version {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};
// The first "N.M" in the text: "6.1.0-18-amd64", "OpenSSH_9.2p1" or "git version 2.39.5".
std::optional<Version> version_in(std::string_view text);

// The cgroup hierarchies in /proc/self/mounts.
enum class Cgroups { none, v1, hybrid, v2 };
Cgroups cgroups_in(std::string_view mounts);

// A value from /etc/os-release, without its quotes.
std::string os_release_value(std::string_view text, std::string_view key);
// "1.5 GiB".
std::string bytes_text(unsigned long long bytes);

}  // namespace berth::cli::doctor
