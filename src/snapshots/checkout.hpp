#pragma once

#include "snapshots/git/object_reader.hpp"
#include "snapshots/git/repository.hpp"

#include <cstdint>
#include <string>

namespace berth::snapshots {

struct CheckoutLimits {
  std::uint64_t files_max = 500'000;
  std::uint64_t bytes_max = 64ULL << 30;
  std::size_t depth_max = 128;
};

struct Checkout {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t nested = 0;  // nested repositories: empty folders
};

// Writes the tree of a snapshot into a new folder: files as 0644 or 0755, links as they are,
// folders as 0755. The folder has the whole tree when it appears under its name; before, it has a
// draft name beside it. conflict if the name is taken. A tree with a name that could mean something
// else than a file of the tree is refused as a whole, with path_refused, before anything is
// written. Memory does not depend on the size of the files.
Result<Checkout> check_out(const Repository& repository, const ObjectId& snapshot,
                           const std::string& folder, const CheckoutLimits& limits = {});

// Refuses what no tree may hold: names (tree_name.hpp), a file that is also a folder, duplicates.
Result<> check_tree(const std::vector<TreeEntry>& entries, const CheckoutLimits& limits);

}  // namespace berth::snapshots
