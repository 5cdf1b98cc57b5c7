#pragma once

#include "files/beneath.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// Unfinished files and folders: written under an unguessable name beside their place, and then put
// there by a rename, so that a place has its old content or the complete new one, never a part.
// What was not put in place is removed. Nothing is synced: a power cut may lose it.
namespace berth::files {

std::string draft_name();
bool is_draft_name(std::string_view name);

class DraftFile {
 public:
  // The folder's descriptor must outlive the draft.
  static Result<DraftFile> in(int folder, Mounts mounts, std::string_view shown);
  DraftFile(DraftFile&& other) noexcept;
  DraftFile& operator=(DraftFile&&) = delete;
  ~DraftFile();

  int fd() const { return file_.get(); }
  // Replaces the name itself, so it never writes through a link or into a file that has another
  // name elsewhere.
  Result<> put(const std::string& name, std::string_view shown);

 private:
  DraftFile(int folder, std::string name, Fd file)
      : folder_(folder), name_(std::move(name)), file_(std::move(file)) {}

  int folder_;
  std::string name_;
  Fd file_;
};

class DraftFolder {
 public:
  // The folder's descriptor must outlive the draft. `shown` is how the caller knows its place.
  static Result<DraftFolder> in(int folder, std::string shown, std::uint64_t entries_max);
  DraftFolder(DraftFolder&& other) noexcept;
  DraftFolder& operator=(DraftFolder&&) = delete;
  ~DraftFolder();

  // A descriptor for a writer.
  Result<Fd> open() const;
  // As a name beside it, in one step. Whatever had the name is removed afterwards.
  Result<> put(const std::string& name);
  // Moves its content into a folder on the same file system, which may have content: folders are
  // merged and keep their mode and owner, files and links are replaced. First checks that
  // everything fits (a file in place of a folder, or the reverse, does not); otherwise moves
  // nothing.
  Result<> merge_into(int target, Mounts mounts) const;
  // Removes what is left of it.
  Result<> remove();

 private:
  DraftFolder(int folder, std::string name, std::string shown, std::uint64_t entries_max)
      : folder_(folder),
        name_(std::move(name)),
        shown_(std::move(shown)),
        entries_max_(entries_max) {}

  int folder_;
  std::string name_;
  std::string shown_;
  std::uint64_t entries_max_;
};

}  // namespace berth::files
