#include "images/image.hpp"

#include "base/digest.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>

namespace berth::images {
namespace {

constexpr std::size_t name_bytes_max = 128;
constexpr std::size_t tag_bytes_max = 64;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Components separated by slashes, each of words joined by single dots, dashes or underscores.
bool is_name(std::string_view text) {
  if (text.empty() || text.size() > name_bytes_max) return false;
  bool in_word = false;
  for (const char c : text) {
    const bool joint = c == '.' || c == '-' || c == '_' || c == '/';
    if (is_lower_or_digit(c)) {
      in_word = true;
    } else if (joint && in_word) {
      in_word = false;
    } else {
      return false;
    }
  }
  return in_word;
}

bool is_tag(std::string_view text) {
  const auto fits = [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= tag_bytes_max && text.front() != '.' &&
         text.front() != '-' && !text.contains(name_draft_mark) && std::ranges::all_of(text, fits);
}

}  // namespace

std::vector<std::string> sources_of(const ImageRecord& image) {
  std::vector<std::string> sources =
      image.other_source_digests.value_or(std::vector<std::string>{});
  if (image.source_digest) sources.push_back(*image.source_digest);
  return sources;
}

Image host_image() {
  Image image;
  image.digest = host_name;
  image.kind = ImageKind::host;
  image.architecture = machine_architecture();
  image.names = {std::string{host_name}};
  return image;
}

Result<ImageName> parse_image_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view tag =
      colon == std::string_view::npos ? std::string_view{"latest"} : text.substr(colon + 1);
  if (is_name(name) && is_tag(tag)) return ImageName{std::string{name}, std::string{tag}};
  return fail(Errc::validation_failed, in_quotes(text) + " is not the name of an image",
              "use lower-case words joined by . - _ or /, with an optional :tag, such as "
              "debian:bookworm");
}

bool is_digest(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  if (!text.starts_with(prefix) || text.size() != prefix.size() + 64) return false;
  return std::ranges::all_of(text.substr(prefix.size()), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

std::string image_digest(std::string_view tree_digest, const ImageConfig& config) {
  return "sha256:" +
         sha256_hex("berth-image-1\n" + std::string{tree_digest} + "\n" + encode_text(config));
}

std::string machine_architecture() {
  struct Spelling {
    std::string_view machine;
    std::string_view image;
  };
  constexpr std::array spellings{Spelling{"x86_64", "amd64"}, Spelling{"aarch64", "arm64"},
                                 Spelling{"armv7l", "arm"}, Spelling{"i686", "386"},
                                 Spelling{"ppc64le", "ppc64le"}};
  utsname names{};
  ::uname(&names);
  const std::string_view machine = static_cast<const char*>(names.machine);
  const auto* found = std::ranges::find(spellings, machine, &Spelling::machine);
  return std::string{found != spellings.end() ? found->image : machine};
}

}  // namespace berth::images
