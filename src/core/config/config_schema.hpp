#pragma once

#include "core/config/config_path.hpp"

// The JSON Schema by which a plugin describes a config: of its provider, or of itself.
namespace berth::core {

// Bounds of a schema, and of a config that is held against one. A schema comes from a plugin and a
// config from a caller: neither may cost more than a moment.
struct SchemaLimits {
  std::size_t depth_max = 32;
  std::size_t nodes_max = 20'000;
  std::size_t pattern_bytes_max = 512;
  std::size_t pattern_subject_bytes_max = 4'096;
};

class ConfigSchema {
 public:
  // Reads a schema and puts what it refers to within itself in its place. Refused, with a pointer
  // below `at`: a reference that leaves the document or leads back to itself, an unknown or
  // malformed keyword value, a pattern that is not one of RE2, more than the limits.
  // The keys `x-paperclip-*` and all others that are no keywords pass.
  static Result<ConfigSchema> read(const bj::object& schema, std::string_view at);

  // Each absent field that has a default gets it, at any depth of what is there.
  bj::object with_defaults(bj::object config) const;

  // Every wrong field by its pointer below `at`, as `unprocessable`. A field that holds a secret
  // may hold its text, an id or a reference, so of such a field only the type is checked.
  Result<> check(const bj::object& config, std::string_view at) const;

  // The places of this config that hold a secret: those with `format: "secret-ref"`, through
  // objects, arrays and every branch of allOf, anyOf and oneOf.
  std::vector<ConfigPath> secrets_in(const bj::object& config) const;

  // Whether the schema itself names this field of the outermost object.
  bool declares(std::string_view field) const;

 private:
  explicit ConfigSchema(bj::object whole) : whole_(std::move(whole)) {}

  bj::object whole_;  // without references
};

namespace schema_detail {

// Whether the validator can read the schema; defined where the validator is.
Result<> parse(const bj::object& schema, std::string_view at);
std::vector<Issue> problems_of(const bj::object& schema, const bj::object& config,
                               std::string_view at);

}  // namespace schema_detail

}  // namespace berth::core
