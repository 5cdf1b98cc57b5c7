#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// "open /etc/x: Permission denied", with the code io_failed, or disk_full for a full disk.
std::unexpected<Error> io_failure(std::string_view action, std::string_view object,
                                  int error_number);

Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
Result<std::string> read_fd(int fd, std::size_t bytes_max, std::string_view name);
// Fails with `conflict` when the file exists (EEXIST): only one of two callers wins.
Result<> create_file(const std::string& path, std::string_view text, mode_t mode);
// The file holds the old text or the new, never a part, even after a power cut.
Result<> replace_file(const std::string& path, std::string_view text, mode_t mode);
Result<> make_directories(const std::string& path, mode_t mode);
// The names in a directory, sorted.
Result<std::vector<std::string>> names_in(const std::string& path);
std::string parent_of(const std::string& path);

}  // namespace berth
