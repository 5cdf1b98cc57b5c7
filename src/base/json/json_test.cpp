#include "base/json/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include <cstdint>

namespace berth {

struct ShipTag {
  static constexpr auto noun = "ship";
};
using ShipId = Id<ShipTag>;

BOOST_DEFINE_ENUM_CLASS(Sail, square, lateen, operator_)

struct Mast {
  double height_m;
  std::optional<Sail> sail;
};
BOOST_DESCRIBE_STRUCT(Mast, (), (height_m, sail))

// One field of every kind that the mapper supports.
struct Ship {
  ShipId id;  // has no default: the value is built in one step
  std::string name;
  bool afloat;
  std::int8_t draft_m;
  std::uint16_t port_number;
  std::int64_t weight_kg_max;
  double speed;
  Sail sail;
  Time launched_at;
  std::optional<std::string> nick_name;
  std::vector<Mast> masts;
  std::map<std::string, std::vector<int>> holds;
  bj::value any;
  bj::object notes;
  bj::array log;
};
BOOST_DESCRIBE_STRUCT(Ship, (),
                      (id, name, afloat, draft_m, port_number, weight_kg_max, speed, sail,
                       launched_at, nick_name, masts, holds, any, notes, log))

struct Vessel {
  ShipId id;
  std::string name;
};
BOOST_DESCRIBE_STRUCT(Vessel, (), (id, name))
struct Tug : Vessel {
  int pull_kn;
};
BOOST_DESCRIBE_STRUCT(Tug, (Vessel), (pull_kn))

struct Refit {
  Patch<std::string> name;
  Patch<std::vector<int>> decks;
};
BOOST_DESCRIBE_STRUCT(Refit, (), (name, decks))

struct Crate {
  std::optional<int> weight;
};
BOOST_DESCRIBE_STRUCT(Crate, (), (weight))

struct Login {
  Secret password;
};
BOOST_DESCRIBE_STRUCT(Login, (), (password))

struct Numbers {
  std::optional<std::int8_t> i8;
  std::optional<std::uint8_t> u8;
  std::optional<std::int32_t> i32;
  std::optional<std::uint32_t> u32;
  std::optional<std::int64_t> i64;
  std::optional<std::uint64_t> u64;
  std::optional<double> real;
};
BOOST_DESCRIBE_STRUCT(Numbers, (), (i8, u8, i32, u32, i64, u64, real))

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto some_id = "0190b5d2-7c3e-7abc-8def-0123456789ab";

constexpr std::string_view whole_ship = R"({
  "id": "0190b5d2-7c3e-7abc-8def-0123456789ab", "name": "Gr\u00f6nland", "afloat": true,
  "draftM": -3, "portNumber": 65535, "weightKgMax": 9007199254740993, "speed": 12.5,
  "sail": "operator", "launchedAt": "1867-05-24T00:00:00.000Z", "nickName": null,
  "masts": [{"heightM": 20.5, "sail": "square"}, {"heightM": 18.5, "sail": null}],
  "holds": {"fore": [1, 2], "aft": []}, "any": [null, {"x": 1}], "notes": {"k": "v"}, "log": [1]
})";

template <class T>
std::vector<Issue> issues_of(std::string_view text, UnknownKeys unknown = UnknownKeys::refuse) {
  const Result<T> value = decode_text<T>(text, unknown);
  if (value) return {};
  EXPECT_EQ(value.error().code, Errc::validation_failed) << value.error().message;
  return value.error().issues;
}

TEST(JsonDecode, RefusesAKeyThatIsGivenTwiceWithItsPointer) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {R"({"a":1,"a":1})", "/a"},
      {R"({"a":1,"b":[0,{"c":{"d":1,"e":":","d":2}}]})", "/b/1/c/d"},
      {R"({"a":1,"\u0061":2})", "/a"},
      {R"([{"x":{}},{"y":"\"{,:","x/~":1,"x/~":2}])", "/1/x~1~0"},
      {R"({"":1,"":2})", "/"},
      {R"({"a":1,"a":{"b":1,"b":1}})", "/a"},
  };
  for (const auto& [text, pointer] : cases) {
    const Result<bj::value> value = parse_json(text, RepeatedKeys::refuse);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Errc::validation_failed);
    ASSERT_EQ(value.error().issues.size(), 1U);
    EXPECT_EQ(value.error().issues.front().path, pointer) << text;
    EXPECT_TRUE(parse_json(text)) << "documents of other programs may have it";
  }
  for (const std::string_view text :
       {R"({"a":1,"A":2})", R"([{"a":1},{"a":2}])", R"({"a":{"a":{"a":"a\"a:a"}}})",
        R"({"a\u0000b":1,"a\u0000c":2})", "1", R"("a:b")", R"({"a":["x","x"]})"}) {
    EXPECT_TRUE(parse_json(text, RepeatedKeys::refuse)) << text;
  }
  EXPECT_EQ(issues_of<Crate>(R"({"weight":1,"weight":2})").front().path, "/weight");
  EXPECT_THAT(issues_of<Crate>(R"({"weight":1,"weight":2})", UnknownKeys::ignore), IsEmpty());
}

TEST(JsonDecode, FillsEveryKindOfField) {
  const Result<Ship> ship = decode_text<Ship>(whole_ship);
  ASSERT_TRUE(ship) << ship.error().message;
  EXPECT_EQ(ship->id.str(), some_id);
  EXPECT_EQ(ship->name, "Gr\u00f6nland");
  EXPECT_TRUE(ship->afloat);
  EXPECT_EQ(ship->draft_m, -3);
  EXPECT_EQ(ship->port_number, 65535);
  EXPECT_EQ(ship->weight_kg_max, 9007199254740993);
  EXPECT_EQ(ship->speed, 12.5);
  EXPECT_EQ(ship->sail, Sail::operator_);
  EXPECT_EQ(ship->launched_at, Time{-3'238'012'800'000});
  EXPECT_EQ(ship->nick_name, std::nullopt);
  ASSERT_EQ(ship->masts.size(), 2U);
  EXPECT_EQ(ship->masts[0].height_m, 20.5);
  EXPECT_EQ(ship->masts[0].sail, Sail::square);
  EXPECT_EQ(ship->masts[1].sail, std::nullopt);
  EXPECT_THAT(ship->holds.at("fore"), ElementsAre(1, 2));
  EXPECT_THAT(ship->holds.at("aft"), IsEmpty());
  EXPECT_EQ(ship->any, (bj::array{nullptr, bj::object{{"x", 1}}}));
  EXPECT_EQ(ship->notes, (bj::object{{"k", "v"}}));
  EXPECT_EQ(ship->log, (bj::array{1}));
}

TEST(JsonEncode, WritesBackExactlyWhatWasRead) {
  const Result<Ship> ship = decode_text<Ship>(whole_ship);
  ASSERT_TRUE(ship);
  EXPECT_EQ(encode(*ship), *parse_json(whole_ship));
  EXPECT_EQ(*parse_json(encode_text(*ship)), *parse_json(whole_ship));
}

TEST(JsonEncode, WritesMembersInTheirOrderAndAbsentOptionalsAsNull) {
  EXPECT_EQ(encode_text(Mast{.height_m = 2.5, .sail = {}}), R"({"heightM":2.5E0,"sail":null})");
}

TEST(JsonNames, AreCamelCase) {
  using json_detail::camel_case;
  EXPECT_EQ(camel_case<32>("timeout_ms").view(), "timeoutMs");
  EXPECT_EQ(camel_case<32>("id").view(), "id");
  EXPECT_EQ(camel_case<32>("a_b_c").view(), "aBC");
  EXPECT_EQ(camel_case<32>("sha_256_hex").view(), "sha256Hex");
  EXPECT_EQ(camel_case<32>("default_").view(), "default");
}

TEST(JsonDecode, TakesAnAbsentKeyAndANullForAnEmptyOptional) {
  EXPECT_EQ(decode_text<Crate>("{}")->weight, std::nullopt);
  EXPECT_EQ(decode_text<Crate>(R"({"weight": null})")->weight, std::nullopt);
  EXPECT_EQ(decode_text<Crate>(R"({"weight": 0})")->weight, 0);
}

TEST(JsonPatch, TellsAbsentFromNullFromGiven) {
  const Result<Refit> refit = decode_text<Refit>(R"({"decks": null})");
  ASSERT_TRUE(refit);
  EXPECT_FALSE(refit->name.given);
  EXPECT_TRUE(refit->decks.given);
  EXPECT_FALSE(refit->decks.value);
  const Result<Refit> full = decode_text<Refit>(R"({"name": "Fram", "decks": [1]})");
  ASSERT_TRUE(full);
  EXPECT_TRUE(full->name.given);
  EXPECT_EQ(full->name.value, "Fram");
  EXPECT_THAT(*full->decks.value, ElementsAre(1));
  EXPECT_THAT(issues_of<Refit>(R"({"decks": ["x"]})"),
              ElementsAre(Issue{"/decks/0", "is not an integer"}));
}

TEST(JsonPatch, KeepsReplacesOrClears) {
  using Text = std::optional<std::string>;
  const Patch<std::string> absent{};
  const Patch<std::string> null{.given = true, .value = {}};
  const Patch<std::string> given{.given = true, .value = "new"};
  EXPECT_EQ(absent.or_keep("old"), "old");
  EXPECT_EQ(null.or_keep("old"), Text{});
  EXPECT_EQ(given.or_keep("old"), "new");
  EXPECT_EQ(absent.or_else("old"), "old");
  EXPECT_EQ(given.or_else("old"), "new");
}

TEST(JsonDecode, ReadsInheritedMembersToo) {
  const auto tug =
      decode_text<Tug>(R"({"id":")" + std::string{some_id} + R"(","name":"Bugsier","pullKn":80})");
  ASSERT_TRUE(tug) << tug.error().message;
  EXPECT_EQ(tug->id.str(), some_id);
  EXPECT_EQ(tug->name, "Bugsier");
  EXPECT_EQ(tug->pull_kn, 80);
  EXPECT_EQ(decode<Tug>(encode(*tug))->name, "Bugsier");
  EXPECT_THAT(issues_of<Tug>("{}"),
              ElementsAre(Issue{"/id", "is required"}, Issue{"/name", "is required"},
                          Issue{"/pullKn", "is required"}));
}

TEST(JsonDecode, ReadsSecretsWithoutMakingThemText) {
  const Result<Login> login = decode_text<Login>(R"({"password": "hunter2"})");
  ASSERT_TRUE(login);
  EXPECT_EQ(login->password.reveal(), "hunter2");
}

TEST(JsonDecode, ListsEveryWrongFieldByItsPointer) {
  const auto issues = issues_of<Ship>(R"({
    "id": "none", "name": 1, "afloat": "yes", "draftM": 128, "portNumber": -1,
    "speed": "fast", "sail": "jib", "launchedAt": "then", "nickName": 5,
    "masts": [{"heightM": 1}, {"heightM": "x", "sail": "y"}, 3],
    "holds": {"fore": [1, "2"], "a/b~c": {}}, "any": 1, "notes": [], "log": {}, "extra": 1
  })");
  EXPECT_THAT(
      issues,
      ElementsAre(
          Issue{"/extra", "is not a known field"}, Issue{"/id", "'none' is not a valid ship id"},
          Issue{"/name", "is not a string"}, Issue{"/afloat", "is not a boolean"},
          Issue{"/draftM", "is not an integer from -128 to 127"},
          Issue{"/portNumber", "is not an integer from 0 to 65535"},
          Issue{"/weightKgMax", "is required"}, Issue{"/speed", "is not a number"},
          Issue{"/sail", "is 'jib', expected one of square, lateen, operator"},
          Issue{"/launchedAt", "'then' is not a time"}, Issue{"/nickName", "is not a string"},
          Issue{"/masts/1/heightM", "is not a number"},
          Issue{"/masts/1/sail", "is 'y', expected one of square, lateen, operator"},
          Issue{"/masts/2", "is not an object"}, Issue{"/holds/fore/1", "is not an integer"},
          Issue{"/holds/a~1b~0c", "is not an array"}, Issue{"/notes", "is not an object"},
          Issue{"/log", "is not an array"}));
}

TEST(JsonDecode, NamesTheFirstWrongFieldAndCountsTheOthers) {
  EXPECT_EQ(decode_text<Vessel>(R"({"id": 1})").error().message,
            "/id is not a string (and 1 more)");
  EXPECT_EQ(decode_text<Crate>("[]").error().message, "the body is not an object");
  EXPECT_EQ(decode_text<Crate>("null").error().message, "the body is not an object");
}

TEST(JsonDecode, StopsCountingIssuesAtItsLimit) {
  std::string text = "{";
  for (int i = 0; i < 500; ++i) text += "\"k" + std::to_string(i) + "\": 1,";
  text.back() = '}';
  EXPECT_EQ(issues_of<Crate>(text).size(), 64U);
}

TEST(JsonDecode, IgnoresUnknownKeysOnlyWhereItIsTold) {
  EXPECT_THAT(issues_of<Crate>(R"({"Weight": 1})"),
              ElementsAre(Issue{"/Weight", "is not a known field"}));
  EXPECT_TRUE(decode_text<Crate>(R"({"Weight": 1})", UnknownKeys::ignore));
  const auto nested =
      decode_text<std::vector<Crate>>(R"([{"weight": 2, "x": 1}])", UnknownKeys::ignore);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->front().weight, 2);
}

TEST(JsonPointer, EscapesTildeAndSlashAndKeepsEmptyKeys) {
  EXPECT_THAT(
      issues_of<Crate>(R"({"a/b": 1, "m~n": 1, "~1": 1, "": 1, " ": 1})"),
      ElementsAre(Issue{"/a~1b", "is not a known field"}, Issue{"/m~0n", "is not a known field"},
                  Issue{"/~01", "is not a known field"}, Issue{"/", "is not a known field"},
                  Issue{"/ ", "is not a known field"}));
}

TEST(JsonPointer, ClipsLongKeysBetweenCharacters) {
  const std::string key = std::string(127, 'k') + "\u20ac";
  EXPECT_THAT(issues_of<Crate>("{\"" + key + "\": 1}"),
              ElementsAre(Issue{"/" + std::string(127, 'k'), "is not a known field"}));
}

TEST(JsonIssues, StandBelowThePrefixOfTheirDocument) {
  JsonIssues issues{UnknownKeys::refuse, "/adapterConfig/env"};
  const JsonAt root;
  issues.add(JsonAt{root, "PATH"}, "is not a string");
  EXPECT_THAT(issues.list(), ElementsAre(Issue{"/adapterConfig/env/PATH", "is not a string"}));
}

TEST(JsonIssues, ASentenceStandsAsItIs) {
  JsonIssues issues;
  const JsonAt root;
  issues.add(JsonAt{root, "host"}, "SSH environments require a host.");
  issues.add(JsonAt{root, "port"}, "is not an integer");
  const Error error = std::move(issues).to_error(Errc::unprocessable);
  EXPECT_EQ(error.code, Errc::unprocessable);
  EXPECT_EQ(error.message, "SSH environments require a host.");
  EXPECT_EQ(error.issues.size(), 2U);
}

TEST(JsonIntegers, AreAcceptedUpToTheirLimitsAndNotBeyond) {
  struct Case {
    std::string_view field, inside_low, inside_high, below, above;
  };
  const Case cases[] = {
      {"i8", "-128", "127", "-129", "128"},
      {"u8", "0", "255", "-1", "256"},
      {"i32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
      {"u32", "0", "4294967295", "-1", "4294967296"},
      {"i64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
       "9223372036854775808"},
      {"u64", "0", "9223372036854775807", "-1", "18446744073709551615"},
  };
  const auto with = [](std::string_view field, std::string_view number) {
    return "{\"" + std::string{field} + "\": " + std::string{number} + "}";
  };
  for (const Case& c : cases) {
    for (const auto number : {c.inside_low, c.inside_high}) {
      const Result<Numbers> read = decode_text<Numbers>(with(c.field, number));
      ASSERT_TRUE(read) << c.field << " " << number;
      EXPECT_EQ(encode(*read).at(c.field), *parse_json(number)) << c.field << " " << number;
    }
    for (const auto number : {c.below, c.above}) {
      const auto issues = issues_of<Numbers>(with(c.field, number));
      ASSERT_EQ(issues.size(), 1U) << c.field << " " << number;
      EXPECT_EQ(issues[0].path, "/" + std::string{c.field});
      EXPECT_THAT(issues[0].message, HasSubstr("is not an integer from "));
    }
  }
}

TEST(JsonIntegers, MayBeWrittenWithExponentOrFractionThatIsZero) {
  const auto i32 = [](const std::string& number) {
    return decode_text<Numbers>(R"({"i32": )" + number + "}");
  };
  EXPECT_EQ(i32("1e3")->i32, 1000);
  EXPECT_EQ(i32("1000.0")->i32, 1000);
  EXPECT_EQ(i32("-0.0")->i32, 0);
  EXPECT_EQ(i32("15e-1").error().message, "/i32 is not an integer from -2147483648 to 2147483647");
  EXPECT_FALSE(i32("1e10"));
  EXPECT_FALSE(i32("1e300"));
  EXPECT_FALSE(i32("\"7\""));
  EXPECT_FALSE(i32("true"));
}

TEST(JsonNumbers, ThatADoubleCannotHoldAreRefused) {
  EXPECT_EQ(decode_text<Numbers>(R"({"real": 1e300})")->real, 1e300);
  EXPECT_FALSE(decode_text<Numbers>(R"({"real": 1e999})"));
  EXPECT_FALSE(decode_text<Numbers>(R"({"real": -1e999})"));
}

TEST(JsonParse, RefusesWhatIsNoJson) {
  for (const std::string_view text :
       {"",         " ",       "{",      "[1,]",      "{\"a\":1,}",  "{'a':1}",
        "nul",      "01",      "+1",     ".5",        "1.",          "NaN",
        "Infinity", "// c\n1", "\"\n\"", "\"\\x41\"", "\"\\ud800\"", "{} {}",
        "1 2",      "[] x",    "\x01",   "{\"a\" 1}", "[1 2]"}) {
    const Result<bj::value> value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Errc::bad_request);
    EXPECT_THAT(value.error().message, HasSubstr("the body is not JSON: "));
  }
}

TEST(JsonParse, AcceptsBlanksAroundTheValueOnly) {
  EXPECT_EQ(parse_json(" \t\r\n1 \t\r\n"), bj::value(1));
  EXPECT_FALSE(parse_json("1\v"));
}

TEST(JsonParse, RefusesTextThatIsNotUtf8) {
  for (const std::string_view text :
       {"\"\xff\"", "\"\xc0\xaf\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "{\"\x80\": 1}"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(JsonParse, KeepsNulCharactersInStrings) {
  using namespace std::string_literals;
  EXPECT_EQ(decode_text<std::string>(R"("a\u0000b")"), "a\0b"s);
}

TEST(JsonParse, StopsAtADepthThatNoConfigNeeds) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(40)));
  EXPECT_FALSE(parse_json(nested(64)));
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_json([] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += R"({"a":)";
    return text;
  }()));
}

std::string many_keys(std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    text +=
        (i > 0 ? ",\"a key of some length " : "\"a key of some length ") + number + "\":" + number;
  }
  return text + "}";
}

TEST(JsonParse, MakesTablesOfASizeThatTheSenderDoesNotChoose) {
  const Result<bj::value> value = parse_json(many_keys(512));
  ASSERT_TRUE(value);
  const bj::object& object = value->get_object();
  EXPECT_EQ(object.size(), 512U);
  EXPECT_EQ(object.capacity() % 2, 1U) << "the slot of a key must depend on all of its hash";
  for (std::int64_t i = 0; i < 512; ++i) {
    EXPECT_EQ(object.at("a key of some length " + std::to_string(i)), bj::value(i));
  }
}

TEST(JsonParse, ReadsLongTextsAsItReadsShortOnes) {
  const std::string pad(9000, ' ');
  for (const std::string_view text :
       {R"({"b":[1,-2,18446744073709551615,1.5,true,false,null,"x\ty"],"a":{"c":{},"d":[]}})",
        R"({"a":1,"a":2,"b":3})", R"("\u20ac and \ud83d\ude00")", "17", "[[],{},[{}]]", "{", "[1,]",
        "{} {}", "nul", "\"\xff\""}) {
    const Result<bj::value> is_short = parse_json(text);
    const Result<bj::value> is_long = parse_json(std::string{text} + pad);
    ASSERT_EQ(is_short.has_value(), is_long.has_value()) << text;
    if (is_short) EXPECT_EQ(encode_text(*is_short), encode_text(*is_long));
  }
  const std::string longer(20'000, 'x');
  EXPECT_EQ(parse_json("{\"" + longer + "\":\"\\n" + longer + "\"}")->at(longer),
            bj::value("\n" + longer));
}

TEST(JsonParse, RefusesRequestsWithMoreKeysInOneObjectThanAnyNeeds) {
  EXPECT_TRUE(parse_json(many_keys(4096), RepeatedKeys::refuse));
  const Result<bj::value> refused = parse_json(many_keys(4097), RepeatedKeys::refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::bad_request);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 4096 keys"));
  EXPECT_TRUE(parse_json(many_keys(4097))) << "documents of other programs may have them";
}

TEST(JsonParse, SaysWhereItStopped) {
  EXPECT_THAT(parse_json("[1, 2, x]").error().message, HasSubstr("near byte 7"));
  EXPECT_THAT(parse_json("{} x").error().message, HasSubstr("extra data near byte 3"));
}

TEST(JsonDecode, KeepsTheOrderOfKeysInFreeObjects) {
  const std::string text = R"({"z":1,"a":{"y":2,"b":3}})";
  EXPECT_EQ(encode_text(*decode_text<bj::object>(text)), text);
}

TEST(JsonEncode, WritesUtf8WhateverBytesAStringHas) {
  EXPECT_EQ(encode_text(std::string{"bad\xff\xfe, cut \xe2\x82"}), R"("bad??, cut ??")");
  EXPECT_EQ(encode_text(bj::object{{"\xff", "\u20ac"}}), "{\"?\":\"\u20ac\"}");
}

TEST(JsonEncode, WritesTheTextOfTheTree) {
  std::string odd;
  for (int c = 0; c < 0x80; ++c) odd += static_cast<char>(c);
  const bj::value any = {{"a" + odd, {1, -2, 1.5, true, nullptr, odd}},
                         {"big", 18446744073709551615ULL},
                         {"empty", bj::object{}},
                         {"none", bj::array{}}};
  EXPECT_EQ(encode_text(any), bj::serialize(any));
  const Mast mast{.height_m = 12.25, .sail = std::nullopt};
  EXPECT_EQ(encode_text(mast), bj::serialize(encode(mast)));
  const std::map<std::string, std::vector<std::uint8_t>> map{{odd, {0, 255}}, {"", {}}};
  EXPECT_EQ(encode_text(map), bj::serialize(encode(map)));
}

TEST(JsonEncode, EscapesAByteWhereverItStands) {
  for (int byte = 0; byte < 0x80; ++byte) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text(20, '~');
      text[at] = static_cast<char>(byte);
      const std::string written = encode_text(bj::value(bj::string(text)));
      EXPECT_EQ(written, bj::serialize(bj::value(bj::string(text)))) << byte << " at " << at;
    }
  }
}

TEST(JsonEncode, EscapesWhatWouldEndAString) {
  EXPECT_EQ(encode_text(std::string{"a\"b\\c\nd\x01"}), R"("a\"b\\c\nd\u0001")");
}

}  // namespace
}  // namespace berth
