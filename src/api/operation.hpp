#pragma once

#include "api/fields.hpp"
#include "base/assert.hpp"
#include "base/async/task.hpp"
#include "core/call.hpp"
#include "core/page.hpp"

#include <functional>
#include <string>

// What the program can be asked to do, whatever carries the question: a name, a permission, a
// sentence, typed input, a typed answer, and the use case.
namespace berth::api {

// No target, no options, no body.
struct None {};
BOOST_DESCRIBE_STRUCT(None, (), ())

// What an operation acts on, how, and with what. Callers without HTTP send the fields of all three
// as one object, so no name occurs twice; a test checks it.
template <class Target, class Options, class Body>
struct Input {
  Target target;
  Options options;
  Body body;
};

template <class In, class Answer>
using Function = std::function<Task<Answer>(core::Call, In)>;

// The part of the input that an error is about. `range`: an option that its struct's check()
// refused.
enum class Part { target, options, range, body };

// The input as a transport received it.
struct Arguments {
  bj::object target = {};
  bj::object options = {};
  // Read only if target and options are right.
  std::function<Result<bj::value>()> body;
  // Puts an error into the transport's words; absent: it names the field by its JSON pointer.
  Error (*explain)(Part part, Error error) = nullptr;
};

struct Reply {
  std::string json;
  std::optional<std::int64_t> version = {};  // of the object that the answer shows
  std::optional<std::string> next = {};      // the cursor of the next page
};

// A page is a list and a cursor; a stored object has a version.
enum class AnswerKind { plain, stored, page };

// Input and answer as JSON Schema. A page's `answer` is the schema of its rows.
struct Shape {
  std::vector<bj::object> target;  // in the order of the entry's fields
  std::vector<bj::object> options;
  std::optional<bj::object> body;
  bj::object answer;
};

// An operation without its types: what transports list and call. It outlives its calls.
struct Entry {
  std::string name;
  core::Permission needs = core::Permission::instance_admin;
  std::string says;
  std::vector<Field> target;
  std::vector<Field> options;
  AnswerKind answers = AnswerKind::plain;
  std::function<Shape(SchemaBook&)> describe;
  // Checks the permission, decodes, and calls the use case.
  std::function<Task<Reply>(core::Call, Arguments)> run;

  // All input in one object, and the answer as a value; a page is {rows, next}. Fails like `run`,
  // and refuses unknown keys.
  Task<bj::value> call(core::Call who, bj::value input) const;
  // The JSON Schemas of that input and answer, each a document of its own.
  bj::object input_schema() const;
  bj::object answer_schema() const;
};

// Answer is a described struct, a vector or a JSON value; core::Stored<T>; or core::Listing<T>.
template <class In, class Answer>
struct Operation {
  std::string name;  // "secret.rotate"
  core::Permission needs = core::Permission::instance_admin;
  std::string says;  // one sentence for callers
  Function<In, Answer> call;

  operator Entry() const;
};

namespace operation_detail {

inline Error explained(const Arguments& given, Part part, Error error) {
  return given.explain != nullptr ? given.explain(part, std::move(error)) : error;
}

template <class T>
Result<T> decode_part(bj::value value, const Arguments& given, Part part) {
  Result<T> decoded = decode<T>(value);
  if (decoded) return decoded;
  return std::unexpected(explained(given, part, std::move(decoded).error()));
}

template <class Options>
Result<> check(const Options& options, const Arguments& given) {
  if constexpr (requires { options.check(); }) {
    Result<> checked = options.check();
    if (!checked) {
      return std::unexpected(explained(given, Part::range, std::move(checked).error()));
    }
  }
  return {};
}

template <class Target, class Options, class Body>
Result<Input<Target, Options, Body>> decode_input(Arguments given) {
  BERTH_TRY(Target target,
            decode_part<Target>(bj::value(std::move(given.target)), given, Part::target));
  BERTH_TRY(Options options,
            decode_part<Options>(bj::value(std::move(given.options)), given, Part::options));
  BERTH_TRY(bj::value sent, given.body());
  BERTH_TRY(Body body, decode_part<Body>(std::move(sent), given, Part::body));
  BERTH_DO(check(options, given));
  return Input<Target, Options, Body>{std::move(target), std::move(options), std::move(body)};
}

template <class Answer>
constexpr AnswerKind answer_kind() {
  if (json_detail::is_a<Answer, core::Stored>) return AnswerKind::stored;
  return json_detail::is_a<Answer, core::Listing> ? AnswerKind::page : AnswerKind::plain;
}

template <class Answer>
Reply to_reply(Answer answer) {
  if constexpr (answer_kind<Answer>() == AnswerKind::stored) {
    return Reply{.json = encode_text(answer.value), .version = answer.version};
  } else if constexpr (answer_kind<Answer>() == AnswerKind::page) {
    return Reply{.json = encode_text(answer.rows), .next = std::move(answer.next)};
  } else {
    return Reply{.json = encode_text(answer)};
  }
}

template <class Answer>
bj::object answer_schema(SchemaBook& book) {
  if constexpr (answer_kind<Answer>() == AnswerKind::stored) {
    return book.schema<decltype(Answer::value)>();
  } else if constexpr (answer_kind<Answer>() == AnswerKind::page) {
    return book.schema<decltype(Answer::rows)>();
  } else {
    return book.schema<Answer>();
  }
}

template <class Target, class Options, class Body, class Answer>
Task<Reply> run(const Operation<Input<Target, Options, Body>, Answer>& operation, core::Call call,
                Arguments given) {
  BERTH_CO_DO(core::authorize(call.who, operation.needs));
  auto input = decode_input<Target, Options, Body>(std::move(given));
  if (!input) co_return std::unexpected(std::move(input).error());
  auto answer = co_await operation.call(std::move(call), *std::move(input));
  if (!answer) co_return std::unexpected(std::move(answer).error());
  co_return to_reply(*std::move(answer));
}

template <class In>
struct PartsOf;
template <class Target, class Options, class Body>
struct PartsOf<Input<Target, Options, Body>> {
  static std::vector<Field> target() { return fields_of<Target>(); }
  static std::vector<Field> options() { return fields_of<Options>(); }

  template <class Answer>
  static Shape shape(SchemaBook& book) {
    // The order of these lines is that of the components in the OpenAPI document.
    Shape shape{.target = schemas_of<Target>(book),
                .options = schemas_of<Options>(book),
                .body = {},
                .answer = {}};
    if constexpr (!std::same_as<Body, None>) shape.body = book.schema<Body>();
    shape.answer = operation_detail::answer_schema<Answer>(book);
    return shape;
  }
};

}  // namespace operation_detail

template <class In, class Answer>
Operation<In, Answer>::operator Entry() const {
  BERTH_ASSERT(call != nullptr);
  using Parts = operation_detail::PartsOf<In>;
  // The entry owns the operation that its coroutines refer to.
  auto run = [operation = *this](core::Call who, Arguments given) {
    return operation_detail::run(operation, std::move(who), std::move(given));
  };
  return Entry{.name = name,
               .needs = needs,
               .says = says,
               .target = Parts::target(),
               .options = Parts::options(),
               .answers = operation_detail::answer_kind<Answer>(),
               .describe = [](SchemaBook& book) { return Parts::template shape<Answer>(book); },
               .run = std::move(run)};
}

}  // namespace berth::api
