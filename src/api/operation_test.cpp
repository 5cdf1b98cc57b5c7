#include "api/operation.hpp"

#include "api/use.hpp"
#include "base/async/task_group.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace berth::api {
namespace {

BOOST_DEFINE_ENUM_CLASS(Colour, red, blue)

struct Paint {
  Colour colour = Colour::red;
  std::optional<std::string> note;
};
BOOST_DESCRIBE_STRUCT(Paint, (), (colour, note))

struct Boat {
  core::AgentId id;
  Paint paint;
};
BOOST_DESCRIBE_STRUCT(Boat, (), (id, paint))

struct BoatOptions {
  std::optional<std::int64_t> length;

  Result<> check() const {
    return check_bounds({{"length", length, {.usual = 1, .least = 1, .most = 9}}});
  }
};
BOOST_DESCRIBE_STRUCT(BoatOptions, (), (length))

// Acts on agents, because those have an id.
class Yard {
 public:
  Task<core::Stored<Boat>> paint(core::Call /*call*/, core::AgentId boat, Paint paint) {
    ++calls;
    co_return core::Stored<Boat>{.value = {std::move(boat), std::move(paint)}, .version = 7};
  }
  Task<core::Listing<std::int64_t>> list(core::Call /*call*/, core::PageRequest page) {
    co_return core::Listing<std::int64_t>{.rows = {1, page.limit}, .next = "more"};
  }

  int calls = 0;
};

Task<std::int64_t> measure(Yard& yard, core::Call /*call*/, core::AgentId /*boat*/,
                           BoatOptions options) {
  ++yard.calls;
  co_return options.length.value_or(0);
}

constexpr const char* boat = "0190b2a4-0000-7000-8000-000000000001";

class OperationTest : public testing::Test {
 protected:
  template <class T>
  static Result<T> wait_for(Task<T> task) {
    asio::io_context loop;
    std::optional<Result<T>> outcome;
    TaskGroup group{loop.get_executor()};
    group.start("test", keep(std::move(task), outcome));
    loop.run();
    return *std::move(outcome);
  }

  Result<bj::value> call(const Entry& entry, bj::object input,
                         core::Role role = core::Role::admin) {
    core::Call who{.who = {.kind = core::CallerKind::operator_key, .role = role}};
    return wait_for(entry.call(std::move(who), bj::value(std::move(input))));
  }

  // The paths of the invalid fields.
  static std::vector<std::string> wrong(const Result<bj::value>& answer) {
    std::vector<std::string> paths;
    if (answer) return paths;
    for (const Issue& issue : answer.error().issues) paths.push_back(issue.path);
    return paths;
  }

  Yard yard_;
  const Entry paint_ = Operation{.name = "boat.paint",
                                 .needs = core::Permission::company_operate,
                                 .says = "Paint a boat",
                                 .call = use(yard_, &Yard::paint)};
  const Entry list_ = Operation{.name = "boat.list",
                                .needs = core::Permission::company_read,
                                .says = "List boats",
                                .call = use(yard_, &Yard::list)};
  const Entry measure_ = Operation{.name = "boat.measure",
                                   .needs = core::Permission::company_read,
                                   .says = "Measure a boat",
                                   .call = use(yard_, measure)};

 private:
  template <class T>
  static Task<> keep(Task<T> task, std::optional<Result<T>>& outcome) {
    outcome.emplace(co_await std::move(task));
    co_return Result<>{};
  }
};

using Paths = std::vector<std::string>;

TEST_F(OperationTest, TakesTargetAndBodyAsOneObject) {
  const auto answer = call(paint_, {{"agent", boat}, {"colour", "blue"}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(encode_text(*answer),
            std::string{R"({"id":")"} + boat + R"(","paint":{"colour":"blue","note":null}})");
}

TEST_F(OperationTest, AnswersAPageWithItsCursor) {
  const auto answer = call(list_, {{"limit", 3}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(encode_text(*answer), R"({"rows":[1,3],"next":"more"})");
}

TEST_F(OperationTest, RefusesACallerWithoutThePermissionBeforeItReadsTheInput) {
  const auto answer = call(paint_, {{"boat", 1}}, core::Role::viewer);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::forbidden);
  EXPECT_EQ(yard_.calls, 0);
}

TEST_F(OperationTest, NamesEachWrongFieldOfThePartThatIsWrong) {
  EXPECT_EQ(wrong(call(paint_, {{"agent", boat}, {"color", "blue"}})),
            (Paths{"/color", "/colour"}));
  EXPECT_EQ(wrong(call(paint_, {{"agent", "7"}, {"colour", "blue"}})), Paths{"/agent"});
  EXPECT_EQ(wrong(call(list_, {{"lines", 3}})), Paths{"/lines"});
  EXPECT_EQ(wrong(call(measure_, {{"agent", boat}, {"length", "long"}})), Paths{"/length"});
  EXPECT_EQ(yard_.calls, 0);
}

TEST_F(OperationTest, RefusesAnOptionThatIsOutOfItsBounds) {
  const auto answer = call(measure_, {{"agent", boat}, {"length", 10}});
  EXPECT_EQ(wrong(answer), Paths{"/length"});
  EXPECT_EQ(answer.error().message, "/length must be from 1 to 9");
  EXPECT_EQ(yard_.calls, 0);
  EXPECT_EQ(call(measure_, {{"agent", boat}, {"length", 9}}).value(), 9);
}

TEST_F(OperationTest, RefusesAnInputThatIsNotAnObject) {
  const core::Call who{.who = {.kind = core::CallerKind::local_operator}};
  const auto answer = wait_for(paint_.call(who, bj::value(bj::array{1})));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::validation_failed);
}

TEST_F(OperationTest, DescribesItsInputAsOneSchema) {
  EXPECT_EQ(encode_text(paint_.input_schema()),
            R"({"type":"object","properties":{"agent":{"type":"string","format":"uuid"},)"
            R"("colour":{"type":"string","enum":["red","blue"]},)"
            R"("note":{"anyOf":[{"type":"string"},{"type":"null"}]}},)"
            R"("required":["agent","colour"],"additionalProperties":false})");
}

TEST_F(OperationTest, DescribesItsAnswerWithAllThatItRefersTo) {
  EXPECT_EQ(encode_text(paint_.answer_schema()),
            R"({"$ref":"#/$defs/Boat","$defs":{"Boat":{"type":"object","properties":{)"
            R"("id":{"type":"string","format":"uuid"},"paint":{"$ref":"#/$defs/Paint"}},)"
            R"("required":["id","paint"]},"Paint":{"type":"object","properties":{)"
            R"("colour":{"type":"string","enum":["red","blue"]},)"
            R"("note":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["colour"]}}})");
}

TEST_F(OperationTest, DescribesAPageAsItsRowsAndItsCursor) {
  EXPECT_EQ(encode_text(list_.answer_schema()),
            R"({"type":"object","properties":{)"
            R"("rows":{"type":"array","items":{"type":"integer"}},)"
            R"("next":{"anyOf":[{"type":"string"},{"type":"null"}]}},)"
            R"("required":["rows","next"]})");
}

}  // namespace
}  // namespace berth::api
