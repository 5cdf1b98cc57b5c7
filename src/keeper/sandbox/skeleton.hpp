#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

// What a sandbox root on the host's own programs has besides those programs. It is data, because it
// is both created and compared.
namespace berth::keeper::sandbox {

struct SkeletonFolder {
  const char* path;
  mode_t mode;
};
inline constexpr std::array skeleton_folders{
    SkeletonFolder{"usr", 0755},     SkeletonFolder{"etc", 0755},
    SkeletonFolder{"etc/ssl", 0755}, SkeletonFolder{"proc", 0555},
    SkeletonFolder{"dev", 0755},     SkeletonFolder{"sys", 0555},
    SkeletonFolder{"tmp", 01777},    SkeletonFolder{"run", 0755},
    SkeletonFolder{"var", 0755},     SkeletonFolder{"var/tmp", 01777},
    SkeletonFolder{"var/lib", 0755}, SkeletonFolder{"var/cache", 0755},
    SkeletonFolder{"var/log", 0755}, SkeletonFolder{"home", 0755},
    SkeletonFolder{"root", 0700},    SkeletonFolder{"opt", 0755}};

inline constexpr mode_t skeleton_file_mode = 0644;
struct SkeletonFile {
  const char* path;
  std::string_view text;
};
// Without it "localhost" does not resolve.
inline constexpr SkeletonFile hosts_file{"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"};
inline constexpr std::array skeleton_files{
    SkeletonFile{"etc/passwd",
                 "root:x:0:0:root:/root:/bin/sh\n"
                 "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n"
                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    SkeletonFile{"etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"}, hosts_file,
    SkeletonFile{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"}};

// Requires a folder without any of these files; the caller owns them. Returns 0 or errno.
int make_skeleton(int directory);
// The same for a file that an image may lack.
int make_hosts_file(int directory);
// Without a user namespace the skeleton's user ids start here, and this writes them to its files.
// Call it in the sandbox's root. Returns 0 or errno.
int name_ids(std::uint32_t first_id);

// Top-level folders that are links into /usr on most systems and separate folders on others.
inline constexpr std::array usr_links{"/bin", "/sbin", "/lib", "/lib32", "/lib64"};
// Without these, programs in /usr are not found or trust no certificate.
inline constexpr std::array etc_parts{"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs"};
// The host's own, for sandboxes on its network.
inline constexpr const char* name_servers_file = "/etc/resolv.conf";

}  // namespace berth::keeper::sandbox
