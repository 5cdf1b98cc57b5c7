#include "images/oci.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace berth::images {
namespace {

constexpr auto reference_key = "org.opencontainers.image.ref.name";
constexpr std::size_t layers_max = 512;
constexpr std::size_t variables_max = 4096;
constexpr std::size_t text_bytes_max = 128 << 10;  // the kernel's limit for one argument

struct OciIndex {
  std::vector<Descriptor> manifests;
};
BOOST_DESCRIBE_STRUCT(OciIndex, (), (manifests))

// The fields below are spelled as in the documents, after `respelled` has lowered the first letter
// and joined the words as elsewhere.
struct RawProcess {
  std::optional<std::vector<std::string>> env;
  std::optional<std::string> user;
  std::optional<std::string> working_dir;
  std::optional<std::vector<std::string>> entrypoint;
  std::optional<std::vector<std::string>> cmd;
  std::optional<std::map<std::string, std::string>> labels;
};
BOOST_DESCRIBE_STRUCT(RawProcess, (), (env, user, working_dir, entrypoint, cmd, labels))

struct RawRoot {
  std::vector<std::string> diff_ids;
};
BOOST_DESCRIBE_STRUCT(RawRoot, (), (diff_ids))

struct RawConfig {
  std::string architecture;
  std::string os;
  std::optional<RawProcess> config;
  RawRoot rootfs;
};
BOOST_DESCRIBE_STRUCT(RawConfig, (), (architecture, os, config, rootfs))

struct RawDocker {
  std::string config;
  std::vector<std::string> layers;
  std::optional<std::vector<std::string>> repo_tags;
};
BOOST_DESCRIBE_STRUCT(RawDocker, (), (config, layers, repo_tags))

std::string respelled(std::string_view key) {
  std::string out;
  bool raise = false;
  for (const char c : key) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z';
    if (c == '_') {
      raise = true;
      continue;
    }
    if (out.empty() && upper) {
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += raise && lower ? static_cast<char>(c - 'a' + 'A') : c;
    }
    raise = false;
  }
  return out;
}

// The object with keys as the mapper spells them; its values are not changed.
void respell(bj::value& value) {
  if (!value.is_object()) return;
  bj::object out;
  for (auto& [key, item] : value.get_object()) out[respelled(key)] = item;
  value = std::move(out);
}

void respell_inside(bj::value& value, std::string_view key) {
  if (!value.is_object()) return;
  if (bj::value* inner = value.get_object().if_contains(key)) respell(*inner);
}

std::unexpected<Error> invalid(std::string_view document, Error error) {
  error.code = Errc::image_invalid;
  error.message = std::string{document} + ": " + error.message;
  return std::unexpected(std::move(error));
}

template <class T>
Result<T> read_document(std::string_view document, const bj::value& value) {
  Result<T> decoded = decode<T>(value, UnknownKeys::ignore);
  if (!decoded) return invalid(document, std::move(decoded).error());
  return decoded;
}

Result<bj::value> parse_document(std::string_view document, std::string_view text) {
  Result<bj::value> value = parse_json(text);
  if (!value) return invalid(document, std::move(value).error());
  return value;
}

Result<> check_descriptor(std::string_view document, const Descriptor& descriptor) {
  if (is_digest(descriptor.digest)) return {};
  return fail(Errc::image_invalid, std::string{document} + ": " + in_quotes(descriptor.digest) +
                                       " is not a digest of the form sha256:HEX");
}

bool is_layer(const Descriptor& layer) {
  if (!layer.media_type) return true;
  const std::string_view type = *layer.media_type;
  const bool known = type.starts_with("application/vnd.oci.image.layer.") ||
                     type.starts_with("application/vnd.docker.image.rootfs.");
  return known && !type.ends_with("+encrypted");
}

// A descriptor without a platform may fit; its config will show.
bool fits(const Descriptor& descriptor, const Wanted& wanted) {
  if (!descriptor.platform) return true;
  const Platform& platform = *descriptor.platform;
  return platform.os.value_or("linux") == "linux" &&
         platform.architecture.value_or(wanted.architecture) == wanted.architecture;
}

std::string reference_of(const Descriptor& descriptor) {
  if (!descriptor.annotations) return {};
  const auto found = descriptor.annotations->find(reference_key);
  return found != descriptor.annotations->end() ? found->second : std::string{};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!name.empty()) text += (text.empty() ? "" : ", ") + in_quotes(name);
  }
  return text.empty() ? "they have no names" : text;
}

// The requested one, or the only one.
template <class T, class NamesOf>
Result<T> only_one(std::string_view document, const std::vector<T>& offered,
                   const std::optional<std::string>& reference, NamesOf names_of) {
  std::vector<std::string> names;
  std::vector<const T*> left;
  for (const T& item : offered) {
    const std::vector<std::string> own = names_of(item);
    names.insert(names.end(), own.begin(), own.end());
    if (!reference || std::ranges::find(own, *reference) != own.end()) left.push_back(&item);
  }
  if (left.size() == 1) return *left.front();
  const std::string what = reference ? " named " + in_quotes(*reference) : std::string{};
  if (left.empty()) {
    return fail(Errc::image_invalid, std::string{document} + ": holds no image" + what,
                "there are: " + listed(names));
  }
  return fail(Errc::image_invalid, std::string{document} + ": holds several images" + what,
              "choose one with --ref: " + listed(names));
}

Result<std::map<std::string, std::string>> variables_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos || pair.size() > text_bytes_max ||
        pair.contains('\0') || out.size() >= variables_max) {
      return fail(Errc::image_invalid,
                  "config: " + in_quotes(pair) + " is not a variable of the form NAME=value");
    }
    out.insert_or_assign(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

Result<> check_words(const std::vector<std::string>& words, std::string_view what) {
  const auto fits_kernel = [](const std::string& word) {
    return word.size() <= text_bytes_max && !word.contains('\0');
  };
  if (words.size() <= variables_max && std::ranges::all_of(words, fits_kernel)) return {};
  return fail(Errc::image_invalid, "config: " + std::string{what} + " is not a command line");
}

Result<ImageConfig> process_of(const RawProcess& raw) {
  ImageConfig out;
  BERTH_TRY(out.env, variables_of(raw.env.value_or(std::vector<std::string>{})));
  out.user = raw.user.value_or("");
  out.workdir = raw.working_dir.value_or("");
  out.entrypoint = raw.entrypoint.value_or(std::vector<std::string>{});
  out.cmd = raw.cmd.value_or(std::vector<std::string>{});
  out.labels = raw.labels.value_or(std::map<std::string, std::string>{});
  BERTH_DO(check_words(out.entrypoint, "Entrypoint"));
  BERTH_DO(check_words(out.cmd, "Cmd"));
  BERTH_DO(check_words({out.user, out.workdir}, "User or WorkingDir"));
  return out;
}

}  // namespace

bool is_index(const Descriptor& descriptor) {
  const std::string type = descriptor.media_type.value_or("");
  return type == "application/vnd.oci.image.index.v1+json" ||
         type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

Result<Descriptor> choose_manifest(std::string_view index, const Wanted& wanted) {
  BERTH_TRY(const bj::value value, parse_document("index", index));
  BERTH_TRY(OciIndex offered, read_document<OciIndex>("index", value));
  for (const Descriptor& each : offered.manifests) BERTH_DO(check_descriptor("index", each));
  const bool some = !offered.manifests.empty();
  std::erase_if(offered.manifests, [&](const Descriptor& each) { return !fits(each, wanted); });
  if (some && offered.manifests.empty()) {
    return fail(Errc::image_invalid,
                "index: holds no image for linux and " + in_quotes(wanted.architecture),
                "import an image that was built for this machine");
  }
  return only_one("index", offered.manifests, wanted.reference,
                  [](const Descriptor& each) { return std::vector{reference_of(each)}; });
}

Result<OciManifest> parse_manifest(std::string_view text) {
  BERTH_TRY(const bj::value value, parse_document("manifest", text));
  BERTH_TRY(OciManifest manifest, read_document<OciManifest>("manifest", value));
  BERTH_DO(check_descriptor("manifest", manifest.config));
  if (manifest.layers.size() > layers_max) {
    return fail(Errc::image_invalid,
                "manifest: has more than " + std::to_string(layers_max) + " layers");
  }
  for (const Descriptor& layer : manifest.layers) {
    BERTH_DO(check_descriptor("manifest", layer));
    if (!is_layer(layer)) {
      return fail(Errc::image_invalid, "manifest: layer " + layer.digest + " is of the type " +
                                           in_quotes(layer.media_type.value_or("")) +
                                           ", which is not a layer of files");
    }
  }
  return manifest;
}

Result<OciConfig> parse_config(std::string_view text, std::string_view architecture) {
  BERTH_TRY(bj::value value, parse_document("config", text));
  respell_inside(value, "config");
  respell_inside(value, "rootfs");
  BERTH_TRY(const RawConfig raw, read_document<RawConfig>("config", value));
  if (raw.os != "linux" || raw.architecture != architecture) {
    return fail(Errc::image_invalid,
                "config: is for " + in_quotes(raw.os) + " and " + in_quotes(raw.architecture) +
                    ", and this machine is linux and " + in_quotes(architecture),
                "import an image that was built for this machine");
  }
  OciConfig out{.architecture = raw.architecture, .config = {}, .diff_ids = raw.rootfs.diff_ids};
  if (raw.config) {
    BERTH_TRY(out.config, process_of(*raw.config));
  }
  return out;
}

Result<DockerManifest> choose_docker_manifest(std::string_view text, const Wanted& wanted) {
  BERTH_TRY(bj::value value, parse_document("manifest.json", text));
  if (value.is_array()) {
    for (bj::value& each : value.get_array()) respell(each);
  }
  BERTH_TRY(std::vector<RawDocker> raw,
            read_document<std::vector<RawDocker>>("manifest.json", value));
  std::vector<DockerManifest> offered;
  for (RawDocker& each : raw) {
    if (each.layers.size() > layers_max) {
      return fail(Errc::image_invalid, "manifest.json: has too many layers");
    }
    offered.push_back({std::move(each.config), std::move(each.layers),
                       std::move(each.repo_tags).value_or(std::vector<std::string>{})});
  }
  return only_one("manifest.json", offered, wanted.reference,
                  [](const DockerManifest& each) { return each.tags; });
}

}  // namespace berth::images
