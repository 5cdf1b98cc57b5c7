#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>

// Which system calls are available inside. filters/generate.cpp makes the programs when the keeper
// is built; docs/sandbox.md has the list.
namespace berth::keeper::sandbox {

enum class Debugging : std::uint8_t { denied, allowed };
enum class Nesting : std::uint8_t { denied, allowed };
std::span<const sock_filter> filter_program(Debugging debugging, Nesting nesting);
// In addition: no file gets a set-user-id or set-group-id bit.
std::span<const sock_filter> set_id_program();

// In addition to both, without namespaces: no sockets except connected pairs, and no access to
// other processes of the same user or to what they share.
std::span<const sock_filter> same_user_program();
// The same with internet sockets, whose ports Landlock limits.
std::span<const sock_filter> same_user_internet_program();

// Permanent, for the calling thread and its children. It must have set no_new_privs before. Returns
// 0 or errno.
int install_filter(std::span<const sock_filter> program);

}  // namespace berth::keeper::sandbox
