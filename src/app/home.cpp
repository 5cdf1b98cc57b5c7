#include "app/home.hpp"

#include "base/files.hpp"
#include "base/json.hpp"

#include <unistd.h>

namespace berth::app {
namespace {

struct Whereabouts {
  std::string url;
  std::int64_t pid = 0;
};
BOOST_DESCRIBE_STRUCT(Whereabouts, (), (url, pid))

constexpr std::size_t file_bytes_max = 4096;

}  // namespace

Result<Home> Home::open(std::string path) {
  Result<> made = make_directories(path, 0700);
  if (!made) {
    made.error().remedy = "name a folder that this user may write: --home DIR or BERTH_HOME";
    return std::unexpected(std::move(made).error());
  }
  return Home{std::move(path)};
}

Result<> Home::announce(const std::string& url) const {
  return replace_file(server_file(), encode_text(Whereabouts{url, ::getpid()}) + "\n", 0600);
}

void Home::withdraw() const {
  const auto text = read_file(server_file(), file_bytes_max);
  if (!text) return;
  const auto found = decode_text<Whereabouts>(*text, UnknownKeys::ignore);
  if (found && found->pid == ::getpid()) ::unlink(server_file().c_str());
}

Result<> Home::write_admin_key(const std::string& key) const {
  return replace_file(admin_key_file(), key + "\n", 0600);
}

void Home::remove_admin_key() const {
  ::unlink(admin_key_file().c_str());
}

}  // namespace berth::app
