#pragma once

#include <optional>
#include <string>
#include <string_view>

// How the kernel and the tools spell what the checks want to know: pure text, tested as such.
namespace berth::cli::doctor {

struct Version {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};
// The first "N.M" in the text: of "6.1.0-18-amd64", "OpenSSH_9.2p1" or "git version 2.39.5".
std::optional<Version> version_in(std::string_view text);

// Which cgroup hierarchies /proc/self/mounts shows.
enum class Cgroups { none, v1, hybrid, v2 };
Cgroups cgroups_in(std::string_view mounts);

// A value of /etc/os-release, without its quotes.
std::string os_release_value(std::string_view text, std::string_view key);
// "1.5 GiB".
std::string bytes_text(unsigned long long bytes);

}  // namespace berth::cli::doctor
