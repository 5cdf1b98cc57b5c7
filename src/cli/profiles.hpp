#pragma once

#include "base/secret.hpp"
#include "cli/config.hpp"

#include <map>
#include <optional>
#include <string>

namespace berth::cli {

// A server that the user logged in to.
struct Profile {
  std::string name;
  std::string url;
  std::string company;  // empty: the only one, or the one named on the command line
  std::optional<Secret> token;
};

// The servers that `berth login` remembers, in a file that only its owner can read.
class Profiles {
 public:
  // $XDG_CONFIG_HOME/berth/profiles.json, else below ~/.config.
  static std::string file_of(const Variables& variables);
  // A missing file is empty; one that other users can read is rejected.
  static Result<Profiles> read(const std::string& file);

  // The profile with that name, or that of the last login. Nothing: there is none.
  Result<std::optional<Profile>> find(const std::string& name) const;
  // Makes this the default profile.
  void put(const Profile& profile);
  Result<> remove(const std::string& name);
  Result<> write() const;
  const std::string& current() const { return current_; }
  const std::string& file() const { return file_; }
  bj::array rows() const;

 private:
  explicit Profiles(std::string file) : file_(std::move(file)) {}

  std::string file_;
  std::string current_;
  std::map<std::string, bj::object> profiles_;
};

}  // namespace berth::cli
