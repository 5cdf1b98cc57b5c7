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
  static void dispose(const Raw& path) noexcept;  // recursively
};

// A folder that is not published yet, or not any more. It is deleted with this object unless it is
// published. Meanwhile the lock on the folder shows other processes that it is in use; the kernel
// releases the lock when the process dies.
struct Draft {
  Fd folder;
  Owned<FolderKind> path;  // removed first, unlocked afterwards
};

// Templates hold what they are based on as "template-ID". Sandboxes hold it by their own id, which
// is not the lease's.
inline constexpr std::string_view template_holder_prefix = "template-";
// "sandbox 7f3a", "template 7f3a"
std::string describe_holder(const std::string& holder);
inline constexpr const char* in_use_remedy =
    "release the leases of its sandboxes ('berth sandbox ls --json' has the sandboxId of each) and "
    "remove its templates ('berth template list')";

// What images and templates have in common: a folder of finished things, drafts next to it, and a
// lock for the short moments in which a thing is added, removed or held. Several processes may use
// it at the same time.
class StoreFolder {
 public:
  // `things` is the name of the folder of finished things.
  static Result<StoreFolder> open(std::string path, std::string things);

  const std::string& path() const { return path_; }
  std::string place_of(std::string_view thing) const { return things() + "/" + std::string{thing}; }
  Result<std::vector<std::string>> names() const;
  bool contains(std::string_view thing) const;

  // Waits for other processes, but not forever: `conflict` after half a minute.
  Result<Fd> lock() const;

  Result<Draft> make_draft() const;
  // Writes everything to disk before the caller publishes it, so that a published thing is complete
  // even after a power cut.
  Result<> make_durable(const Draft& draft) const;
  // Require the lock. publish() moves a draft to its place. retire() turns a thing into a draft,
  // unless it is pinned (`image_in_use`).
  Result<> publish(Draft draft, std::string_view thing) const;
  Result<Draft> retire(std::string_view thing) const;
  // Removes the drafts of dead processes and returns their number.
  Result<std::uint64_t> sweep() const;

  // A thing cannot be retired while it is held. A hold is a file and outlives its maker; a pin
  // lives as long as the descriptor.
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
