#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// "open /etc/x: Permission denied", with the code io_failed; where there is no room, disk_full.
std::unexpected<Error> io_failure(std::string_view action, std::string_view object,
                                  int error_number);

Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
Result<std::string> read_fd(int fd, std::size_t bytes_max, std::string_view name);
// Fails with EEXIST as `conflict` when the file is there: of two who try, one wins.
Result<> create_file(const std::string& path, std::string_view text, mode_t mode);
// The file holds the old text or the new, never a part, also after a power cut.
Result<> replace_file(const std::string& path, std::string_view text, mode_t mode);
Result<> make_directories(const std::string& path, mode_t mode);
// What a directory holds, in order of name.
Result<std::vector<std::string>> names_in(const std::string& path);
std::string parent_of(const std::string& path);

}  // namespace berth
