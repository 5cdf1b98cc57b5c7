#include "files/walk.hpp"

#include "files/path.hpp"

#include <algorithm>
#include <utility>

namespace berth::files {

Result<Walk> Walk::from(int folder, std::string_view shown, Mounts mounts, const Limits& limits) {
  Walk walk{shown, mounts, limits};
  BERTH_DO(walk.enter(folder, "", std::string{shown}));
  return walk;
}

Result<std::optional<Walk::Item>> Walk::next() {
  is_entered_ = false;
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.names.empty()) {
      frames_.pop_back();
      continue;
    }
    std::string name = std::move(frame.names.back());
    frame.names.pop_back();
    if (++entries_ > limits_.entries_max) {
      return refuse(shown_ + path_,
                    "holds more than " + std::to_string(limits_.entries_max) + " entries");
    }
    BERTH_TRY(std::optional<Item> item, examine(frame, std::move(name)));
    if (!item) continue;
    // The folder is entered at once: its descriptor is available, and its content comes next.
    if (!item->refusal && item->found.is_directory()) {
      Result<> entered = enter(item->found.at.get(), item->path, shown_ + item->path);
      if (!entered && entered.error().code != Errc::path_refused) {
        return std::unexpected(std::move(entered).error());
      }
      if (!entered) item->refusal = std::move(entered).error();
      is_entered_ = !item->refusal;
    }
    return item;
  }
  return std::nullopt;
}

void Walk::skip_content() {
  if (std::exchange(is_entered_, false)) frames_.pop_back();
}

// One name more than may follow is read, so that `next` finds the limit exceeded.
Result<> Walk::enter(int folder, const std::string& path, const std::string& shown) {
  BERTH_TRY(Names names, Names::of(folder, shown));
  Frame frame{.folder = std::move(names), .names = {}, .path_bytes = path.size()};
  const std::uint64_t names_max = limits_.entries_max - std::min(entries_, limits_.entries_max) + 1;
  while (frame.names.size() < names_max) {
    BERTH_TRY(std::optional<std::string> name, frame.folder.next());
    if (!name) break;
    frame.names.push_back(*std::move(name));
  }
  std::ranges::sort(frame.names, std::ranges::greater{});
  path_ = path;
  frames_.push_back(std::move(frame));
  return {};
}

Result<std::optional<Walk::Item>> Walk::examine(const Frame& frame, std::string name) {
  path_.resize(frame.path_bytes);
  Item item{.path = path_ + (path_.empty() ? "" : "/") + name,
            .name = std::move(name),
            .folder = frame.folder.folder()};
  const std::string shown = shown_ + item.path;
  const auto refused = [&item](Error error) -> Result<std::optional<Item>> {
    item.refusal = std::move(error);
    return std::move(item);
  };
  if (item.path.size() > limits_.path_bytes_max) {
    const std::string most = std::to_string(limits_.path_bytes_max);
    return refused(refuse(shown, "is longer than " + most + " bytes").error());
  }
  if (frames_.size() > limits_.depth_max) {
    const std::string most = std::to_string(limits_.depth_max);
    return refused(refuse(shown, "is deeper than " + most + " folders").error());
  }
  Result<Found> found = find(item.folder, item.name, mounts_, shown);
  if (!found && found.error().code == Errc::file_not_found) return std::nullopt;
  if (!found && found.error().code == Errc::path_refused) return refused(std::move(found).error());
  BERTH_TRY(item.found, std::move(found));
  if (S_ISLNK(item.found.status.st_mode)) {
    BERTH_TRY(item.target, read_link(item.found.at.get(), "", shown));
  }
  return item;
}

}  // namespace berth::files
