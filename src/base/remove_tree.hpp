#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <expected>
#include <limits>
#include <string>

// The one remover of trees. It is safe against processes that write there meanwhile: symbolic links
// are removed and never followed, mount points are refused (EBUSY), and nothing outside is reached.
// Only two folders are open at a time, however deep the tree is, and folders that their owner
// closed are opened to the owner. A removal that failed half-way can be repeated.
namespace berth {

// ENOTEMPTY: another process writes there. E2BIG: there are more than `entries_max` entries.
struct RemoveFailure {
  int error_number = 0;
  std::string name;  // of the entry that could not be removed
};
// A file, a link, or a folder with everything below it, by its name in an open folder.
std::expected<void, RemoveFailure> remove_at(
    int parent, const std::string& name,
    std::uint64_t entries_max = std::numeric_limits<std::uint64_t>::max());

// The same by path. Succeeds if the path does not exist.
Result<> remove_tree(const std::string& path);

// The contents of an open folder, which remains, and so does the spared entry with its contents.
Result<> empty_folder(Fd folder, const std::string& shown, const std::string& spared = {});

}  // namespace berth
