#pragma once

#include "api/options.hpp"

// Makes an operation's function from a use case of the engine. Input and answer follow from its
// parameters: an id is the target, a page request is the options `limit` and `after`, and a
// described struct is the body of a member function or the options of a free function.
//
//   use(secrets, &Secrets::rotate)      Task<SecretRecord> Secrets::rotate(Call, SecretId,
//   RotateSecret) use(runs, list_runs)                Task<Listing<Run>> list_runs(Runs&, Call,
//   CompanyId, RunOptions) use_on<OfPlugin>(plugins, ...)      the same for a target that is named
//   by text
//
// The service outlives the function.
namespace berth::api {

template <class Target, class Options, class Body, class Answer>
using Use = Function<Input<Target, Options, Body>, Answer>;

// The only member of a target.
template <class Target>
auto id_of(Target target) {
  auto& [id] = target;
  return std::move(id);
}

namespace use_detail {

// A coroutine, so that the page is read where its error can be returned.
template <class Answer, class Next>
Task<Answer> with_page(PageOptions options, Next next) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  co_return co_await next(std::move(page));
}

}  // namespace use_detail

template <class S, class Answer>
Use<None, None, None, Answer> use(S& service, Task<Answer> (S::*method)(core::Call)) {
  return [&service, method](core::Call call, auto /*in*/) {
    return (service.*method)(std::move(call));
  };
}

template <class S, class Answer, DescribedStruct Body>
Use<None, None, Body, Answer> use(S& service, Task<Answer> (S::*method)(core::Call, Body)) {
  return [&service, method](core::Call call, auto in) {
    return (service.*method)(std::move(call), std::move(in.body));
  };
}

template <class S, class Answer>
Use<None, PageOptions, None, Answer> use(S& service,
                                         Task<Answer> (S::*method)(core::Call, core::PageRequest)) {
  return [&service, method](core::Call call, auto in) {
    const auto next = [&service, method, call = std::move(call)](core::PageRequest page) {
      return (service.*method)(call, std::move(page));
    };
    return use_detail::with_page<Answer>(std::move(in.options), next);
  };
}

template <class S, class Answer, DescribedStruct Options>
Use<None, Options, None, Answer> use(S& service,
                                     Task<Answer> (*function)(S&, core::Call, Options)) {
  return [&service, function](core::Call call, auto in) {
    return function(service, std::move(call), std::move(in.options));
  };
}

template <class Target, class S, class Answer, class Id>
Use<Target, None, None, Answer> use_on(S& service, Task<Answer> (S::*method)(core::Call, Id)) {
  return [&service, method](core::Call call, auto in) {
    return (service.*method)(std::move(call), id_of(std::move(in.target)));
  };
}

template <class Target, class S, class Answer, class Id, DescribedStruct Body>
Use<Target, None, Body, Answer> use_on(S& service,
                                       Task<Answer> (S::*method)(core::Call, Id, Body)) {
  return [&service, method](core::Call call, auto in) {
    return (service.*method)(std::move(call), id_of(std::move(in.target)), std::move(in.body));
  };
}

template <class Target, class S, class Answer, class Id>
Use<Target, PageOptions, None, Answer> use_on(S& service,
                                              Task<Answer> (S::*method)(core::Call, Id,
                                                                        core::PageRequest)) {
  return [&service, method](core::Call call, auto in) {
    const auto next = [&service, method, call = std::move(call),
                       id = id_of(std::move(in.target))](core::PageRequest page) {
      return (service.*method)(call, id, std::move(page));
    };
    return use_detail::with_page<Answer>(std::move(in.options), next);
  };
}

template <class Target, class S, class Answer, class Id, DescribedStruct Options>
Use<Target, Options, None, Answer> use_on(S& service,
                                          Task<Answer> (*function)(S&, core::Call, Id, Options)) {
  return [&service, function](core::Call call, auto in) {
    return function(service, std::move(call), id_of(std::move(in.target)), std::move(in.options));
  };
}

// The id's type names the target.
template <class S, class Answer, class Tag, class... Rest>
auto use(S& service, Task<Answer> (S::*method)(core::Call, Id<Tag>, Rest...)) {
  return use_on<typename TargetOf<Id<Tag>>::type>(service, method);
}

template <class S, class Answer, class Tag, class Options>
auto use(S& service, Task<Answer> (*function)(S&, core::Call, Id<Tag>, Options)) {
  return use_on<typename TargetOf<Id<Tag>>::type>(service, function);
}

}  // namespace berth::api
