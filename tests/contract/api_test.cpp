#include "api/table.hpp"
#include "contract/engine_fixture.hpp"
#include "http/routes/routes.hpp"

#include <gmock/gmock.h>

#include <set>

// The operations over a real engine and a real store, without HTTP; and the routes beside them.
namespace berth::engine {
namespace {

constexpr std::string_view definitions = "#/$defs/";

class ApiContract : public EngineContract {
 protected:
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    operations_ = std::make_unique<api::Table>(api::all_operations(*engine_, facts_, examination_));
    const auto made = call("company.create", {{"name", "Harbour"}});
    ASSERT_TRUE(made) << made.error().message;
    company_ = made->at("id").as_string();
  }

  Result<bj::value> call(std::string_view name, bj::object input) {
    return call_as(admin(), name, std::move(input));
  }
  Result<bj::value> call_as(core::Call who, std::string_view name, bj::object input) {
    const api::Entry* const operation = operations_->find(name);
    if (operation == nullptr) return fail(Errc::bug, "no operation " + std::string{name});
    return run(operation->call(std::move(who), bj::value(std::move(input))));
  }
  core::Call viewer() const {
    return {.who = {.kind = core::CallerKind::operator_key,
                    .role = core::Role::viewer,
                    .company_id = core::CompanyId::parse(company_).value()}};
  }
  std::int64_t secrets_now() {
    return static_cast<std::int64_t>(
        call("secret.list", {{"company", company_}})->at("rows").as_array().size());
  }

  const api::ServerFacts facts_{
      .version = "1", .mode = "local_trusted", .database = "sqlite", .started_at = {}};
  const api::Examination examination_{};
  std::unique_ptr<api::Table> operations_;
  std::string company_;
};

TEST_P(ApiContract, ReadsThroughAnOperation) {
  const auto answer = call("company.get", {{"company", company_}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("name"), "Harbour");
  const auto listed = call("environment.list", {{"company", company_}, {"limit", 1}});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->at("rows").as_array().size(), 1U);
}

TEST_P(ApiContract, WritesThroughAnOperation) {
  const bj::object input{{"company", company_}, {"name", "Key"}, {"value", "the value"}};
  const auto made = call("secret.create", input);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->at("name"), "Key");
  const auto changed = call("secret.update", {{"secret", made->at("id")}, {"status", "disabled"}});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(call("secret.get", {{"secret", made->at("id")}})->at("status"), "disabled");
}

TEST_P(ApiContract, RefusesACallerWithoutThePermission) {
  const bj::object input{{"company", company_}, {"name", "Key"}, {"value", "the value"}};
  const auto made = call_as(viewer(), "secret.create", input);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::forbidden);
  const auto read = call_as({}, "company.get", {{"company", company_}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::unauthenticated);
  EXPECT_EQ(secrets_now(), 0);
}

TEST_P(ApiContract, RefusesAnUnknownKeyAndNamesIt) {
  const auto made =
      call("secret.create",
           {{"company", company_}, {"name", "Key"}, {"value", "the value"}, {"colour", "red"}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::validation_failed);
  EXPECT_EQ(made.error().issues.front().path, "/colour");
  const auto read = call("company.get", {{"company", company_}, {"colour", "red"}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().issues.front().path, "/colour");
  EXPECT_EQ(secrets_now(), 0);
}

TEST_P(ApiContract, BindsEachOperationToARouteAndEachBindingToAnOperation) {
  std::set<std::string> bound;
  for (const http::Route& route : http::all_routes(*operations_, *engine_, facts_, examination_)) {
    if (!route.operation.empty()) bound.insert(route.operation);
  }
  std::set<std::string> named;
  for (const api::Entry& operation : operations_->entries()) named.insert(operation.name);
  EXPECT_EQ(bound, named);
}

TEST_P(ApiContract, NamesNoFieldOfAnInputTwice) {
  for (const api::Entry& operation : operations_->entries()) {
    SchemaBook book{std::string{definitions}};
    const api::Shape shape = operation.describe(book);
    std::vector<std::string> names;
    for (const api::Field& field : operation.target) names.emplace_back(field.name);
    for (const api::Field& field : operation.options) names.emplace_back(field.name);
    if (shape.body) {
      const std::string body{shape.body->at("$ref").as_string().subview(definitions.size())};
      for (const auto& [key, value] : book.components().at(body).at("properties").as_object()) {
        names.emplace_back(key);
      }
    }
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << operation.name;
  }
}

TEST_P(ApiContract, DescribesEveryOperationWithSchemasThatResolve) {
  for (const api::Entry& operation : operations_->entries()) {
    EXPECT_FALSE(operation.says.empty()) << operation.name;
    EXPECT_EQ(operation.input_schema().at("type"), "object") << operation.name;
    EXPECT_FALSE(operation.answer_schema().empty()) << operation.name;
  }
}

BERTH_ON_BOTH_ENGINES(ApiContract);

}  // namespace
}  // namespace berth::engine
