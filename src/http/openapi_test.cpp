#include "http/openapi.hpp"

#include "http/endpoint.hpp"

#include <gtest/gtest.h>

#include <set>

namespace berth::http {
namespace {

struct BoxPath {
  core::CompanyId company_id;
};
BOOST_DESCRIBE_STRUCT(BoxPath, (), (company_id))

struct BoxQuery {
  std::optional<std::int64_t> limit;
};
BOOST_DESCRIBE_STRUCT(BoxQuery, (), (limit))

struct Box {
  std::string name;
  std::optional<bool> is_open;
};
BOOST_DESCRIBE_STRUCT(Box, (), (name, is_open))

std::vector<Route> described_routes() {
  using core::Permission;
  const std::string boxes = "/api/companies/{company_id}/boxes";
  return {
      Endpoint<BoxPath, BoxQuery, None, core::Listing<Box>>{
          .path = boxes,
          .needs = Permission::company_read,
          .tag = "boxes",
          .says = "List the boxes",
          .call = [](auto, auto) -> Task<core::Listing<Box>> { co_return core::Listing<Box>{}; }},
      Endpoint<BoxPath, None, Box, core::Stored<Box>>{
          .verb = Verb::post,
          .path = boxes,
          .needs = Permission::company_operate,
          .tag = "boxes",
          .says = "Make a box",
          .status = 201,
          .call = [](auto, auto input) -> Task<core::Stored<Box>> {
            co_return core::Stored<Box>{.value = input.body};
          }},
      EventStream<None, None>{
          .path = "/api/events",
          .needs = Permission::open,
          .tag = "events",
          .says = "Follow",
          .call = [](auto, auto, auto, EventSink&) -> Task<> { co_return Result<>{}; }},
      Endpoint<BoxPath, None, None, NoContent>{
          .verb = Verb::delete_,
          .path = "/api/companies/{companyId}",
          .needs = Permission::instance_admin,
          .tag = "companies",
          .says = "Delete a company",
          .call = [](auto, auto) -> Task<NoContent> { co_return NoContent{}; }},
      Endpoint<BoxPath, None, None, Rendered<Box>>{
          .path = boxes + "/content",
          .needs = Permission::company_read,
          .tag = "boxes",
          .says = "Describe what is in the boxes, or give it",
          .others = {{.type = "application/octet-stream", .headers = {"X-Eof"}}},
          .call = [](auto, auto) -> Task<Rendered<Box>> { co_return Rendered<Box>{}; }},
      Endpoint<BoxPath, None, RawBody, Response>{
          .verb = Verb::put,
          .path = boxes + "/content",
          .needs = Permission::company_operate,
          .tag = "boxes",
          .says = "Fill the boxes",
          .status = 201,
          .others = {{.status = 204}},
          .call = [](auto, auto) -> Task<Response> { co_return Response{}; }},
      RelayEndpoint<BoxPath>{.path = boxes + "/inside/*",
                             .needs = Permission::company_operate,
                             .tag = "boxes",
                             .says = "Ask who is inside",
                             .call = [](auto, auto) -> Task<Fd> { co_return Fd{}; }},
  };
}

const bj::object& at(const bj::object& document, std::string_view pointer) {
  static bj::value copy;
  copy = bj::value(document).at_pointer(pointer);
  return copy.as_object();
}

class OpenApiTest : public testing::Test {
 protected:
  bj::object document_ = openapi_document(described_routes(), {.title = "Berth", .version = "1"});
  static constexpr auto boxes = "/paths/~1api~1companies~1{companyId}~1boxes";
};

TEST_F(OpenApiTest, DescribesPathQueryBodyAndAnswer) {
  EXPECT_EQ(document_.at("openapi"), "3.1.0");
  EXPECT_EQ(bj::value(at(document_, std::string{boxes} + "/get")), *parse_json(R"({
    "operationId": "getCompaniesByCompanyIdBoxes", "summary": "List the boxes", "tags": ["boxes"],
    "x-berth-permission": "company_read",
    "parameters": [
      {"name":"companyId","in":"path","required":true,"schema":{"type":"string","format":"uuid"}},
      {"name":"limit","in":"query","required":false,"schema":{"type":"integer"}}],
    "responses": {
      "200": {"description":"Success","headers":{"Link":{"schema":{"type":"string"}}},
              "content":{"application/json":{"schema":
                {"type":"array","items":{"$ref":"#/components/schemas/Box"}}}}},
      "default": {"$ref":"#/components/responses/Error"}}})"));
  const bj::object& post = at(document_, std::string{boxes} + "/post");
  EXPECT_EQ(post.at("requestBody").at_pointer("/content/application~1json/schema/$ref"),
            "#/components/schemas/Box");
  EXPECT_TRUE(post.at("responses").as_object().contains("201"));
  EXPECT_EQ(post.at("parameters").at(1).at("name"), "Idempotency-Key");
}

TEST_F(OpenApiTest, AnOpenRouteNeedsNoTokenAndAStreamSaysWhatItIs) {
  const bj::object& events = at(document_, "/paths/~1api~1events/get");
  EXPECT_TRUE(events.at("security").as_array().empty());
  EXPECT_TRUE(
      events.at("responses").at_pointer("/200/content").as_object().contains("text/event-stream"));
  EXPECT_EQ(document_.at("security").at(0).as_object().begin()->key(), "bearer");
}

TEST_F(OpenApiTest, EverySuccessOfARouteIsNamedWithItsTypeAndItsHeaders) {
  const std::string path = std::string{boxes} + "~1content";
  EXPECT_EQ(bj::value(at(document_, path + "/get/responses/200")), *parse_json(R"({
    "description": "Success",
    "content": {
      "application/json": {"schema": {"$ref": "#/components/schemas/Box"}},
      "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    "headers": {"X-Eof": {"description": "Only with application/octet-stream",
                          "schema": {"type": "string"}}}})"));
  EXPECT_EQ(bj::value(at(document_, path + "/put/responses")), *parse_json(R"({
    "201": {"description": "Success"}, "204": {"description": "Success"},
    "default": {"$ref": "#/components/responses/Error"}})"));
}

TEST_F(OpenApiTest, ARelayTakesEveryMethodAndAnswersAsItsServerDoes) {
  const bj::object relay = at(document_, std::string{boxes} + "~1inside~1{path}");
  for (const char* method : {"get", "put", "post", "delete", "options", "head", "patch", "trace"}) {
    ASSERT_TRUE(relay.contains(method)) << method;
    const bj::object& operation = relay.at(method).as_object();
    EXPECT_TRUE(
        operation.at("responses").at_pointer("/default/content").as_object().contains("*/*"));
    EXPECT_FALSE(operation.at("responses").as_object().contains("200")) << method;
    ASSERT_EQ(operation.at("parameters").as_array().size(), 2U) << "no Idempotency-Key: " << method;
    EXPECT_TRUE(operation.at("parameters").at(1).as_object().contains("description"));
  }
  EXPECT_TRUE(relay.at("get").at("responses").as_object().contains("101"));
  EXPECT_FALSE(relay.at("get").as_object().contains("requestBody"));
  EXPECT_TRUE(relay.at("post").at_pointer("/requestBody/content").as_object().contains("*/*"));
}

TEST_F(OpenApiTest, EveryReferenceLeadsSomewhere) {
  const std::string text = encode_text(document_);
  std::size_t found = 0;
  for (std::size_t i = text.find("\"#/"); i != std::string::npos; i = text.find("\"#/", i + 1)) {
    const std::string pointer = text.substr(i + 2, text.find('"', i + 1) - i - 2);
    boost::system::error_code error;
    EXPECT_NE(bj::value(document_).find_pointer(pointer, error), nullptr) << pointer;
    ++found;
  }
  EXPECT_GE(found, 5U);
}

TEST_F(OpenApiTest, OperationIdsAreUniqueAndTheTextIsAlwaysTheSame) {
  std::set<std::string> ids;
  std::size_t count = 0;
  for (const auto& path : document_.at("paths").as_object()) {
    for (const auto& verb : path.value().as_object()) {
      ids.emplace(verb.value().at("operationId").as_string());
      ++count;
    }
  }
  EXPECT_EQ(ids.size(), count);
  EXPECT_EQ(count, 14U) << "six of one method each, and one of eight";
  EXPECT_EQ(encode_text(openapi_document(described_routes(), {.title = "Berth", .version = "1"})),
            encode_text(document_));
}

}  // namespace
}  // namespace berth::http
