#include "snapshots/bundle_header.hpp"

#include "base/text.hpp"

namespace berth::snapshots {
namespace {

std::unexpected<Error> bad_header(std::string_view what) {
  return fail(Errc::bundle_invalid, "bundle: " + std::string{what},
              "make it with git bundle create");
}

}  // namespace

Result<BundleHeader> BundleHeader::parse(std::string_view text) {
  constexpr std::string_view second = "# v2 git bundle\n";
  constexpr std::string_view third = "# v3 git bundle\n";
  if (!text.starts_with(second) && !text.starts_with(third)) {
    return bad_header("does not begin as a bundle of version 2 or 3");
  }
  BundleHeader header;
  std::string_view rest = text.substr(second.size());
  while (true) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return bad_header("its header does not end");
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line.empty()) break;
    if (line.front() == '@') {
      if (text.starts_with(third) && line == "@object-format=sha1") continue;
      return bad_header("needs the capability " + in_quotes(line));
    }
    const bool needed = line.front() == '-';
    if (needed) line.remove_prefix(1);
    const auto id = ObjectId::from_hex(line.substr(0, 40));
    if (!id) return bad_header("has a line that does not begin with an object id");
    if (needed) {
      header.needs.push_back(*id);
    } else if (line.size() > 41 && line[40] == ' ') {
      header.refs.emplace_back(line.substr(41), *id);
    } else {
      return bad_header("has a ref without a name");
    }
  }
  header.bytes = text.size() - rest.size();
  return header;
}

}  // namespace berth::snapshots
