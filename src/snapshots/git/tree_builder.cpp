#include "snapshots/git/tree_builder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace berth::snapshots {
namespace {

std::string octal(GitMode mode) {
  std::array<char, 16> text{};
  const int size = std::snprintf(text.data(), text.size(), "%o", static_cast<unsigned>(mode));
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

Result<> TreeBuilder::add(std::string_view path, GitMode mode, const ObjectId& id) {
  std::size_t depth = 1;
  while (true) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) break;
    const std::string_view name = path.substr(0, slash);
    if (depth < folders_.size() && folders_[depth].name != name) {
      while (folders_.size() > depth) BERTH_DO(close_folder());
    }
    if (depth == folders_.size()) folders_.push_back({.name = std::string{name}});
    ++depth;
    path.remove_prefix(slash + 1);
  }
  while (folders_.size() > depth) BERTH_DO(close_folder());
  folders_.back().items.push_back({std::string{path}, mode, id});
  return {};
}

Result<> TreeBuilder::close_folder() {
  Folder folder = std::move(folders_.back());
  folders_.pop_back();
  BERTH_TRY(const ObjectId id, write(std::move(folder.items)));
  folders_.back().items.push_back({std::move(folder.name), GitMode::tree, id});
  return {};
}

Result<ObjectId> TreeBuilder::finish() {
  while (folders_.size() > 1) BERTH_DO(close_folder());
  return write(std::move(folders_.front().items));
}

Result<ObjectId> TreeBuilder::write(std::vector<Item> items) {
  // Git compares a tree as if its name ended with a slash, and nothing else, not even a nested
  // repository.
  std::ranges::sort(items, {}, [](const Item& item) {
    return item.mode == GitMode::tree ? item.name + "/" : item.name;
  });
  std::string content;
  for (const Item& item : items) {
    content += octal(item.mode);
    content += ' ';
    content += item.name;
    content += '\0';
    content += item.id.raw();
  }
  const ObjectId id = id_of(ObjectType::tree, content);
  trees_.push_back(id);
  if (known_.contains(id)) return id;
  return pack_.add(ObjectType::tree, content);
}

std::string text_of(const CommitText& commit) {
  const std::string who = "Berth <berth@localhost> " + std::to_string(commit.seconds) + " +0000\n";
  std::string text = "tree " + commit.tree.hex() + "\n";
  for (const ObjectId& parent : commit.parents) text += "parent " + parent.hex() + "\n";
  return text + "author " + who + "committer " + who + "\n" + commit.message + "\n";
}

}  // namespace berth::snapshots
