#pragma once

#include "files/tree_writer.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

namespace berth::files {

// One way in which archives are unpacked.
struct RuleSet {
  std::string name;
  Rules rules = Rules::image;
  ArchiveForm form = ArchiveForm::plain;
  LinkRule links = LinkRule::any;

  bool is_workspace() const { return rules == Rules::workspace; }
  friend void PrintTo(const RuleSet& set, std::ostream* out) { *out << set.name; }
};

inline const RuleSet image_rules{.name = "image"};
inline const RuleSet image_layer_rules{.name = "image_layer", .form = ArchiveForm::layer};
inline const RuleSet upper_layer_rules{.name = "upper_layer", .rules = Rules::layer};
inline const RuleSet workspace_rules{
    .name = "workspace", .rules = Rules::workspace, .links = LinkRule::inside};
inline const RuleSet any_links_rules{.name = "workspace_any_links", .rules = Rules::workspace};

// A folder into which archives are unpacked, next to something that must not be touched.
class UnpackingFixture : public testing::Test {
 protected:
  UnpackingFixture() {
    std::filesystem::create_directory(root());
    std::ofstream{folder.file("outside")} << "untouched";
  }
  ~UnpackingFixture() override {
    EXPECT_EQ(text_of_file(folder.file("outside")), "untouched");
    const std::filesystem::directory_iterator beside{folder.path()};
    EXPECT_EQ(std::distance(begin(beside), end(beside)), 2) << "something appeared outside";
  }

  std::string root() const { return folder.file("root"); }
  std::string at(const std::string& path) const { return root() + "/" + path; }

  Result<Tally> unpack(const std::vector<std::string>& layers, const RuleSet& set,
                       const Limits& limits = {}) const {
    Meter meter;
    TreeWriter into{Fd{::open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)},
                    {.rules = set.rules, .limits = limits, .links = set.links},
                    meter};
    const TarOptions options{
        .name = "the tar", .rules = set.rules, .form = set.form, .limits = limits};
    for (const std::string& bytes : layers) {
      // In pieces, as from a socket.
      const ByteSource source = [&bytes,
                                 at = std::size_t{0}]() mutable -> Result<std::string_view> {
        const std::string_view piece = std::string_view{bytes}.substr(at, 10'000);
        at += piece.size();
        return piece;
      };
      BERTH_TRY(Content content, Content::open(source, options));
      BERTH_TRY(TarReader reader, TarReader::open(content));
      BERTH_DO(into.put_all(reader, set.form));
      BERTH_DO(content.drain());
    }
    BERTH_DO(into.finish());
    return into.tally();
  }
  // Each archive begins with an empty root.
  void empty_root() const {
    std::filesystem::remove_all(root());
    std::filesystem::create_directory(root());
  }

  static std::string text_of_file(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::string text_at(const std::string& path) const { return text_of_file(at(path)); }
  struct stat seen(const std::string& path) const {
    struct stat out{};
    EXPECT_EQ(::lstat(at(path).c_str(), &out), 0) << path;
    return out;
  }

  tests::TemporaryFolder folder;
};

}  // namespace berth::files
