#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::tests {

// A tar, built header by header, so that it can also contain what no honest program would write.
class Tar {
 public:
  struct Header {
    std::string path;
    char type = '0';  // 0 file, 1 hard link, 2 symbolic link, 3 device, 5 folder, 6 pipe
    unsigned mode = 0644;
    unsigned uid = 0;
    unsigned gid = 0;
    std::uint64_t bytes = 0;
    std::string target = {};
    std::int64_t modified = 1'700'000'000;
  };

  Tar& file(std::string path, std::string_view content, unsigned mode = 0644) {
    add({.path = std::move(path), .mode = mode, .bytes = content.size()});
    return body(content);
  }
  Tar& folder(std::string path, unsigned mode = 0755) {
    return add({.path = std::move(path), .type = '5', .mode = mode});
  }
  Tar& symbolic_link(std::string path, std::string target) {
    return add({.path = std::move(path), .type = '2', .mode = 0777, .target = std::move(target)});
  }
  Tar& hard_link(std::string path, std::string target) {
    return add({.path = std::move(path), .type = '1', .target = std::move(target)});
  }
  // Records of the extended format for the next entry: "path", "size", "GNU.sparse.size", ...
  Tar& extended(const std::vector<std::pair<std::string, std::string>>& records) {
    std::string text;
    for (const auto& [key, value] : records) {
      const std::size_t rest = key.size() + value.size() + 3;  // space, '=' and newline
      std::size_t digits = 1;
      while (std::to_string(rest + digits).size() != digits) ++digits;
      text += std::to_string(rest + digits) + " " + key + "=" + value + "\n";
    }
    add({.path = "pax", .type = 'x', .bytes = text.size()});
    return body(text);
  }
  Tar& add(const Header& header) {
    std::array<char, 512> block{};
    const auto put = [&block](std::size_t at, std::size_t size, std::string_view text) {
      std::memcpy(block.data() + at, text.data(), std::min(size, text.size()));
    };
    const auto octal = [&put](std::size_t at, std::size_t size, std::uint64_t value) {
      std::array<char, 32> text{};
      const int written =
          std::snprintf(text.data(), text.size(), "%0*llo", static_cast<int>(size) - 1,
                        static_cast<unsigned long long>(value));
      put(at, size, {text.data(), static_cast<std::size_t>(written)});
    };
    put(0, 100, header.path);
    octal(100, 8, header.mode);
    octal(108, 8, header.uid);
    octal(116, 8, header.gid);
    octal(124, 12, header.bytes);
    octal(136, 12, static_cast<std::uint64_t>(header.modified));
    put(148, 8, "        ");
    block[156] = header.type;
    put(157, 100, header.target);
    put(257, 8, std::string_view{"ustar\00000", 8});
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    octal(148, 7, sum);
    block[155] = ' ';
    bytes_.append(block.data(), block.size());
    return *this;
  }
  Tar& body(std::string_view content) {
    bytes_ += content;
    bytes_.append((512 - content.size() % 512) % 512, '\0');
    return *this;
  }

  // With the two empty blocks at its end.
  std::string bytes() const { return bytes_ + std::string(1024, '\0'); }

 private:
  std::string bytes_;
};

}  // namespace berth::tests
