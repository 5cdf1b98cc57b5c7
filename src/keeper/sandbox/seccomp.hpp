#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>

// Which system calls there are inside. The programs are made by filters/generate.cpp when the
// keeper is built; docs/sandbox.md has the list.
namespace berth::keeper::sandbox {

enum class Debugging : std::uint8_t { denied, allowed };
enum class Nesting : std::uint8_t { denied, allowed };
std::span<const sock_filter> filter_program(Debugging debugging, Nesting nesting);
// Beside the other: no file gets a set-user-id or set-group-id bit.
std::span<const sock_filter> set_id_program();

// Beside both, where there are no namespaces: no sockets but pairs that are connected, and nothing
// that reaches other processes of the same user or what they share.
std::span<const sock_filter> same_user_program();
// The same with sockets of the internet, whose ports Landlock limits.
std::span<const sock_filter> same_user_internet_program();

// For the calling thread and all it starts, for ever. It must have given up new privileges before.
// 0 or errno.
int install_filter(std::span<const sock_filter> program);

}  // namespace berth::keeper::sandbox
