#include "base/json/json_schema.hpp"

#include <gtest/gtest.h>

namespace berth {

struct DockTag {
  static constexpr auto noun = "dock";
};
BOOST_DEFINE_ENUM_CLASS(Cargo, coal, grain, operator_)

struct Box {
  std::string label;
  std::optional<Cargo> cargo;
};
BOOST_DESCRIBE_STRUCT(Box, (), (label, cargo))

struct Dock {
  Id<DockTag> id;
  bool is_open;
  int berth_count;
  double depth_m;
  Secret gate_code;
  Time built_at;
  Cargo main_cargo;
  Box sample;
  std::vector<Box> boxes;
  std::map<std::string, int> stock;
  std::optional<Box> spare;
  bj::value any;
  bj::object notes;
  bj::array log;
};
BOOST_DESCRIBE_STRUCT(Dock, (),
                      (id, is_open, berth_count, depth_m, gate_code, built_at, main_cargo, sample,
                       boxes, stock, spare, any, notes, log))

struct PatchDock {
  Patch<std::string> name;
};
BOOST_DESCRIBE_STRUCT(PatchDock, (), (name))

struct Tree {
  std::string name;
  std::vector<Tree> branches;
};
BOOST_DESCRIBE_STRUCT(Tree, (), (name, branches))

struct Pier {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(Pier, (), (name))
struct LongPier : Pier {
  int length_m;
};
BOOST_DESCRIBE_STRUCT(LongPier, (Pier), (length_m))

namespace other {
struct Pier {
  int number;
};
BOOST_DESCRIBE_STRUCT(Pier, (), (number))
}  // namespace other

namespace {

bj::value json(std::string_view text) {
  return *parse_json(text);
}

TEST(JsonSchema, RefersToStructsByNameAndWritesEachOnce) {
  SchemaBook book{"#/components/schemas/"};
  EXPECT_EQ(bj::value(book.schema<Dock>()), json(R"({"$ref": "#/components/schemas/Dock"})"));
  EXPECT_EQ(bj::value(book.schema<Dock>()), json(R"({"$ref": "#/components/schemas/Dock"})"));
  EXPECT_EQ(book.components().size(), 2U);
  EXPECT_EQ(book.components().at("Box"), json(R"({
    "type": "object",
    "properties": {
      "label": {"type": "string"},
      "cargo": {"anyOf": [{"type": "string", "enum": ["coal", "grain", "operator"]},
                          {"type": "null"}]}
    },
    "required": ["label"]
  })"));
}

TEST(JsonSchema, DescribesEveryKindOfField) {
  SchemaBook book{"#/$defs/"};
  book.schema<Dock>();
  EXPECT_EQ(book.components().at("Dock").at("properties"), json(R"({
    "id": {"type": "string", "format": "uuid"},
    "isOpen": {"type": "boolean"},
    "berthCount": {"type": "integer"},
    "depthM": {"type": "number"},
    "gateCode": {"type": "string", "format": "password", "writeOnly": true},
    "builtAt": {"type": "string", "format": "date-time"},
    "mainCargo": {"type": "string", "enum": ["coal", "grain", "operator"]},
    "sample": {"$ref": "#/$defs/Box"},
    "boxes": {"type": "array", "items": {"$ref": "#/$defs/Box"}},
    "stock": {"type": "object", "additionalProperties": {"type": "integer"}},
    "spare": {"anyOf": [{"$ref": "#/$defs/Box"}, {"type": "null"}]},
    "any": {},
    "notes": {"type": "object", "additionalProperties": true},
    "log": {"type": "array", "items": {}}
  })"));
}

TEST(JsonSchema, RequiresWhatTheDecoderRequires) {
  SchemaBook book{""};
  book.schema<Dock>();
  EXPECT_EQ(book.components().at("Dock").at("required"), json(R"(["id", "isOpen", "berthCount",
    "depthM", "gateCode", "builtAt", "mainCargo", "sample", "boxes", "stock", "any", "notes",
    "log"])"));
}

TEST(JsonSchema, APatchRequiresNothingAndAllowsNull) {
  SchemaBook book{""};
  book.schema<PatchDock>();
  EXPECT_EQ(book.components().at("PatchDock"), json(R"({
    "type": "object",
    "properties": {"name": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
  })"));
}

TEST(JsonSchema, EndsOnATypeThatHoldsItself) {
  SchemaBook book{"#/$defs/"};
  book.schema<Tree>();
  EXPECT_EQ(book.components().at("Tree"), json(R"({
    "type": "object",
    "properties": {"name": {"type": "string"},
                   "branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["name", "branches"]
  })"));
}

TEST(JsonSchema, HasInheritedMembers) {
  SchemaBook book{""};
  book.schema<LongPier>();
  EXPECT_EQ(book.components().at("LongPier").at("required"), json(R"(["name", "lengthM"])"));
}

TEST(JsonSchemaDeathTest, TwoTypesNeverShareOneName) {
  SchemaBook book{""};
  book.schema<Pier>();
  EXPECT_DEATH(book.schema<other::Pier>(), "does not hold");
}

}  // namespace
}  // namespace berth
