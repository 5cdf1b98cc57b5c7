#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

struct FolderKind {
  using Raw = std::string;
  static Raw none() { return {}; }
  static void dispose(const Raw& path) noexcept;  // with all that is in it
};

// A folder that is not in its place yet, or not any more. It is gone with this value, unless it is
// published. While this lives, the lock on the folder tells others that somebody works there; the
// kernel lets go of it when the process dies.
struct Draft {
  Fd folder;
  Owned<FolderKind> path;  // removed first, unlocked afterwards
};

// Templates hold what they stand on as "template-ID", sandboxes by their own id, which is not that
// of their lease.
inline constexpr std::string_view template_holder_prefix = "template-";
// "sandbox 7f3a", "template 7f3a"
std::string describe_holder(const std::string& holder);
inline constexpr const char* in_use_remedy =
    "release the leases of its sandboxes ('berth sandbox ls --json' has the sandboxId of each) and "
    "remove its templates ('berth template list')";

// The part that images and templates have in common: a folder of finished things, drafts beside it,
// and a lock for the short moments in which a thing comes, goes or is held. Several processes may
// use it at the same time.
class StoreFolder {
 public:
  // `things` is the name of the folder of finished things.
  static Result<StoreFolder> open(std::string path, std::string things);

  const std::string& path() const { return path_; }
  std::string place_of(std::string_view thing) const { return things() + "/" + std::string{thing}; }
  Result<std::vector<std::string>> names() const;
  bool contains(std::string_view thing) const;

  // Waits for others, but not for ever: `conflict` after half a minute.
  Result<Fd> lock() const;

  Result<Draft> make_draft() const;
  // All of it reaches the disk before the caller publishes it, so that a thing that is there is
  // whole, also after a power cut.
  Result<> make_durable(const Draft& draft) const;
  // Under the lock. A draft moves to its place; a thing becomes a draft, unless somebody pins it
  // (`image_in_use`).
  Result<> publish(Draft draft, std::string_view thing) const;
  Result<Draft> retire(std::string_view thing) const;
  // Removes drafts whose maker is dead, and says how many there were.
  Result<std::uint64_t> sweep() const;

  // A thing cannot be retired while somebody holds it. A hold is a file and outlives its maker; a
  // pin lives as long as the descriptor.
  Result<> hold(std::string_view thing, const std::string& holder) const;
  Result<> release(std::string_view thing, const std::string& holder) const;
  std::vector<std::string> holders(std::string_view thing) const;
  Result<Fd> pin(std::string_view thing) const;

 private:
  StoreFolder(std::string path, std::string things)
      : path_(std::move(path)), things_(std::move(things)) {}
  std::string things() const { return path_ + "/" + things_; }
  std::string drafts() const { return path_ + "/drafts"; }
  std::string holds_of(std::string_view thing) const { return place_of(thing) + "/holds"; }

  std::string path_;
  std::string things_;
};

}  // namespace berth::images
